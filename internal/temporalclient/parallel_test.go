package temporalclient_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// A server that is gone or refuses us is asked no further, and neither is one for a caller who
// no longer waits; any other failure is one of many.
func TestEachEndsWhenTheServerIsGone(t *testing.T) {
	t.Parallel()
	const n, limit = 1000, 4
	other := errors.New("no such schedule")
	for name, c := range map[string]struct {
		err error
		all bool
	}{
		"unavailable": {fmt.Errorf("describe: %w", serviceerror.NewUnavailable("gone")), false},
		"denied":      {serviceerror.NewPermissionDenied("read only", ""), false},
		"canceled":    {fmt.Errorf("start a run: %w", context.Canceled), false},
		"other":       {other, true},
	} {
		t.Run(name, func(t *testing.T) {
			var begun atomic.Int64
			err := temporalclient.Each(n, limit, func(int) error {
				begun.Add(1)
				return c.err
			})
			require.ErrorIs(t, err, c.err)
			if c.all {
				require.EqualValues(t, n, begun.Load())
			} else {
				require.LessOrEqual(t, begun.Load(), int64(2*limit))
			}
		})
	}
}
