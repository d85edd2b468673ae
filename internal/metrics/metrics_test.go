package metrics_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/metrics"
)

// TestNamesFollowTheConventions checks names, units and labels as promtool does.
func TestNamesFollowTheConventions(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, d := range metrics.Definitions() {
		require.False(t, names[d.Name], d.Name)
		names[d.Name] = true
		require.Regexp(t, `^dendra_jobs_[a-z_]+$`, d.Name)
		require.Equal(t, d.Kind == "counter", strings.HasSuffix(d.Name, "_total"), d.Name)
		require.NotRegexp(t, `_(ms|milliseconds|minutes|hours|kb|mb|kilobytes|count|sum|bucket)(_total)?$`, d.Name)
		for _, label := range d.Labels {
			require.NotRegexp(t, `^(id|job|job_id|run_id|run|key|error|message|le|quantile)$`, label, d.Name)
		}
		require.NotRegexp(t, `\.$`, d.Help)
	}
}

// TestFilesNameMetricsThatThereAre looks at the dashboard and the alert rules.
func TestFilesNameMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, d := range metrics.Definitions() {
		known[d.Name] = true
		if d.Kind == "histogram" {
			known[d.Name+"_bucket"] = true
		}
	}
	for _, path := range []string{"../../docs/alerts.yaml", "../../docs/grafana/dendra-jobs.json"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`dendra_jobs_[a-z_]+`).FindAllString(string(text), -1) {
			require.True(t, known[name], "%s names %s", path, name)
		}
	}
}
