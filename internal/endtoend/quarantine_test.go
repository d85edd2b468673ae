package endtoend_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// TestRefusedPointsAreReplayed has InfluxDB refuse points, replays them while the
// reason is still there, and again when it is gone.
func TestRefusedPointsAreReplayed(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.Start(t))
	client := b.st.Pipeline(t)
	b.worker("load")
	declare(b, fmt.Sprintf(`
[jobs.live_load_influx_v1.second_thoughts]
continuous = { interval = "PT0.1S" }
[jobs.live_load_influx_v1.second_thoughts.spec]
location = "second_thoughts"
influx_url = %q
batch_age = "PT0.2S"
`, b.st.Influx))

	publish := func(minute int, value any) {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		body := fmt.Appendf(nil, `{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"o","upload_id":"u-1"},"payload":{"options":{"database":"second_thoughts"},`+
			`"points":[{"measurement":"m","fields":{"v":%s},"time":%d}]}}`, text, 1772625600000+60_000*minute)
		_, err = client.Publish(t.Context(), []pipeline.Outgoing{{Subject: pipeline.PrepSubject("live", "second_thoughts"), Body: body}})
		require.NoError(t, err)
	}
	items := func(args ...string) []*jobsv1.QuarantineItem {
		var list jobsv1.ListQuarantineItemsResponse
		answer := b.ok(append([]string{"quarantine", "list", "--location", "second_thoughts", "-o", "json"}, args...)...)
		require.NoError(t, protojson.Unmarshal([]byte(answer), &list))
		return list.GetItems()
	}
	awaitItems := func(above int64, n int) (found []*jobsv1.QuarantineItem) {
		stacktest.WaitFor(t, "refused points in quarantine", func() (bool, error) {
			found = items()
			return len(found) == n && found[n-1].GetId() > above, nil
		})
		return found
	}
	stored := func() int64 {
		counts, err := influx.Count(t.Context(), influx.Config{URL: b.st.Influx}, "second_thoughts", "m")
		if err != nil {
			return 0
		}
		return counts["v"]
	}
	publish(0, 1.5)
	for minute := 1; minute <= 3; minute++ {
		publish(minute, "no number")
	}
	bodies := func(list []*jobsv1.QuarantineItem) (texts []string) {
		for _, item := range list {
			texts = append(texts, b.ok("quarantine", "show", fmt.Sprint(item.GetId()), "--body"))
		}
		return texts
	}
	first := awaitItems(0, 3)
	refused := bodies(first)
	require.Contains(t, first[0].GetReason(), "field type conflict")

	// The reason is still there: all of them come back, as others.
	const replay = "quarantine replay --location second_thoughts --class RefusedPoint --yes"
	require.Equal(t, "3 items replayed.\n", b.ok(strings.Fields(replay)...))
	second := awaitItems(first[0].GetId(), 3)
	require.Equal(t, refused, bodies(second))
	require.EqualValues(t, 1, stored())

	// Now it is gone.
	_, err := influx.Query(t.Context(), influx.Config{URL: b.st.Influx}, "second_thoughts", `DROP MEASUREMENT "m"`)
	require.NoError(t, err)
	require.Contains(t, b.ok("quarantine", "show", fmt.Sprint(second[0].GetId())), `"upload_id":"u-1"`, "with all of its context")
	require.Equal(t, "3 items replayed.\n", b.ok(strings.Fields(replay)...))
	stacktest.WaitFor(t, "the points in InfluxDB", func() (bool, error) { return stored() == 3, nil })
	require.Empty(t, items())
}
