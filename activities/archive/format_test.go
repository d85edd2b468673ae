package archive_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 123456789, time.UTC)

func message(sequence uint64, organization string, at time.Time) pipeline.Stored {
	return pipeline.Stored{
		Sequence: sequence, Time: at, Subject: pipeline.RawSubject("live", organization, "csi"),
		Header: nats.Header{"Nats-Msg-Id": []string{fmt.Sprint(sequence)}},
		Body:   fmt.Appendf(nil, `{"context":{"org_slug":%q},"payload":{"n":%d}}`, organization, sequence),
	}
}

func TestLineIsVerbatim(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"context":{},"payload":{"a":1.50,"b":"µ<&>"}}`, `{ "spaces" : [ 1 , 2 ] }`, ``, ` {}`, "{}\n", "{\n}", "not JSON", "\x00\xff", `"\ud800"`, "\"\xff\"", `{"a":1}{"b":2}`,
	} {
		m := message(7, "org", noon)
		m.Body = []byte(body)
		line, err := archive.AppendLine(nil, m)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(line), "\n"), "%q", body)
		require.True(t, json.Valid(line), "%s", line)
		read, err := archive.ParseLine(line)
		require.NoError(t, err, "%s", line)
		require.Equal(t, m, read)
	}
	line, err := archive.AppendLine(nil, message(7, "org", noon))
	require.NoError(t, err)
	require.Equal(t, `{"seq":7,"time":"2026-03-04T12:00:00.123456789Z","subject":"dendra.raw.v1.live.org.csi",`+
		`"headers":{"Nats-Msg-Id":["7"]},"body":{"context":{"org_slug":"org"},"payload":{"n":7}}}`+"\n", string(line))
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"seq":7,"time":"2026-03-04T12:00:00Z","subject":"s","body":{}}`))
	f.Add([]byte(`{"seq":7,"time":"2026-03-04T12:00:00Z","subject":"s","headers":{"A":["b"]},"body_base64":"AAE="}`))
	f.Add([]byte(`{"seq":7,"body":null}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := archive.ParseLine(line)
		if err != nil {
			return
		}
		again, err := archive.AppendLine(nil, m)
		if err != nil {
			return
		}
		read, err := archive.ParseLine(again)
		require.NoError(t, err)
		require.Equal(t, string(m.Body), string(read.Body))
		require.Equal(t, m.Sequence, read.Sequence)
		require.True(t, m.Time.Equal(read.Time))
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	incarnation := archive.NewIncarnation("RAW", noon, 0)
	require.Equal(t, archive.Incarnation("RAW.20260304T120000Z"), incarnation)
	batch, err := archive.Build(incarnation, archive.Range{First: 5, Last: 9}, []pipeline.Stored{message(6, "a", noon), message(9, "b-1", noon.Add(time.Hour))})
	require.NoError(t, err)
	require.Equal(t, []archive.Range{{First: 5, Last: 5}, {First: 7, Last: 8}}, batch.Gone)
	require.Equal(t, "raw/v1/org=a/source=csi/date=2026-03-04/hour=12/RAW.20260304T120000Z-00000000000000000005-00000000000000000009.ndjson.zst", batch.Objects[0].Key)
	data, ok := archive.ParseDataKey(batch.Objects[1].Key)
	require.True(t, ok)
	require.Equal(t, archive.Data{
		Partition:   archive.Partition{Organization: "b-1", Source: "csi", Hour: noon.Truncate(time.Hour).Add(time.Hour)},
		Incarnation: incarnation, First: 5, Last: 9,
	}, data)
	_, ok = archive.ParseDataKey("raw/v1/org=a/source=csi/date=2026-03-04/hour=12/x.ndjson.zst")
	require.False(t, ok)

	foreign := message(1, "a", noon)
	foreign.Subject = "dendra.raw.v1.live"
	batch, err = archive.Build(archive.NewIncarnation("RAW", noon, 2), archive.Range{First: 1, Last: 1}, []pipeline.Stored{foreign})
	require.NoError(t, err)
	require.Contains(t, batch.Objects[0].Key, "raw/v1/org=_/source=_/")
	require.Contains(t, batch.Objects[0].Key, "RAW.20260304T120000Z.2-")
}

// TestSameMessagesMakeTheSameBytes whatever was archived before, and by whom.
func TestSameMessagesMakeTheSameBytes(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	incarnation := archive.NewIncarnation("RAW", noon, 0)
	for range 20 {
		var messages []pipeline.Stored
		sequence, at := uint64(0), noon
		for range 1 + random.IntN(400) {
			sequence += 1 + uint64(random.IntN(3)/2)
			at = at.Add(time.Duration(random.IntN(60)) * time.Second)
			m := message(sequence, fmt.Sprintf("org%d", random.IntN(3)), at)
			if random.IntN(5) == 0 {
				m.Body, m.Header = pipeline.MarkReplay(m.Body, at)
			}
			messages = append(messages, m)
		}
		of := archive.Range{First: 1, Last: sequence}
		first, err := archive.Build(incarnation, of, messages)
		require.NoError(t, err)
		second, err := archive.Build(incarnation, of, slices.Clone(messages))
		require.NoError(t, err)
		require.Equal(t, first, second)
		gone := uint64(0)
		for _, r := range first.Gone {
			gone += r.Count()
		}
		require.Equal(t, sequence, uint64(first.Messages)+uint64(first.Replays)+gone)
	}
	_, err := archive.Build(incarnation, archive.Range{First: 1, Last: 3}, []pipeline.Stored{message(2, "a", noon), message(1, "a", noon)})
	require.ErrorContains(t, err, "message 1 of RAW.20260304T120000Z is out of order")
}
