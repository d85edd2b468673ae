package endtoend_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// hostileVariable is how long the neighbour of TestHostileNeighbour works.
const hostileVariable = "DENDRA_HOSTILE_FOR"

// TestHostileNeighbour has a day of one organization's loggers go by in twenty minutes, while
// all that another one controls is hostile: its LoggerNet server, its vendor, its publisher of
// NATS, its uploads, and callers without credentials. Every bound holds, no process ends or
// grows, and the first organization's points are exact.
func TestHostileNeighbour(t *testing.T) {
	t.Parallel()
	length := time.Duration(stacktest.Size(0, 20)) * time.Minute
	if text := os.Getenv(hostileVariable); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		require.NoError(t, err, hostileVariable)
	}
	if length == 0 {
		t.Skip("takes twenty minutes: DENDRA_TEST_SOAK=1 or " + hostileVariable + "=5m asks for it")
	}
	random := stacktest.Random(t)
	b := newBench(t, stacktest.StartOwn(t))
	l := newLoggers(b, "meadow", 2, 24*time.Hour, random)
	h := newHostile(b, random)
	h.bound()
	before := h.databases()

	h.processes = map[string]*stacktest.Process{
		"extract": b.worker("extract", "DENDRA_SECRET_MALLORY=token"), "load": b.worker("load"), "backend": b.worker("backend"), "serve": h.serve(),
	}
	declare(b, l.jobs()+h.jobs())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h.attack(ctx)

	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for time.Since(began) < length {
		<-tick.C
		passed := time.Duration(float64(l.to.Sub(l.from)) * min(1, time.Since(began).Seconds()/length.Seconds()))
		l.pass(l.from.Add(passed).Sub(*l.now.Load()))
		h.look(time.Since(began).Seconds() / length.Seconds())
	}
	l.pass(l.to.Sub(l.from))
	stop()
	h.working.Wait()
	h.tell()

	c := newChaos(t, random)
	l.requireRead(c)
	l.requirePrepared(c)
	points := l.requireLoaded()
	require.Subset(t, append(before, "meadow", "mallory"), h.databases())
	h.requireNoneInQuarantine("meadow")
	h.requireFlat()
	t.Logf("%d points of the neighbour are exact", points)
}

// requirePrepared waits until the jobs of the organization have done what there is.
func (l *loggers) requirePrepared(c *chaos) {
	l.Helper()
	for _, stream := range []string{pipeline.StreamRaw, pipeline.StreamPrepared} {
		var positions map[string]stacktest.Position
		done := c.await(5*time.Minute, func() bool {
			var err error
			if positions, err = l.positions(stream); err != nil {
				return false
			}
			own := 0
			for name, p := range positions {
				if strings.Contains(name, l.name) {
					own++
					if !p.Done() {
						return false
					}
				}
			}
			return own > 0
		})
		require.True(l, done, "consumers of stream %s: %v", stream, positions)
	}
}

// hostile is all that an organization controls that means harm.
type hostile struct {
	*bench
	random    *rand.Rand
	pipeline  *pipeline.Client
	logger    string // address of its LoggerNet server
	vendor    string // URL
	server    string // URL of the Job API that it has no credentials for
	token     string // of somebody else
	processes map[string]*stacktest.Process
	working   sync.WaitGroup
	done      map[string]*atomic.Int64 // what was tried, by kind
	samples   []hostileSample
}

// hostileSample is how large things were at a part of the time.
type hostileSample struct {
	part   float64
	memory map[string]int   // by process, in bytes
	disk   map[string]int64 // by folder of the stack, in bytes
}

// hostileBounds are what streams hold, in bytes: so little that they are full soon.
var hostileBounds = map[string]int64{
	pipeline.StreamRaw: 32 << 20, pipeline.StreamPrepared: 16 << 20, pipeline.StreamQuarantine: 8 << 20, pipeline.StreamRunLogs: 8 << 20,
}

