package wording_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job/wording"
)

func TestSpans(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/spans.json")
	require.NoError(t, err)
	var table []struct {
		Seconds    float64
		Span, Away string
	}
	require.NoError(t, json.Unmarshal(text, &table))
	require.NotEmpty(t, table)
	for _, row := range table {
		d := time.Duration(math.Round(row.Seconds * float64(time.Second)))
		require.Equal(t, row.Span, wording.Span(d), "%s", d)
		require.Equal(t, row.Away, wording.Away(d), "%s", d)
	}
}

func TestStamp(t *testing.T) {
	t.Parallel()
	prague := time.FixedZone("CET", 3600)
	require.Equal(t, "2026-05-01 06:00:00 UTC", wording.Stamp(time.Date(2026, 5, 1, 7, 0, 0, 5e8, prague)))
}

func TestList(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{"": nil, "a, b": {"a", "b"}, "a, b and 1 more": {"a", "b", "c"}} {
		require.Equal(t, want, wording.List(names, 2))
	}
}
