package hobolink_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/hobolink"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

const goodItem = `{"logger_sn":"21234001","sensor_sn":"212340011-1","timestamp":"2025-12-01 05:05:00Z","data_type":"AVERAGE",` +
	`"data_type_id":"4","value":6.5,"unit":"°C","sensor_measurement_type":"Temperature"}`

func TestDecodeAnswer(t *testing.T) {
	t.Parallel()
	replaced := func(old, replacement string) string { return strings.Replace(goodItem, old, replacement, 1) }
	body := `{"message":"OK","extra":{"a":[1]},"max_results":false,"data":[` + strings.Join([]string{
		goodItem,
		replaced(`6.5`, `null`),
		replaced(`6.5`, `"6.5"`),
		replaced(`6.5`, `1e999`),
		replaced(`2025-12-01 05:05:00Z`, `2025-12-01T05:05:00Z`),
		replaced(`2025-12-01 05:05:00Z`, `2025-12-01 05:05:00.5Z`),
		replaced(`2025-12-01 05:05:00Z`, `2025-13-01 05:05:00Z`),
		replaced(`"212340011-1"`, `""`),
		`[1,2]`,
		`null`,
	}, ",") + `]}`
	answer, err := hobolink.DecodeAnswer(strings.NewReader(body))
	require.NoError(t, err)
	require.False(t, answer.Truncated)

	require.Len(t, answer.Observations, 2)
	value := 6.5
	require.Equal(t, hobolink.Observation{
		Logger: "21234001", Sensor: "212340011-1", Time: time.Date(2025, 12, 1, 5, 5, 0, 0, time.UTC),
		MeasurementType: "Temperature", DataType: "AVERAGE", Unit: "°C", Value: &value, Raw: []byte(goodItem),
	}, answer.Observations[0])
	require.Nil(t, answer.Observations[1].Value, "a reading without a value")

	reasons := make([]string, len(answer.Rejected))
	for i, rejected := range answer.Rejected {
		reasons[i] = rejected.Reason
	}
	require.Len(t, reasons, 8)
	require.Contains(t, reasons[0], `value "6.5"`)
	require.Contains(t, reasons[1], `1e999`)
	require.Contains(t, reasons[2], `2025-12-01T05:05:00Z`)
	require.Contains(t, reasons[3], `05:05:00.5Z`)
	require.Contains(t, reasons[4], `2025-13-01`)
	require.Contains(t, reasons[5], `sensor_sn`)
	require.Contains(t, reasons[6], `not an observation`)
	require.Contains(t, reasons[7], `logger_sn`)
}

func TestParseObservation(t *testing.T) {
	t.Parallel()
	answer, err := hobolink.DecodeAnswer(strings.NewReader(`{"data":[` + goodItem + `]}`))
	require.NoError(t, err)
	observation, err := hobolink.ParseObservation([]byte(goodItem))
	require.NoError(t, err)
	require.Equal(t, answer.Observations[0], observation)
	_, err = hobolink.ParseObservation([]byte(`{"logger_sn":"1"}`))
	require.EqualError(t, err, "sensor_sn is missing or empty")
}

