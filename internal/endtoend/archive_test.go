package endtoend_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const archiveJob = `
[jobs.post_to_archive.main]
continuous = { interval = "PT0.1S" }
heartbeat_timeout = "PT3S"
retry_backoff = { initial = "PT0.2S", max = "PT1S" }

[jobs.post_to_archive.main.spec]
flush_age = "PT0.2S"
iteration_duration = "PT0.5S"
`

// rawStream publishes raw messages and looks at what becomes of them.
type rawStream struct {
	*bench
	client *pipeline.Client
	serial int
}

func newRawStream(b *bench) *rawStream {
	b.Helper()
	client := b.st.Pipeline(b)
	require.NoError(b, client.Ready(b.Context()))
	return &rawStream{bench: b, client: client}
}

func (r *rawStream) publish(n int, sources ...string) {
	r.Helper()
	var messages []pipeline.Outgoing
	for range n {
		for _, source := range sources {
			r.serial++
			messages = append(messages, pipeline.Outgoing{
				Subject: "dendra.raw.v1." + source, ID: fmt.Sprint(r.serial),
				Body: fmt.Appendf(nil, `{"context":{"imported_at":"2026-03-04T12:00:00Z"},"payload":{"n":%d}}`, r.serial),
			})
		}
	}
	_, err := r.client.Publish(r.Context(), messages)
	require.NoError(r, err)
}

// acknowledged waits until the archive's consumer has acknowledged everything.
func (r *rawStream) acknowledged() {
	r.Helper()
	state, err := r.client.StreamState(r.Context(), pipeline.StreamRaw)
	require.NoError(r, err)
	stacktest.WaitFor(r, "the archive to have everything", func() (bool, error) {
		consumers, err := r.client.ConsumerStates(r.Context(), pipeline.StreamRaw)
		for _, c := range consumers {
			if c.Name == "archive-main" {
				return c.AckFloor == state.Last, err
			}
		}
		return false, err
	})
}

func (r *rawStream) audit(args ...string) *jobsv1.ArchiveReport {
	r.Helper()
	report := &jobsv1.ArchiveReport{}
	require.NoError(r, protojson.Unmarshal([]byte(r.ok(append([]string{"archive", "audit", "-o", "json"}, args...)...)), report))
	return report
}

// archived lists objects with messages.
func (r *rawStream) archived(args ...string) []*jobsv1.ArchiveObject {
	r.Helper()
	list := &jobsv1.ListArchiveObjectsResponse{}
	require.NoError(r, protojson.Unmarshal([]byte(r.ok(append([]string{"archive", "list", "-o", "json"}, args...)...)), list))
	return list.GetObjects()
}

// TestArchiveWorkerDiesBetweenPutAndAck kills the worker when the store has
// answered one of its writes, and before the worker hears of it.
func TestArchiveWorkerDiesBetweenPutAndAck(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	b := newBench(t, stacktest.StartOwn(t))
	r := newRawStream(b)
	proxy := objectstest.NewProxy(t, b.st.S3.Endpoint)
	throughProxy := "DENDRA_S3_ENDPOINT=" + proxy.URL
	load := b.worker("load", throughProxy)
	declare(b, archiveJob)

	for round := range 3 {
		var once sync.Once
		killed := make(chan string)
		left := random.IntN(3) // objects that are written before
		var mu sync.Mutex
		proxy.After(func(request objectstest.Request) {
			if request.Method != http.MethodPut || !strings.HasSuffix(request.Path, ".zst") || request.Status != http.StatusOK {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if left--; left < 0 {
				once.Do(func() {
					load.Kill()
					killed <- request.Path
				})
			}
		})
		r.publish(1+random.IntN(300), "live.a.csi", "live.b.csi", "live.a.hobolink")
		path := <-killed
		proxy.After(nil)
		t.Logf("round %d: killed after the write of %s", round, path)
		before := len(proxy.Requests())
		r.publish(random.IntN(20), "live.a.csi")
		load = b.worker("load", throughProxy)
		r.acknowledged()
		again := []int{}
		for _, request := range proxy.Requests()[before:] {
			if request.Method == http.MethodPut && request.Path == path {
				again = append(again, request.Status)
			}
		}
		// Once more for each iteration that fails before it has told where it is.
		require.NotEmpty(t, again)
		for _, status := range again {
			require.Equal(t, http.StatusPreconditionFailed, status, "the same key, and equal content")
		}
		require.Empty(t, r.audit("--deep").Findings)
	}
	report := r.audit("--deep")
	require.Len(t, report.GetStreams(), 1)
	require.EqualValues(t, r.serial, report.GetStreams()[0].GetMessages())
	require.EqualValues(t, r.serial, report.GetStreams()[0].GetLastSequence())
	require.Zero(t, report.GetStreams()[0].GetPresent().GetWaiting())
	require.Empty(t, report.GetStreams()[0].GetGone())
	requireArchiveVerbs(t, r)

	// Back into the pipeline, by a job in a queue.
	span := fmt.Sprintf(`"from":%q,"to":%q`, time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339))
	lines := strings.Count(b.ok("archive", "cat", "--organization", "a", "--source", "hobolink"), "\n")
	detail := b.completed("--type", "ReplayArchive", "--spec", `{"organization":"a","source":"hobolink",`+span+`}`)
	require.EqualValues(t, lines, detail.Output.Counts["messages"])
	r.acknowledged()
	report = r.audit()
	require.EqualValues(t, lines, report.GetStreams()[0].GetReplays())
	require.EqualValues(t, r.serial, report.GetStreams()[0].GetMessages())
	requireAuditFinds(t, r)
}