// bound sets the bounds of the streams, which the stack has made.
func (h *hostile) bound() {
	h.Helper()
	require.NoError(h, h.pipeline.Ready(h.Context()))
	js := h.pipeline.JetStream()
	for name, most := range hostileBounds {
		stream, err := js.Stream(h.Context(), name)
		require.NoError(h, err)
		config := stream.CachedInfo().Config
		config.MaxBytes = most
		_, err = js.UpdateStream(h.Context(), config)
		require.NoError(h, err)
	}
}

// Kinds of attacks.
var hostileKinds = []string{"frames", "messages", "vendor requests", "uploads", "connections", "calls"}

func newHostile(b *bench, random *rand.Rand) *hostile {
	b.Helper()
	h := &hostile{bench: b, random: random, pipeline: b.st.Pipeline(b), done: map[string]*atomic.Int64{}}
	for _, kind := range hostileKinds {
		h.done[kind] = &atomic.Int64{}
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(b, err)
	h.logger = listener.Addr().String()
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		h.acceptLoggers(listener)
	}()
	b.Cleanup(func() { _ = listener.Close(); <-serving })
	h.vendor = stacktest.Serve(b, http.HandlerFunc(h.answer))
	h.upload("mallory/bomb.png", imagingtest.Bomb())
	toa5 := "\"TOA5\",\"s\",\"CR1000\",\"1\",\"o\",\"p\",\"1\",\"T\"\r\n\"TIMESTAMP\",\"A\"\r\n\"TS\",\"\"\r\n\"\",\"\"\r\n"
	h.upload("mallory/line.dat.gz", zipped(b, toa5, "0", 256<<20))
	h.upload("mallory/lines.dat.gz", zipped(b, toa5, "x\n", 64<<20))
	return h
}

// zipped is a text, and another one that fills up to a size, compressed.
func zipped(t testing.TB, begin, again string, size int) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := gzip.NewWriterLevel(&file, gzip.BestSpeed)
	require.NoError(t, err)
	_, err = io.WriteString(w, begin)
	require.NoError(t, err)
	chunk := bytes.Repeat([]byte(again), 1<<20/len(again))
	for written := 0; written < size; written += len(chunk) {
		_, err = w.Write(chunk)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return file.Bytes()
}

func (h *hostile) jobs() string {
	const loop = `continuous = { interval = "PT0.1S" }
retry_backoff = { initial = "PT0.2S", max = "PT1S" }
`
	return fmt.Sprintf(`
[jobs.extract_campbell_scientific_ldmp.mallory]
%[1]s
[jobs.extract_campbell_scientific_ldmp.mallory.spec]
server = "%[2]s"
organization = "mallory"
stations = [{ station = "creek", utc_offset = "-08:00", tables = ["OneMin"] }]

[jobs.prepare_campbell_scientific_ldmp.mallory]
%[1]s
[jobs.prepare_campbell_scientific_ldmp.mallory.spec]
organization = "mallory"
location = "mallory"

[jobs.live_load_influx_v1.mallory]
%[1]s
[jobs.live_load_influx_v1.mallory.spec]
location = "mallory"
influx_url = "%[3]s"
batch_age = "PT0.2S"

[jobs.extract_hobo_time_frame.mallory]
recurring = { recur_every = "PT2S" }
run_timeout = "PT20S"
max_retry_count = 0
[jobs.extract_hobo_time_frame.mallory.spec]
base_url = "%[4]s"
token = "secret://mallory"
organization = "mallory"
location = "mallory"
backfill = "PT1H"
loggers = [{ serial = "21234001", station = "Creek" }]
`, loop, h.logger, h.st.Influx, h.vendor)
}

