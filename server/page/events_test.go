package page_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// An event has what changed, and not what the browser has already.
func TestEventsCarryWhatChanged(t *testing.T) {
	t.Parallel()
	d := tell(t, 20)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/events?view=home&runs=30&revision=", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	next := func() (parts map[string]string, bytes int) {
		for lines.Scan() {
			text, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var event struct{ Parts map[string]string }
			require.NoError(t, json.Unmarshal([]byte(text), &event))
			return event.Parts, len(text)
		}
		require.NoError(t, lines.Err())
		return nil, 0
	}
	pause := func(*jobsv1.JobOverview) {}
	parts, first := next()
	require.Contains(t, parts, "needs-you")
	require.Contains(t, parts, "servers")
	d.change(3, pause)
	parts, second := next()
	require.Empty(t, parts)
	t.Logf("an event about one of 20 jobs: %d bytes with all parts, %d without", first, second)
	d.change(3, func(*jobsv1.JobOverview) { d.is.Alerts = nil })
	parts, _ = next()
	require.NotContains(t, parts, "servers")
	require.Contains(t, parts["needs-you"], "Nothing needs you.")
}
