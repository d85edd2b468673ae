package endtoend_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// TestLoaderDiesBetweenWriteAndAck kills the load worker (SIGKILL) when InfluxDB has
// stored a batch and the worker has not heard of it. One of two mirrors is down
// all the while, as `starter loads` tells.
func TestLoaderDiesBetweenWriteAndAck(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	b := newBench(t, stacktest.StartOwn(t))
	client := b.st.Pipeline(t)

	// The batch whose answer the worker does not live to see.
	const points, perBatch = 600, 100
	fatal := 1 + random.IntN(points/perBatch)
	t.Logf("the answer to write %d is held back", fatal)
	upstream := stacktest.ReverseProxy(t, b.st.Influx)
	var mu sync.Mutex
	var written []int // points of each write
	held, killed := make(chan struct{}), make(chan struct{})
	server := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/write" {
			upstream.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // of the one that dies
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		written = append(written, bytes.Count(body, []byte("\n")))
		n := len(written)
		mu.Unlock()
		if n != fatal {
			upstream.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		upstream.ServeHTTP(answer, r)
		if answer.Code != http.StatusNoContent {
			text, _ := io.ReadAll(answer.Body)
			t.Errorf("write %d: %d %s", fatal, answer.Code, text)
		}
		close(held)
		<-killed
	}))
	writer, err := influx.NewWriter(influx.Config{URL: b.st.Influx})
	require.NoError(t, err)
	require.NoError(t, writer.CreateDatabase(t.Context(), "kill"))

	var messages []pipeline.Outgoing
	start := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for i := range points {
		body := fmt.Sprintf(`{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"org"},"payload":{"options":{"database":"kill"},`+
			`"points":[{"measurement":"m","fields":{"v":%d},"time":%d}]}}`, i, start.UnixMilli()+int64(i))
		messages = append(messages, pipeline.Outgoing{Subject: pipeline.PrepSubject(pipeline.OperationLive, "kill"), Body: []byte(body)})
	}
	_, err = client.Publish(t.Context(), messages)
	require.NoError(t, err)

	loader := b.worker("load")
	down := refusing(t)
	declare(b, fmt.Sprintf(`
[jobs.live_load_influx_v1.kill]
continuous = { interval = "PT0.1S" }
heartbeat_timeout = "PT3S"

[jobs.live_load_influx_v1.kill.spec]
location = "kill"
influx_url = %q
batch_points = %d
batch_age = "PT5S"
iteration_duration = "PT2S"
mirrors = [{ name = "down", influx_url = "http://%s" }]
`, server, perBatch, down.address()))
	<-held
	loader.Kill()
	close(killed)
	// A batch is smaller where a lap ends.
	mu.Lock()
	stored := 0
	for _, n := range written[:fatal] {
		stored += n
	}
	unheard := written[fatal-1]
	mu.Unlock()
	t.Logf("%d points are stored, %d of them without an answer", stored, unheard)
	count := func() int64 {
		counts, err := influx.Count(t.Context(), influx.Config{URL: b.st.Influx}, "kill", "m")
		require.NoError(t, err)
		return counts["v"]
	}
	require.EqualValues(t, stored, count(), "stored")
	loads := func() map[string]*jobsv1.Load {
		var all jobsv1.ListLoadsResponse
		require.NoError(t, protojson.Unmarshal([]byte(b.ok("loads", "kill", "-o", "json")), &all))
		byMirror := map[string]*jobsv1.Load{}
		for _, l := range all.GetLoads() {
			byMirror[l.GetMirror()] = l
		}
		return byMirror
	}
	require.GreaterOrEqual(t, loads()["default"].GetWaiting(), int64(points-stored+unheard), "and not acknowledged")

	b.worker("load")
	stacktest.WaitFor(t, "all to be acknowledged", func() (bool, error) { return loads()["default"].GetWaiting() == 0, nil })
	require.EqualValues(t, points, count(), "nothing is lost, nothing is there twice")
	stacktest.WaitFor(t, "the other mirror to be seen as down", func() (bool, error) {
		load := loads()["down"]
		return load.GetDownTime() != nil && load.GetErrorClass() == "InfluxUnreachable", nil
	})
	require.EqualValues(t, points, loads()["down"].GetWaiting())
	require.NotNil(t, loads()["down"].GetOldestTime())
	text := b.ok("loads")
	require.Regexp(t, `kill +live +default +ok +0 `, text)
	require.Regexp(t, `kill +live +down +(down|trying) +600 `, text)
	require.Regexp(t, `kill/live/down is down since .*: InfluxUnreachable: influx http://`+down.address(), text)

	a := b.starter("loads", "nowhere")
	require.Equal(t, 1, a.code)
	require.Contains(t, a.stderr, "starter: nothing has been loaded of location nowhere\n")
	a = starter(t, append(b.st.Env(), "DENDRA_NATS_URL=nats://"+refusing(t).address()), "loads")
	require.Equal(t, 1, a.code)
	require.Regexp(t, `(?m)^starter: nats://127\.0\.0\.1:\d+ cannot be reached: [^\n]+\n\z`, a.stderr)
}