// acceptLoggers is its LoggerNet server: frames without end that are no records, records of a
// station that is not its own, one frame without end, and silence.
func (h *hostile) acceptLoggers(listener net.Listener) {
	foreign := append(ldmptest.Encode(ldmp.Record{Number: 1, Station: "stn_0", Table: "OneMin", Time: "2026-01-01T00:00:00",
		Fields: []ldmp.Field{{Name: "AT", Type: "xsd:float", Value: "99"}}}), 0)
	zeros := bytes.Repeat([]byte("0"), 1<<20)
	var serving sync.WaitGroup
	defer serving.Wait()
	for n := 0; ; n++ {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		serving.Go(func() {
			defer func() { _ = connection.Close() }()
			if n%8 == 7 {
				_, _ = io.Copy(io.Discard, connection) // Until the other end gives up.
				return
			}
			for frame, err := 0, error(nil); err == nil; frame++ {
				h.done["frames"].Add(1)
				switch n % 4 {
				case 0:
					_, err = fmt.Fprintf(connection, "frame %d of %d\x00", frame, n)
				case 1:
					_, err = connection.Write(foreign)
				case 2:
					_, err = connection.Write(zeros)
				default:
					_, err = fmt.Fprintf(connection, "<record station=%q table=\"OneMin\">\x00", strings.Repeat("&#x202e;", frame%1000))
				}
			}
		})
	}
}

// answer is its vendor: no end, nothing, another host, and JSON without end.
func (h *hostile) answer(w http.ResponseWriter, r *http.Request) {
	n := h.done["vendor requests"].Add(1)
	w.Header().Set("Content-Type", "application/json")
	var err error
	switch n % 4 {
	case 0:
		http.Redirect(w, r, "http://127.0.0.3:9/"+r.URL.Path, http.StatusTemporaryRedirect)
	case 1:
		<-r.Context().Done()
	case 2:
		for blanks := bytes.Repeat([]byte(" "), 1<<20); err == nil; {
			_, err = w.Write(blanks)
		}
	default:
		for open := strings.Repeat(`{"observation_list":[`, 1<<14); err == nil; {
			_, err = io.WriteString(w, open)
		}
	}
}

// serve starts a Job API with a token for somebody else.
func (h *hostile) serve() *stacktest.Process {
	h.Helper()
	h.token = auth.NewToken()
	credentials := writeFile(h.T, "credentials.toml", auth.Line("vera", verbs.RoleViewer, auth.Hash(h.token), time.Time{}))
	address := "127.0.0.1:" + stacktest.FreePort(h)
	h.server = "http://" + address
	serving := stacktest.StartProcess(h, h.st, "starter", "serve", "--listen", address, "--credentials", credentials,
		"--max-connections", "200", "--audit-log", filepath.Join(h.TempDir(), "audit.log"))
	stacktest.WaitFor(h, "the server to be ready", func() (bool, error) {
		response, err := http.Get(h.server + "/readyz") //nolint:noctx // Of this host.
		if err != nil {
			return false, err
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	return serving
}

// attack begins all attacks, until the context ends.
func (h *hostile) attack(ctx context.Context) {
	h.every(ctx, 200*time.Millisecond, h.publish)
	h.every(ctx, 3*time.Second, h.useUploads)
	h.every(ctx, 100*time.Millisecond, h.connect(ctx))
	h.every(ctx, 100*time.Millisecond, h.call)
}

func (h *hostile) every(ctx context.Context, interval time.Duration, do func(ctx context.Context, n int)) {
	h.working.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				do(ctx, n)
			}
		}
	})
}

// publish puts messages on the raw stream, under its own subject.
func (h *hostile) publish(ctx context.Context, n int) {
	subject := pipeline.RawSubject(pipeline.OperationLive, "mallory", ldmp.Source)
	for i := range 50 {
		serial := n*50 + i
		in := pipeline.Context{ImportedAt: time.Now().UTC(), OrgSlug: "mallory", Source: ldmp.Source, Station: "creek", Table: "OneMin", UTCOffset: "-08:00"}
		record := ldmp.Record{Number: int64(serial), Station: "creek", Table: "OneMin", Time: fmt.Sprintf("2026-01-01T00:00:%02d", serial%60),
			Fields: []ldmp.Field{{Name: "AT", Type: "xsd:float", Value: fmt.Sprint(serial)}}}
		header := nats.Header{}
		switch serial % 7 {
		case 1:
			in.StorageDatabase = fmt.Sprintf("mallory_%d", serial)
		case 2:
			header.Set(pipeline.HeaderReplay, time.Now().UTC().Format(time.RFC3339))
		case 3:
			record.Time = "2099-01-01T00:00:00"
		case 4:
			record.Fields[0].Value = strings.Repeat("x", 1000)
		case 5:
			in.OrgSlug, record.Station = "meadow", "stn_0"
		}
		body, err := pipeline.Message[ldmp.Record]{Context: in, Payload: record}.Encode()
		if err == nil && serial%7 == 6 {
			body = body[:len(body)/2]
		}
		if err == nil && serial%701 == 0 {
			body = bytes.Repeat([]byte("["), 900_000)
		}
		if err == nil {
			_, err = h.pipeline.JetStream().PublishMsg(ctx, &nats.Msg{Subject: subject, Header: header, Data: body})
		}
		if err == nil {
			h.done["messages"].Add(1)
		} else if ctx.Err() == nil {
			h.Errorf("publish: %v", err)
			return
		}
	}
}

