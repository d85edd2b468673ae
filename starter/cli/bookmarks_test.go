package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func TestBookmarks(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	client := st.Pipeline(t)
	var c console // They need no Temporal.
	const jobID, source = "extract_campbell_scientific_ldmp.handover", "Blue_Oak=Ten.Min"
	on := func(args ...string) []string {
		return append(append([]string{"bookmarks"}, args...), "--nats", st.NATS)
	}
	require.Contains(t, c.ok(t, on("set", jobID, source, "2026-03-03T23:50:00-08:00")...),
		"Bookmark of "+jobID+"/Blue_Oak=Ten_Min: set to 2026-03-04 07:50:00 UTC.")

	// A run moves it; set moves it back, and the state of the run is gone.
	key := pipeline.BookmarkKey(jobID, "Blue_Oak=Ten_Min")
	bookmark, err := client.Bookmark(t.Context(), key)
	require.NoError(t, err)
	running, err := client.Advance(t.Context(), bookmark, bookmark.Position.Add(time.Hour), map[string]any{"record_number": 7}, "run-1")
	require.NoError(t, err)
	refused := c.run(t.Context(), on("set", jobID, source, "2026-03-04T00:00:00Z")...)
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.stderr, "add --yes to move the bookmark")
	require.Contains(t, c.ok(t, on("set", jobID, source, "2026-03-04T00:00:00Z", "--yes")...), "/Blue_Oak=Ten_Min: set to 2026-03-04 00:00:00 UTC.")
	bookmark, err = client.Bookmark(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, bookmark.State)
	_, err = client.Advance(t.Context(), running, running.Position.Add(time.Hour), nil, "run-1")
	require.ErrorContains(t, err, "was moved by another run")

	rows := answered[jobsv1.ListBookmarksResponse](t, c, on("list", jobID)...).GetBookmarks()
	require.Len(t, rows, 1)
	require.Equal(t, "Blue_Oak=Ten_Min", rows[0].GetSource())
	require.Equal(t, time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC), rows[0].GetPosition().AsTime())
	require.Regexp(t, "^set by (.+)$", rows[0].GetMovedBy())
	require.Contains(t, c.ok(t, on("list")...), jobID)

	for text, args := range map[string][]string{
		"is not the id of a job": {"set", "handover", source, "2026-03-04T00:00:00Z"},
		`SOURCE "": it is empty`: {"set", jobID, "", "2026-03-04T00:00:00Z"},
		"is not of the form":     {"set", jobID, source, "2026-03-04T00:00:00"},
		"before 1980":            {"set", jobID, source, "1970-01-01T00:00:00Z"},
	} {
		refused := c.run(t.Context(), on(args...)...)
		require.Equal(t, 2, refused.code)
		require.Contains(t, refused.stderr, text)
	}
}
