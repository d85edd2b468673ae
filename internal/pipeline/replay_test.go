package pipeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

func TestMarkReplay(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 12, 0, 0, 5, time.UTC)
	const payload = `{"n": 1.50,"text":"m/s<2> \"replay\""}`
	body := []byte(`{"context":{"imported_at":"2026-01-01T00:00:00Z","org_slug":"o","more":1},"payload":` + payload + `}`)
	require.False(t, pipeline.IsReplay(nil))
	marked, header := pipeline.MarkReplay(body, at)
	require.Equal(t, `{"context":{"imported_at":"2026-01-01T00:00:00Z","org_slug":"o","replay":true,`+
		`"replayed_at":"2026-03-04T12:00:00Z","more":1},"payload":`+payload+`}`, string(marked))
	require.True(t, pipeline.IsReplay(header))
	again, _ := pipeline.MarkReplay(marked, at)
	require.Equal(t, string(marked), string(again))

	for _, body := range []string{``, `null`, `[]`, `{"payload":{}}`, `{"context":null}`, `not JSON "replay"`} {
		marked, header := pipeline.MarkReplay([]byte(body), at)
		require.Equal(t, body, string(marked))
		require.True(t, pipeline.IsReplay(header))
	}
}

func TestParseRawSubject(t *testing.T) {
	t.Parallel()
	operation, organization, source, ok := pipeline.ParseRawSubject(pipeline.RawSubject("bulk", "ucnrs", "csi"))
	require.True(t, ok)
	require.Equal(t, []string{"bulk", "ucnrs", "csi"}, []string{string(operation), organization, source})
	for _, bad := range []string{"", "dendra.raw.v1", "dendra.raw.v1.live.a", "dendra.raw.v1.live.a.b.c", "dendra.raw.v1.prod.a.b", "dendra.raw.v1.live._A.b", "x.raw.v1.live.a.b"} {
		_, _, _, ok := pipeline.ParseRawSubject(bad)
		require.False(t, ok, bad)
	}
}