// useUploads starts runs for its uploads.
func (h *hostile) useUploads(ctx context.Context, n int) {
	uploads := []struct{ jobType, spec string }{
		{"GeneratePhotoVariantsToMinio", `{"bucket": "uploads", "key": "mallory/bomb.png", "prefix": "mallory"}`},
		{"ImportFile", `{"key": "mallory/line.dat.gz", "organization": "mallory", "station": "creek", "time_zone": "-08:00"}`},
		{"ImportFile", `{"key": "mallory/lines.dat.gz", "organization": "mallory", "station": "creek", "time_zone": "-08:00"}`},
	}
	of := uploads[n%len(uploads)]
	types := activities.Types()
	jobType := types[slices.IndexFunc(types, func(t job.Type) bool { return t.Name == of.jobType })]
	definition := jobtest.NewJob(jobType, fmt.Sprintf("mallory-%d", n), job.Trigger{OneShot: &job.OneShot{}}, nil)
	definition.Spec, definition.Options.MaxRetryCount = []byte(of.spec), 0
	if _, err := h.client.Jobs.TriggerJob(ctx, definition); err == nil {
		h.done["uploads"].Add(1)
	} else if ctx.Err() == nil {
		h.Errorf("start: %v", err)
	}
}

// connect holds connections of an address of its own to the Job API, some with half a request.
func (h *hostile) connect(ctx context.Context) func(ctx context.Context, n int) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: 5 * time.Second}
	var held sync.WaitGroup
	context.AfterFunc(ctx, held.Wait)
	return func(ctx context.Context, n int) {
		for range 5 {
			connection, err := dialer.DialContext(ctx, "tcp4", strings.TrimPrefix(h.server, "http://"))
			if err != nil {
				continue // It is refused, as it should be.
			}
			h.done["connections"].Add(1)
			if n%2 == 0 {
				_, _ = io.WriteString(connection, "POST / HTTP/1.1\r\nHost: h\r\nX-")
			}
			held.Go(func() {
				unhook := context.AfterFunc(ctx, func() { _ = connection.Close() })
				defer unhook()
				_, _ = io.Copy(io.Discard, connection)
				_ = connection.Close()
			})
		}
	}
}

// call makes calls without credentials, and with wrong ones.
func (h *hostile) call(ctx context.Context, n int) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 4)}}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dialer.DialContext}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.server+"/dendra.jobs.v1.JobService/ListJobs", strings.NewReader(strings.Repeat("[", 1<<20)))
	if err != nil {
		h.Error(err)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	if n%2 == 0 {
		request.Header.Set("Authorization", "Bearer "+auth.NewToken())
	}
	response, err := client.Do(request)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	if h.done["calls"].Add(1); response.StatusCode != http.StatusUnauthorized {
		h.Errorf("a call without credentials is answered with %s", response.Status)
	}
}

