package load_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestLargeWriteGoesInParts: two requests at the same time carry a large write, and
// all points of a measurement, however their tags are ordered, are in one of them, the
// last one about a time last. When one of the two fails, all comes again.
func TestLargeWriteGoesInParts(t *testing.T) {
	t.Parallel()
	b := newBench(t, "parts", stacktest.Start(t))
	random := stacktest.Random(t)
	const (
		messages     = 1000
		each         = 10 // points in a message
		measurements = 40 // by chance all in one part once in 2³⁹ times
		times        = 300
	)
	last := map[string]int{} // the value of the last point of a measurement and time
	var bodies []string
	for m := range messages {
		var points []string
		for p := range each {
			name, at, value := fmt.Sprintf("m %d", random.IntN(measurements)), random.IntN(times), m*each+p
			tags := `"site":"a,b c","unit":"u"`
			if random.IntN(2) == 0 {
				tags = `"unit":"u","site":"a,b c"`
			}
			points = append(points, fmt.Sprintf(`{"measurement":%q,"tags":{%s},"fields":{"v":%d},"time":%d}`, name, tags, value, noon.UnixMilli()+int64(at)))
			last[fmt.Sprintf("%s %d", name, at)] = value
		}
		bodies = append(bodies, fmt.Sprintf(`{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"org","station":"s"},`+
			`"payload":{"options":{"database":%q,"precision":"ms"},"points":[%s]}}`, b.name, strings.Join(points, ",")))
	}
	b.publish(t, bodies...)
	_, err := influx.Query(t.Context(), b.influx, "", `CREATE DATABASE "parts"`)
	require.NoError(t, err)

	var mu sync.Mutex
	var writes [][]byte
	both := make(chan struct{})
	b.proxy.onWrite(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		mu.Lock()
		writes = append(writes, body)
		n := len(writes)
		if n == 2 {
			close(both)
		}
		mu.Unlock()
		select {
		case <-both: // neither is answered before the other has come
		case <-t.Context().Done():
		}
		return n == 1 && answer(http.StatusServiceUnavailable, "busy")(w, r, body)
	})
	counts := b.oneBatch(t, messages*each)
	require.EqualValues(t, messages*each, counts["points"])
	require.EqualValues(t, messages, counts["messages"])
	require.Equal(t, 4, len(writes), "writes") //nolint:testifylint // Len would print them all.
	for _, pair := range [][][]byte{writes[:2], writes[2:]} {
		lines := 0
		in := map[string]int{} // the write that a measurement is in
		for n, body := range pair {
			for line := range bytes.Lines(body) {
				lines++
				name, _, found := strings.Cut(string(line), ",")
				require.True(t, found)
				if had, seen := in[name]; seen {
					require.Equal(t, had, n, name)
				}
				in[name] = n
			}
		}
		require.Equal(t, messages*each, lines)
		require.Len(t, in, measurements)
	}

	rows, err := influx.Query(t.Context(), b.influx, b.name, "SELECT v FROM /m/")
	require.NoError(t, err)
	points := 0
	for _, row := range rows {
		for _, value := range row.Values {
			at, err := value[0].(json.Number).Int64()
			require.NoError(t, err)
			key := fmt.Sprintf("%s %d", row.Name, at-noon.UnixMilli())
			require.Equal(t, json.Number(fmt.Sprint(last[key])), value[1], key)
			points++
		}
	}
	require.Len(t, last, points)
}
