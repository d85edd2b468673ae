package temporal_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/devstack/internal/temporal"
)

// The lists of the Web UI and the starter have their indexes, in the order of the
// server; the columns of other lists have none, which every run would pay for.
func TestListsHaveTheirIndexes(t *testing.T) {
	t.Parallel()
	file, err := temporal.PrepareStore(t.Context(), t.TempDir())
	require.NoError(t, err)
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })

	lists := map[string]string{ // condition: index
		"TRUE":                               "default_idx",
		"TemporalNamespaceDivision IS NULL":  "by_temporal_namespace_division",
		"workflow_id = 'job/a'":              "by_workflow_id",
		"workflow_type_name = 'RunJob'":      "by_workflow_type",
		"status = 1":                         "by_status",
		"TemporalScheduledById = 'a'":        "by_temporal_scheduled_by_id",
		"Keyword01 = 'a' AND task_queue='b'": "by_keyword_01",
	}
	for i := 1; i <= 7; i++ {
		lists[fmt.Sprintf("Keyword%02d = 'a'", i)] = fmt.Sprintf("by_keyword_%02d", i)
	}
	used := make(map[string]bool)
	for where, index := range lists {
		require.Contains(t, plan(t, db, where), " USING INDEX "+index+" ", where)
		require.NotContains(t, plan(t, db, where), "TEMP B-TREE", "%s: sorted by its index", where)
		used[index] = true
	}
	var indexes int
	require.NoError(t, db.QueryRowContext(t.Context(),
		`SELECT COUNT(*) FROM sqlite_master WHERE type = 'index' AND tbl_name = 'executions_visibility' AND sql IS NOT NULL`).Scan(&indexes))
	require.Len(t, used, indexes, "no index without a list")
}

// plan is how SQLite finds the runs of a page of a list, as the server asks for it.
func plan(t *testing.T, db *sql.DB, where string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `EXPLAIN QUERY PLAN
		SELECT * FROM executions_visibility WHERE namespace_id = 'n' AND `+where+`
		ORDER BY COALESCE(close_time, '9999-12-31 23:59:59+00:00') DESC, start_time DESC, run_id LIMIT 100`)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		steps = append(steps, step)
	}
	require.NoError(t, rows.Err())
	return strings.Join(steps, "; ")
}
