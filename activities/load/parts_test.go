package load_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestLargeWriteGoesInParts: two requests at the same time carry a large write, and
// all values of a point, however its tags are ordered, are in one of them, the last
// one last.
func TestLargeWriteGoesInParts(t *testing.T) {
	b := newBench(t, "parts", stacktest.Start(t))
	b.spec.BatchAge, b.spec.Lap = job.Duration(5*time.Second), job.Duration(5*time.Second)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const (
		messages = 100
		each     = 100 // points in a message
		series   = 40  // by chance all in one part once in 2³⁹ times
		times    = 300
	)
	last := map[string]int{} // the value of the last point of a series and time
	var bodies []string
	for m := range messages {
		var points []string
		for p := range each {
			s, at, value := random.IntN(series), random.IntN(times), m*each+p
			tags := fmt.Sprintf(`"site":"a,b c","unit":"u%d"`, s)
			if random.IntN(2) == 0 {
				tags = fmt.Sprintf(`"unit":"u%d","site":"a,b c"`, s)
			}
			points = append(points, fmt.Sprintf(`{"measurement":"m","tags":{%s},"fields":{"v":%d},"time":%d}`, tags, value, noon.UnixMilli()+int64(at)))
			last[fmt.Sprintf("u%d %d", s, at)] = value
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
	b.proxy.onWrite(func(_ http.ResponseWriter, _ *http.Request, body []byte) bool {
		mu.Lock()
		if writes = append(writes, body); len(writes) == 2 {
			close(both)
		}
		mu.Unlock()
		select {
		case <-both: // neither is answered before the other has come
		case <-t.Context().Done():
		}
		return false
	})
	counts := b.drain(t)
	require.EqualValues(t, messages*each, counts["points"])
	require.Equal(t, 2, len(writes), "writes") //nolint:testifylint // Len would print them all.
	lines := 0
	in := map[string]int{} // the write that a series is in
	for n, body := range writes {
		for line := range bytes.Lines(body) {
			lines++
			_, unit, found := strings.Cut(string(line), "unit=")
			require.True(t, found)
			unit = unit[:strings.IndexAny(unit, ", ")]
			if had, seen := in[unit]; seen {
				require.Equal(t, had, n, unit)
			}
			in[unit] = n
		}
	}
	require.Equal(t, messages*each, lines)
	require.Len(t, in, series)

	rows, err := influx.Query(t.Context(), b.influx, b.name, "SELECT v FROM m GROUP BY unit")
	require.NoError(t, err)
	points := 0
	for _, row := range rows {
		for _, value := range row.Values {
			at, err := value[0].(json.Number).Int64()
			require.NoError(t, err)
			key := fmt.Sprintf("%s %d", row.Tags["unit"], at-noon.UnixMilli())
			require.Equal(t, json.Number(fmt.Sprint(last[key])), value[1], key)
			points++
		}
	}
	require.Len(t, last, points)
}
