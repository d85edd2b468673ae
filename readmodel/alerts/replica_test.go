package alerts_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

func TestReplicasThatDiffer(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	replica := func(name, settings string, started int, age time.Duration) alerts.Replica {
		return alerts.Replica{Name: name, Settings: settings, Started: now.Add(time.Duration(started) * time.Second), Renewed: now.Add(-age)}
	}
	for name, c := range map[string]struct {
		replicas []alerts.Replica
		odd      []string
		usual    string
	}{
		"none":                  {},
		"one":                   {[]alerts.Replica{replica("a", "1", 0, 0)}, nil, "a"},
		"equal ones":            {[]alerts.Replica{replica("b", "1", 1, 0), replica("a", "1", 2, 0)}, nil, "b"},
		"the later one differs": {[]alerts.Replica{replica("a", "1", 2, 0), replica("b", "2", 1, 0)}, []string{"a"}, "b"},
		"the fewer ones differ": {[]alerts.Replica{replica("a", "1", 1, 0), replica("b", "2", 2, 0), replica("c", "2", 3, 0)}, []string{"a"}, "b"},
		"each differs":          {[]alerts.Replica{replica("a", "1", 1, 0), replica("b", "2", 2, 0), replica("c", "3", 3, 0)}, []string{"b", "c"}, "a"},
		"one that is gone":      {[]alerts.Replica{replica("a", "1", 1, time.Minute), replica("b", "2", 2, 0)}, nil, "b"},
		"one renewed just now":  {[]alerts.Replica{replica("a", "1", 1, 20*time.Second), replica("b", "2", 2, 0)}, []string{"b"}, "a"},
		"all were long ago":     {[]alerts.Replica{replica("a", "1", 1, time.Hour), replica("b", "2", 2, time.Hour)}, nil, ""},
		"all are gone":          {[]alerts.Replica{replica("a", "1", 1, time.Hour), replica("b", "1", 2, 20*time.Minute)}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			odd, usual := alerts.Differing(c.replicas, now)
			var names []string
			for _, r := range odd {
				names = append(names, r.Name)
			}
			require.Equal(t, c.odd, names)
			require.Equal(t, c.usual, usual.Name)
		})
	}
	_, gone := alerts.Live([]alerts.Replica{replica("a", "1", 1, time.Hour), replica("b", "1", 2, time.Minute), replica("c", "1", 2, 0)}, now)
	require.Len(t, gone, 1)
	require.Equal(t, "a", gone[0].Name)
}
