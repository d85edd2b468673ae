package influx_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
)

// rows reads an answer, and gives its rows as text.
func rows(t *testing.T, body string) (read []string, err error) {
	t.Helper()
	err = influx.Rows(t.Context(), answers(t, http.StatusOK, body), "d", "SELECT", 2, func(at int64, values []jsontext.Value) error {
		require.GreaterOrEqual(t, at, int64(0))
		read = append(read, string(values[0])+" "+string(values[1]))
		return nil
	})
	return read, err
}

func TestRowsOfSeveralChunks(t *testing.T) {
	t.Parallel()
	read, err := rows(t, `{"results":[{"statement_id":0,"series":[{"name":"m","columns":["time","a","b"],"values":[[1,1.5,null],[2,"x,\"y",true]],"partial":true}],"partial":true}]}
{"results":[{"statement_id":0,"series":[{"name":"m","columns":["time","a","b"],"values":[[9223372036854775807,-9223372036854775808,1e+300]]}]}]}
`)
	require.NoError(t, err)
	require.Equal(t, []string{"1.5 null", `"x,\"y" true`, "-9223372036854775808 1e+300"}, read)
	read, err = rows(t, `{"results":[{"statement_id":0}]}`)
	require.NoError(t, err)
	require.Empty(t, read)
}

// TestRowsThatCannotBeRead: what is cut, or no rows, is never taken for the end.
func TestRowsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const begin = `{"results":[{"series":[{"values":[[1,2,3]`
	for body, part := range map[string]string{
		begin:                              "unexpected EOF",
		begin + `,[2`:                      "the answer cannot be read",
		begin + `]}]}]`:                    "the answer cannot be read",
		begin + `,[2,3]]}]}]}`:             "a row has 1 values, and the query selects 2",
		begin + `,[2,3,4,5]]}]}]}`:         "a row has 3 values, and the query selects 2",
		begin + `,[]]}]}]}`:                "a row has 0 values",
		begin + `,["x",3,4]]}]}]}`:         `the time of a row is "x"`,
		begin + `]}],"error":"timeout"}]}`: "timeout",
		begin + `]}]}]}` + "\n" + `{"error":"shut down"}`: "shut down",
		begin + `]}]}]}` + "\n[]":                         "in the place of an object",
		`{"results":{}}`:                                  "in the place of an array",
	} {
		_, err := rows(t, body)
		failed := (*influx.Error)(nil)
		require.ErrorAs(t, err, &failed, body)
		require.ErrorContains(t, err, part, body)
	}
	_, err := rows(t, `{"results":[{"error":"database not found: d"}]}`)
	require.ErrorIs(t, err, influx.ErrNoDatabase)
	stopped := errors.New("enough")
	err = influx.Rows(t.Context(), answers(t, http.StatusOK, begin+`]}]}]}`), "d", "SELECT", 2, func(int64, []jsontext.Value) error { return stopped })
	require.ErrorIs(t, err, stopped)
}
