package hobolink_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/hobolink"
)

const goodItem = `{"logger_sn":"21234001","sensor_sn":"212340011-1","timestamp":"2025-12-01 05:05:00Z","data_type":"AVERAGE",` +
	`"data_type_id":"4","value":6.5,"unit":"°C","sensor_measurement_type":"Temperature"}`

func TestDecodeAnswer(t *testing.T) {
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
	answer, err := hobolink.DecodeAnswer(strings.NewReader(`{"data":[` + goodItem + `]}`))
	require.NoError(t, err)
	observation, err := hobolink.ParseObservation([]byte(goodItem))
	require.NoError(t, err)
	require.Equal(t, answer.Observations[0], observation)
	_, err = hobolink.ParseObservation([]byte(`{"logger_sn":"1"}`))
	require.EqualError(t, err, "sensor_sn is missing or empty")
}

func TestDecodeTruncatedAnswer(t *testing.T) {
	for _, body := range []string{
		`{"message":"","max_results":true,"data":[` + goodItem + `]}`,
		`{"data":[` + goodItem + `],"max_results":true}`,
	} {
		answer, err := hobolink.DecodeAnswer(strings.NewReader(body))
		require.NoError(t, err)
		require.Equal(t, hobolink.Answer{Truncated: true}, answer)
	}
}

func TestDecodeWhatIsNoAnswer(t *testing.T) {
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
