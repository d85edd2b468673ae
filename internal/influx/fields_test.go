package influx_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
)

func answers(t testing.TB, status int, body string) influx.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Influxdb-Version", "1.8.3")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return influx.Config{URL: server.URL}
}

func all(string) bool { return true }

func TestFieldsInChunks(t *testing.T) {
	t.Parallel()
	const columns = `"columns":["fieldKey","fieldType"],"values":`
	config := answers(t, http.StatusOK, `
{"results":[{"statement_id":0,"series":[{"name":"m",`+columns+`[["a","float"],["b","string"]]}],"partial":true}]}
{"results":[{"statement_id":0,"series":[{"name":"m",`+columns+`[["b","float"],["c","unsigned"]]},{"name":"n",`+columns+`[["a","boolean"]]}]}]}
`)
	found, err := influx.Fields(t.Context(), config, "d", func(measurement string) bool { return measurement == "m" })
	require.NoError(t, err)
	require.Equal(t, influx.Measurements{"m": {
		"a": {influx.FieldFloat}, "b": {influx.FieldString, influx.FieldFloat}, "c": {influx.FieldInteger},
	}}, found)
}

func TestFieldsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]influx.Kind{
		`{"error":"unable to parse authentication credentials"}`: influx.KindConfig,
		`{"error":"authorization failed"}`:                       influx.KindConfig,
		`{"results":[{"error":"error authorizing query: u not authorized to execute statement 'SHOW FIELD KEYS ON d'"}]}`: influx.KindConfig,
		`{"results":[{"error":"timeout"}]}`:                                  influx.KindTransient,
		`{"results":[{"series":[{"name":"m","values":[["a","complex"]]}]}]}`: influx.KindTransient,
		`{"results":[{"series":[{"name":"m","values":[["a"]]}]}]}`:           influx.KindTransient,
		`{"results":`: influx.KindTransient,
		`nothing`:     influx.KindTransient,
	} {
		_, err := influx.Fields(t.Context(), answers(t, http.StatusOK, body), "d", all)
		failed := (*influx.Error)(nil)
		require.ErrorAs(t, err, &failed, body)
		require.Equal(t, want, failed.Kind, body)
	}
	_, err := influx.Fields(t.Context(), answers(t, http.StatusOK, `{"results":[{"error":"database not found: d"}]}`), "d", all)
	require.ErrorIs(t, err, influx.ErrNoDatabase)
	_, err = influx.Fields(t.Context(), influx.Config{URL: "http://127.0.0.1:1"}, "d", all)
	failed := (*influx.Error)(nil)
	require.ErrorAs(t, err, &failed)
	require.Equal(t, influx.KindTransient, failed.Kind)
}

// FuzzFields reads any answer: it is understood, or an error.
func FuzzFields(f *testing.F) {
	f.Add(`{"results":[{"series":[{"name":"m","columns":["fieldKey","fieldType"],"values":[["a","float"]]}]}]}`)
	f.Add(`{"results":[{"series":[{"name":"m","values":[[1,null],["a","float","b"]]}]}]}{}`)
	f.Add(`{"results":[{"error":"database not found: d"}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		found, err := influx.Fields(t.Context(), answers(t, http.StatusOK, body), "d", all)
		require.True(t, err == nil || found == nil)
		for _, fields := range found {
			for _, types := range fields {
				require.NotEmpty(t, types)
			}
		}
	})
}