func TestDecodeTruncatedAnswer(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"message":"","max_results":true,"data":[` + goodItem + `]}`,
		`{"data":[` + goodItem + `],"max_results":true}`,
	} {
		answer, err := hobolink.DecodeAnswer(strings.NewReader(body))
		require.NoError(t, err)
		require.Equal(t, hobolink.Answer{Truncated: true}, answer)
	}
}

// zeros is an answer of items that are no observations.
func zeros(items int) string { return `{"data":[` + strings.Repeat("0,", items-1) + `0]}` }

func TestItemsOfAnAnswerAreBounded(t *testing.T) {
	t.Parallel()
	decode := func(body string) hobolink.Answer {
		answer, err := hobolink.DecodeAnswer(strings.NewReader(body))
		require.NoError(t, err)
		return answer
	}
	require.Len(t, decode(zeros(hobolink.MaxRejected)).Rejected, hobolink.MaxRejected)
	require.True(t, decode(zeros(hobolink.MaxRejected+1)).Truncated)

	items := strings.Repeat(goodItem+",", hobolink.MaxItems-1) + goodItem
	require.Less(t, len(items), hobolink.MaxBytes-hobolink.MaxBytes/4, "with room for longer ones")
	require.Len(t, decode(`{"data":[`+items+`]}`).Observations, hobolink.MaxItems)
	require.True(t, decode(`{"data":[`+items+`,0]}`).Truncated)

	bad := strings.Replace(goodItem, `6.5`, `"`+strings.Repeat("x", hobolink.MaxItemBytes/2)+`"`, 1)
	answer := decode(`{"data":[` + bad + `]}`)
	require.Len(t, answer.Rejected, 1)
	require.Len(t, answer.Rejected[0].Raw, len(bad), "verbatim")
	require.LessOrEqual(t, len(answer.Rejected[0].Reason), 300)
}

// TestMemoryOfAnAnswerIsBounded sends answers that are short on the wire, and long
// otherwise. It measures what is allocated in all, garbage included.
//
//nolint:paralleltest // No other test may allocate meanwhile.
func TestMemoryOfAnAnswerIsBounded(t *testing.T) {
	long := strings.Repeat("x", 4*hobolink.MaxItemBytes)
	for name, test := range map[string]struct {
		body  string
		bound uint64
	}{
		"two million items": {zeros(2_000_000), 16 << 20},
		"a long item":       {`{"data":["` + long + `"]}`, 8 * hobolink.MaxItemBytes},
		"a long message":    {`{"message":"` + long + `","data":[]}`, 8 * hobolink.MaxItemBytes},
		"a long name":       {`{"` + long + `":0,"data":[]}`, 8 * hobolink.MaxItemBytes},
		"a deep item":       {`{"data":[` + strings.Repeat(`{"a":[`, 4_000) + `"` + long, 8 * hobolink.MaxItemBytes},
	} {
		t.Run(name, func(t *testing.T) {
			var packed bytes.Buffer
			writer := gzip.NewWriter(&packed)
			_, err := writer.Write([]byte(test.body))
			require.NoError(t, err)
			require.NoError(t, writer.Close())
			require.Less(t, packed.Len(), 20_000)
			server := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(packed.Bytes())
			}))
			client, err := hobolink.New(hobolink.Config{BaseURL: server, Token: "x", Tries: 1})
			require.NoError(t, err)

			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answer, err := client.Data(t.Context(), hobolink.Frame{Logger: "1", Start: noon, End: noon})
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			t.Logf("%d bytes, %d unpacked: %d allocated", packed.Len(), len(test.body), after.TotalAlloc-before.TotalAlloc)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, test.bound)
			require.True(t, answer.Truncated)
		})
	}
}

func TestDecodeWhatIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, `null`, `[]`, `{}`, `{"data":1}`, `{"data":[`, `{"data":[]`, `<html>`, `{"max_results":"no","data":[]}`,
		`{"data":[{"logger_sn":"1"`,
	} {
		_, err := hobolink.DecodeAnswer(strings.NewReader(body))
		require.ErrorContains(t, err, "the answer is not one of the data API", "%q", body)
	}
}

func FuzzDecodeAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"message":"OK","max_results":false,"data":[` + goodItem + `]}`,
		`{"max_results":true,"data":[]}`, `{"data":[1,null,{},"x"]}`, `{"data":[`, ``, `{"data":[]}{}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		answer, err := hobolink.DecodeAnswer(strings.NewReader(body))
		if err != nil || answer.Truncated {
			require.Empty(t, answer.Observations)
			require.Empty(t, answer.Rejected)
			return
		}
		for _, observation := range answer.Observations {
			require.NotEmpty(t, observation.Logger)
			require.False(t, observation.Time.Nanosecond() != 0)
			require.Contains(t, body, string(observation.Raw))
		}
		for _, rejected := range answer.Rejected {
			require.NotEmpty(t, rejected.Reason)
		}
	})
}
