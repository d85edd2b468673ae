package pipeline_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

func TestSubjects(t *testing.T) {
	t.Parallel()
	require.Equal(t, "dendra.raw.v1.live.ucnrs.hobolink", pipeline.RawSubject(pipeline.OperationLive, "ucnrs", "hobolink"))
	require.Equal(t, "dendra.prep.v1.bulk.common1", pipeline.PrepSubject(pipeline.OperationBulk, "common1"))
	for _, bad := range []string{"", "a.b", "a b", "*", ">", "Ä", "_A", "-a", strings.Repeat("x", 65)} {
		require.Error(t, pipeline.CheckToken("organization", bad), "%q", bad)
	}
	require.NoError(t, pipeline.CheckToken("organization", "ucnrs-blue_oak2"))
	require.NoError(t, pipeline.CheckToken("organization", "r3Eval"))
	for _, operation := range pipeline.Operations() {
		require.NoError(t, operation.Check())
	}
	require.ErrorContains(t, pipeline.Operation("prod").Check(), `"prod"`)
	require.Equal(t, "W_m_", pipeline.SafeName("W/m²"))
	require.Equal(t, "Air_Temp_22413849_1", pipeline.SafeName("Air Temp_22413849-1"))
}

func TestPreparedMessageKeepsItsForm(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	message := pipeline.Message[pipeline.Points]{
		Context: pipeline.Context{ImportedAt: at, OrgSlug: "ucnrs", Source: "hobolink", Location: "common1", Station: "blue oak", Table: "21234001"},
		Payload: pipeline.Points{
			Options: pipeline.PointOptions{Database: "common1", Precision: "ms"},
			Points:  []pipeline.Point{{Measurement: "m", Fields: map[string]any{"b": 2.5, "a": 20.0}, Time: pipeline.Time{Time: at}}},
		},
	}
	body, err := message.Encode()
	require.NoError(t, err)
	require.Equal(t, `{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"ucnrs","source":"hobolink",`+
		`"location":"common1","station":"blue oak","table":"21234001"},`+
		`"payload":{"options":{"database":"common1","precision":"ms"},`+
		`"points":[{"measurement":"m","fields":{"a":20,"b":2.5},"time":1772625600000}]}}`, string(body))

	decoded, err := pipeline.DecodePoints(body)
	require.NoError(t, err)
	require.Equal(t, message, decoded)
}

func TestTimeReadsBothForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		`1772625600000`:               1772625600000,
		`"2026-03-04T12:00:00Z"`:      1772625600000,
		`"2026-03-04T04:00:00-08:00"`: 1772625600000,
		`-1`:                          -1,
	} {
		var got pipeline.Time
		require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		require.Equal(t, want, got.UnixMilli(), text)
	}
	for _, text := range []string{`"yesterday"`, `1.5`, `true`, `{}`, `99999999999999999999`} {
		var got pipeline.Time
		require.Error(t, json.Unmarshal([]byte(text), &got), text)
	}
}

func TestIDTellsPartsApart(t *testing.T) {
	t.Parallel()
	require.NotEqual(t, pipeline.ID("ab", "c"), pipeline.ID("a", "bc"))
	require.Equal(t, pipeline.ID("a", "b"), pipeline.ID("a", "b"))
	require.Len(t, pipeline.ID(), 22)
}

func TestBookmarkKey(t *testing.T) {
	t.Parallel()
	require.Equal(t, "extract_hobo_time_frame.pilot/21234001", pipeline.BookmarkKey("extract_hobo_time_frame.pilot", "21234001"))
	require.Equal(t, "a.b/x_y", pipeline.BookmarkKey("a.b", "x >*y"))
}

func FuzzDecodePoints(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `"x"`,
		`{"payload":{"options":{"database":"d"},"points":[]}}`,
		`{"payload":{"options":{"database":"d","precision":"xx"},"points":[{"measurement":"m","fields":{"a":1},"time":1}]}}`,
		`{"payload":{"options":{},"points":[{"measurement":"m","fields":{"a":1},"time":1}]}}`,
		`{"payload":{"options":{"database":"d"},"points":[{"measurement":"m","fields":{"a":1,"s":"x","b":true},"tags":{"t":"v"},"time":"2026-03-04T12:00:00Z"}]}}`,
		`{"payload":{"options":{"database":"d"},"points":[{"measurement":"m","fields":{"a":NaN},"time":1}]}}`,
		`{"payload":{"options":{"database":"d"},"points":[{"measurement":"m","fields":{"a":1e400},"time":1}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		message, err := pipeline.DecodePoints(body)
		if err != nil {
			return
		}
		require.NotEmpty(t, message.Payload.Options.Database)
		require.NotEmpty(t, message.Payload.Points)
		again, err := message.Encode()
		require.NoError(t, err)
		_, err = pipeline.DecodePoints(again)
		require.NoError(t, err)
	})
}

func TestWhatIsNotUTF8IsRefused(t *testing.T) {
	t.Parallel()
	_, err := pipeline.DecodePoints([]byte("{\"context\":{\"station\":\"caf\xe9\"},\"payload\":{\"points\":[{\"measurement\":\"m\",\"fields\":{\"v\":1},\"time\":1}]}}"))
	require.EqualError(t, err, "not a prepared message: it is not UTF-8: byte 0xe9 at offset 26")
}
