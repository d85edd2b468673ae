package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

func TestOrderOfDeliveries(t *testing.T) {
	t.Parallel()
	type place struct{ sequence, number uint64 }
	for name, c := range map[string]struct {
		places  []place
		follows bool
	}{
		"nothing":               {nil, true},
		"the stream has others": {[]place{{3, 1}, {7, 2}, {8, 3}}, true},
		"the first is missing":  {[]place{{3, 2}}, false},
		"one is missing":        {[]place{{3, 1}, {5, 3}}, false},
		"an older one again":    {[]place{{3, 1}, {4, 2}, {3, 3}}, false},
		"the same one again":    {[]place{{3, 1}, {3, 2}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var messages []*pipeline.Delivery
			for _, p := range c.places {
				messages = append(messages, pipeline.NewDelivery(pipeline.Stored{Sequence: p.sequence}, p.number, nil))
			}
			var whole, parts pipeline.Order
			require.Equal(t, c.follows, whole.Follows(messages))
			follows := true
			for _, message := range messages {
				follows = follows && parts.Follows([]*pipeline.Delivery{message})
			}
			require.Equal(t, c.follows, follows, "one fetch or several")
		})
	}
}