// look checks what has to hold all the time, and takes a sample.
func (h *hostile) look(part float64) {
	h.Helper()
	request, err := http.NewRequestWithContext(h.Context(), http.MethodGet, h.server+"/", nil)
	require.NoError(h, err)
	request.Header.Set("Authorization", "Bearer "+h.token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(h, err, "a caller with a token is served")
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	require.Equal(h, http.StatusOK, response.StatusCode)

	for stream, most := range hostileBounds {
		s, err := h.pipeline.JetStream().Stream(h.Context(), stream)
		require.NoError(h, err)
		require.LessOrEqual(h, int64(s.CachedInfo().State.Bytes), most, stream)
	}
	sample := hostileSample{part: part, memory: map[string]int{"stack": stacktest.Memory(h.st.PID)}, disk: map[string]int64{}}
	for name, p := range h.processes {
		require.False(h, p.Ended(), "%s has ended", name)
		sample.memory[name] = stacktest.Memory(p.PID())
	}
	folders, err := os.ReadDir(h.st.Data)
	require.NoError(h, err)
	for _, folder := range folders {
		sample.disk[folder.Name()] = sizeOf(h, filepath.Join(h.st.Data, folder.Name()))
	}
	h.samples = append(h.samples, sample)
}

// sizeOf is how many bytes the files of a folder have. Files may go meanwhile.
func sizeOf(t testing.TB, folder string) (bytes int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				bytes += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
	return bytes
}

func (h *hostile) databases() []string {
	h.Helper()
	names, err := influx.Databases(h.Context(), influx.Config{URL: h.st.Influx})
	require.NoError(h, err)
	return slices.Sorted(slices.Values(names))
}

// requireNoneInQuarantine looks for messages of an organization.
func (h *hostile) requireNoneInQuarantine(organization string) {
	h.Helper()
	stream, err := h.pipeline.JetStream().Stream(h.Context(), pipeline.StreamQuarantine)
	require.NoError(h, err)
	require.NotZero(h, stream.CachedInfo().State.Msgs)
	for _, stage := range []pipeline.Stage{pipeline.StageExtract, pipeline.StagePrepare, pipeline.StageLoad} {
		message, err := stream.GetLastMsgForSubject(h.Context(), fmt.Sprintf("dendra.quarantine.v1.%s.live.%s.>", stage, organization))
		require.ErrorIs(h, err, jetstream.ErrMsgNotFound, "%v", message)
	}
}

func (h *hostile) tell() {
	h.Helper()
	for _, kind := range hostileKinds {
		h.Logf("%d %s", h.done[kind].Load(), kind)
	}
	for _, name := range slices.Sorted(maps.Keys(hostileBounds)) {
		stream, err := h.pipeline.JetStream().Stream(h.Context(), name)
		require.NoError(h, err)
		state := stream.CachedInfo().State
		h.Logf("stream %s has %d MiB, and has dropped %d of %d messages", name, state.Bytes>>20, state.FirstSeq-1, state.LastSeq)
	}
	for _, at := range []int{len(h.samples) / 3, 2 * len(h.samples) / 3, len(h.samples) - 1} {
		s := h.samples[at]
		var text strings.Builder
		for _, name := range slices.Sorted(maps.Keys(s.memory)) {
			fmt.Fprintf(&text, " %s %d MiB;", name, s.memory[name]>>20)
		}
		text.WriteString(" files:")
		for _, name := range slices.Sorted(maps.Keys(s.disk)) {
			fmt.Fprintf(&text, " %s %d MiB;", name, s.disk[name]>>20)
		}
		h.Logf("after %.0f%% of the time:%s", 100*s.part, &text)
	}
}

// requireFlat compares the medians of the second and the last third of the time.
func (h *hostile) requireFlat() {
	h.Helper()
	median := func(from, to float64, of func(hostileSample) int64) int64 {
		var all []int64
		for _, s := range h.samples {
			if s.part >= from && s.part < to {
				all = append(all, of(s))
			}
		}
		require.NotEmpty(h, all)
		slices.Sort(all)
		return all[len(all)/2]
	}
	for name := range h.processes {
		of := func(s hostileSample) int64 { return int64(s.memory[name]) }
		before, after := median(1./3, 2./3, of), median(2./3, 2, of)
		require.Less(h, after, before*5/4+32<<20, "memory of %s", name)
	}
	nats := func(s hostileSample) int64 { return s.disk["nats"] }
	most := int64(64 << 20) // Of buckets and indexes.
	for _, bytes := range hostileBounds {
		most += 2 * bytes
	}
	require.Less(h, median(2./3, 2, nats), most, "files of NATS")
}
