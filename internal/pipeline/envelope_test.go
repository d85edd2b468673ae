package pipeline_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

func TestContextKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	const body = `{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"ucnrs","source":"csi","station":"angelo","table":"TenMin",` +
		`"utc_offset":"-08:00","replay":true,"replayed_at":"2026-03-05T00:00:00Z",` +
		`"storage_database":"org_1","storage_table":"t",` +
		`"cdec_station_id":"a<b","document_id":"ucnrs-csi-1","file_name":"x.dat","is_invalid":true,` +
		`"upload_id":{"n":[1,2,{"station":3}]}},"payload":{"a":1}}`
	var message pipeline.Message[json.RawMessage]
	require.NoError(t, json.Unmarshal([]byte(body), &message))
	require.True(t, message.Context.Replay)
	require.Equal(t, time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC), message.Context.ReplayedAt)
	require.Len(t, message.Context.Other, 5)
	require.Equal(t, []string{"org_1", "t"}, []string{message.Context.StorageDatabase, message.Context.StorageTable})
	again, err := message.Encode()
	require.NoError(t, err)
	require.Equal(t, body, string(again))

	// A message of another kind that is made of it keeps them too.
	prepared, err := pipeline.Message[pipeline.Points]{Context: message.Context}.Encode()
	require.NoError(t, err)
	require.Contains(t, string(prepared), `"storage_database":"org_1"`)
}

func TestContextKeysAreReadOnce(t *testing.T) {
	t.Parallel()
	var context pipeline.Context
	// As encoding/json has it, case does not matter, and the last one counts.
	require.NoError(t, json.Unmarshal([]byte(`{"Station":"a","\u0074able":"t","org_slug":"x","org_slug":"o","imported_at":"2026-03-04T12:00:00Z"}`), &context))
	require.Equal(t, pipeline.Context{Station: "a", Table: "t", OrgSlug: "o", ImportedAt: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}, context)
	require.NoError(t, json.Unmarshal([]byte(`null`), &context))
	require.Empty(t, context.Other)

	context = pipeline.Context{Station: "mine", Other: map[string]json.RawMessage{"station": []byte(`"other"`), "x": []byte(`1`)}}
	text, err := json.Marshal(context)
	require.NoError(t, err)
	require.NotContains(t, string(text), "other")
	require.Contains(t, string(text), `"x":1}`)
	context.Other["x"] = []byte(`{`)
	_, err = json.Marshal(context)
	require.ErrorContains(t, err, `"x"`)
}

// TestTimesOfContexts: what is read can be written again, into the message that is made of it.
func TestTimesOfContexts(t *testing.T) {
	t.Parallel()
	var message pipeline.Message[json.RawMessage]
	require.NoError(t, json.Unmarshal([]byte(`{"context":{"imported_at":"2026-03-04T12:00:00+24:00"},"payload":null}`), &message))
	encoded, err := message.Encode()
	require.NoError(t, err)
	require.Contains(t, string(encoded), `"imported_at":"2026-03-03T12:00:00Z"`)
	err = json.Unmarshal([]byte(`{"context":{"imported_at":"9999-12-31T23:59:59-23:00"}}`), &message)
	require.ErrorContains(t, err, "not in the years 0 to 9999")
}

// FuzzEnvelope decodes raw messages, and encodes them: nothing gets lost, and a
// second time changes nothing.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `{"context":null}`, `{"context":[]}`, `{"context":{},"payload":1}`,
		`{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"o","station":"s","x":{"station":[1]}},"payload":{"a":1.50}}`,
		`{"context":{"Replay":true,"replayed_at":"2026-03-04T12:00:00+14:00","\u0078":"\"},{","a":"b\\"},"payload":null}`,
		`{"context":{"":"","org_slug":"a<b>&c"," ":[",",{"}":"{"}]},"payload":"x"}`,
		`{"context":{"station":1}}`, `{"context":{"imported_at":"yesterday"}}`,
		`{"context":{"imported_at":"9999-12-31T23:59:59-23:00"}}`, `{"context":{"replayed_at":"0000-01-01T00:00:00+24:00"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var message pipeline.Message[json.RawMessage]
		if json.Unmarshal(body, &message) != nil {
			return
		}
		encoded, err := message.Encode()
		require.NoError(t, err)
		var again pipeline.Message[json.RawMessage]
		require.NoError(t, json.Unmarshal(encoded, &again))
		require.Equal(t, message.Context.Station, again.Context.Station)
		require.Equal(t, message.Context.Replay, again.Context.Replay)
		require.True(t, message.Context.ImportedAt.Equal(again.Context.ImportedAt))
		require.Len(t, again.Context.Other, len(message.Context.Other))
		for key, value := range message.Context.Other {
			require.JSONEq(t, string(value), string(again.Context.Other[key]), key)
		}
		if len(message.Payload) > 0 {
			var compact bytes.Buffer
			require.NoError(t, json.Compact(&compact, message.Payload))
			require.Equal(t, compact.String(), string(again.Payload), "a payload is kept as it is")
		}
		twice, err := again.Encode()
		require.NoError(t, err)
		require.Equal(t, string(encoded), string(twice))
	})
}

// FuzzSubjects makes subjects of names, and names of subjects: what passes the check
// comes back, and nothing else is taken for a subject.
func FuzzSubjects(f *testing.F) {
	f.Add("live", "ucnrs", "hobolink", "dendra.raw.v1.live.ucnrs.csi")
	f.Add("bulk", "a-b_c", "9", "dendra.prep.v1.live.common1")
	f.Add("test", "a.b", "*", "dendra.prep.v1.live.a.b")
	f.Add("", "", ">", "dendra.raw.v1.live..csi")
	f.Add("live", "x", "y", "dendra.raw.v1.prod.a.b\n")
	f.Fuzz(func(t *testing.T, operation, organization, source, subject string) {
		o := pipeline.Operation(operation)
		if o.Check() == nil && pipeline.CheckToken("organization", organization) == nil && pipeline.CheckToken("source", source) == nil {
			raw := pipeline.RawSubject(o, organization, source)
			require.Equal(t, 5, strings.Count(raw, "."))
			require.False(t, strings.ContainsAny(raw, "*> \t\r\n"))
			gotOperation, gotOrganization, gotSource, ok := pipeline.ParseRawSubject(raw)
			require.True(t, ok)
			require.Equal(t, []string{operation, organization, source}, []string{string(gotOperation), gotOrganization, gotSource})
			prep := pipeline.PrepSubject(o, source)
			gotOperation, location, ok := pipeline.ParsePrepSubject(prep)
			require.True(t, ok)
			require.Equal(t, []string{operation, source}, []string{string(gotOperation), location})
			_, _, ok = pipeline.ParsePrepSubject(raw)
			require.False(t, ok)
		}
		if o, organization, source, ok := pipeline.ParseRawSubject(subject); ok {
			require.Equal(t, subject, pipeline.RawSubject(o, organization, source))
			require.NoError(t, o.Check())
			require.NoError(t, pipeline.CheckToken("organization", organization))
			require.NoError(t, pipeline.CheckToken("source", source))
		}
		if o, location, ok := pipeline.ParsePrepSubject(subject); ok {
			require.Equal(t, subject, pipeline.PrepSubject(o, location))
			require.NoError(t, o.Check())
			require.NoError(t, pipeline.CheckToken("location", location))
		}
	})
}