// requireArchiveVerbs looks at the archive as an operator does.
func requireArchiveVerbs(t *testing.T, r *rawStream) {
	t.Helper()
	table := r.ok("archive", "audit")
	require.Regexp(t, `(?m)^STREAM +BATCHES +OBJECTS +MESSAGES`, table)
	require.Contains(t, table, "Archive archive/ is complete (by its keys and records; --deep reads every object).\n")

	rows := r.archived("--organization", "a", "--source", "csi")
	require.NotEmpty(t, rows)
	for _, row := range rows {
		require.Equal(t, "a csi", row.GetOrganization()+" "+row.GetSource())
	}
	require.Equal(t, len(rows)+1, strings.Count(r.ok("archive", "list", "--organization", "a", "--source", "csi"), "\n"))
	cat := r.ok("archive", "cat", rows[0].GetKey())
	m, err := archive.ParseLine([]byte(strings.SplitAfter(cat, "\n")[0]))
	require.NoError(t, err)
	require.Equal(t, "dendra.raw.v1.live.a.csi", m.Subject)
	require.Equal(t, cat, r.ok("archive", "cat", rows[0].GetKey(), "--from", "PT1H"))
	require.Empty(t, r.ok("archive", "cat", "--organization", "a", "--to", "PT1H"))

	elsewhere := r.starter("archive", "audit", "--prefix", "elsewhere/")
	require.Equal(t, 2, elsewhere.code, elsewhere.stderr)
	require.Regexp(t, fmt.Sprintf(`(?m)^! empty RAW\.\S+: nothing is archived in archive/elsewhere/, and no job feeds it, though stream RAW on \S+ has had %d messages$`, r.serial), elsewhere.stdout)
	require.Contains(t, elsewhere.stdout, "Archive archive/elsewhere/ has 1 finding")

	env := func(variables ...string) []string { return append(r.st.Env(), variables...) }
	empty := stacktest.StartOwn(t, "--only", "nats")
	client := empty.Pipeline(t)
	for _, stream := range []string{pipeline.StreamRaw, pipeline.StreamPrepared} {
		require.NoError(t, client.JetStream().DeleteStream(t.Context(), stream))
	}
	a := starter(t, env("DENDRA_NATS_URL="+empty.NATS), "loads")
	require.Equal(t, 1, a.code)
	require.Equal(t, "starter: there is no stream PREPARED on "+empty.NATS+": no worker has connected to it yet\n", a.stderr)
	for want, call := range map[string]struct{ env, args []string }{
		`^starter: S3 store on 127\.0\.0\.1:1 cannot be reached for bucket archive: `: {env("DENDRA_S3_ENDPOINT=http://127.0.0.1:1"), []string{"list"}},
		`^starter: nats://127\.0\.0\.1:1 cannot be reached: `:                         {env("DENDRA_NATS_URL=nats://127.0.0.1:1"), []string{"audit"}},
		`^starter: there is no stream RAW on nats://127\.0\.0\.1:\d+; --offline audits the archive alone`: {
			env(), []string{"audit", "--nats", empty.NATS},
		},
		`^starter: DENDRA_S3_SECRET_KEY is not set`:               {env("DENDRA_S3_SECRET_KEY="), []string{"audit"}},
		`^starter: bucket "no-such-bucket" does not exist on `:    {env(), []string{"audit", "--bucket", "no-such-bucket"}},
		`^starter: x is not the key of an object with messages: `: {env(), []string{"cat", "x"}},
		`^starter: KEY or a filter is missing`:                    {env(), []string{"cat"}},
		`^starter: --source needs --organization`:                 {env(), []string{"list", "--source", "csi"}},
		`^starter: --prefix a does not end with a slash`:          {env(), []string{"list", "--prefix", "a"}},
	} {
		a := starter(t, call.env, append([]string{"archive"}, call.args...)...)
		code := 1
		if strings.HasSuffix(a.stderr, " --help)\n") { // a wrong call
			code = 2
		}
		require.Equal(t, code, a.code, a.stderr)
		require.Regexp(t, want, a.stderr)
		require.Equal(t, 1, strings.Count(a.stderr, "\n"), a.stderr)
	}
}

// requireAuditFinds an object that no batch lists, and one that was cut short.
func requireAuditFinds(t *testing.T, r *rawStream) {
	t.Helper()
	key := r.archived()[0].GetKey()
	stray := strings.Replace(key, "org=", "org=x", 1)
	for _, k := range []string{key, stray} {
		_, err := r.store.Put(r.Context(), objects.Object{Bucket: archive.DefaultBucket, Key: k, Data: []byte("cut"), ContentType: "application/zstd"})
		require.NoError(t, err)
	}
	a := r.starter("archive", "audit")
	require.Equal(t, 2, a.code, a.stderr)
	require.Empty(t, a.stderr)
	require.Regexp(t, `(?m)^! stray RAW\.\S+ \d+–\d+: no batch lists this object: `+stray+`$`, a.stdout)
	require.Regexp(t, `(?m)^! damaged RAW\.\S+ \d+–\d+: object archive/\S+ is damaged: `, a.stdout)
	require.Contains(t, a.stdout, "Archive archive/ has 2 findings (by its keys and records")
	a = r.starter("archive", "audit", "-o", "json")
	require.Equal(t, 2, a.code)
	report := &jobsv1.ArchiveReport{}
	require.NoError(t, protojson.Unmarshal([]byte(a.stdout), report))
	require.Len(t, report.GetFindings(), 2)
	a = r.starter("archive", "cat", key)
	require.Equal(t, 1, a.code)
	require.Contains(t, a.stderr, "is damaged: it cannot be decompressed")
}
