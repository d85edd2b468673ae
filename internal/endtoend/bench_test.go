package endtoend_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// bench is a stack with what a test looks at it with.
type bench struct {
	*testing.T
	st     *stacktest.Stack
	client *client.Client
	store  *objects.Store
}

func newBench(t *testing.T, st *stacktest.Stack) *bench {
	t.Helper()
	store := objectstest.Open(t, st.S3)
	return &bench{T: t, st: st, client: client.New(st.Dial(t), st.Namespace), store: store}
}

// worker starts bin/<name> and waits until it serves.
func (b *bench) worker(name string, env ...string) *stacktest.Process {
	b.Helper()
	w := stacktest.StartProgram(b.T, b.st, stacktest.Program{Name: name, Env: env})
	w.WaitOutput("msg=serving")
	return w
}

// drain ends workers as a deployment does.
func (b *bench) drain(workers ...*stacktest.Process) {
	b.Helper()
	for _, w := range workers {
		w.Signal(syscall.SIGTERM)
	}
	for _, w := range workers {
		require.Zero(b, w.Wait(), w.Output())
	}
}

// answer is what a command of bin/starter gave.
type answer struct {
	code           int
	stdout, stderr string
}

// starterLimit ends a command that hangs.
const starterLimit = 3 * time.Minute

// starter runs bin/starter to its end.
func (b *bench) starter(args ...string) answer {
	b.Helper()
	return starter(b.T, b.st.Env(), args...)
}

func starter(t *testing.T, env []string, args ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), starterLimit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, stacktest.Binary(t, "starter"), args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	require.NoError(t, ctx.Err(), "starter %s: %s", args, stderr.String())
	if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) {
		require.NoError(t, err)
	}
	return answer{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// ok runs a command that has to succeed and gives its standard output.
func (b *bench) ok(args ...string) string {
	b.Helper()
	a := b.starter(args...)
	require.Zero(b, a.code, "starter %s: %s", args, a.stderr)
	return a.stdout
}

// run runs a job with bin/starter until it has ended.
func (b *bench) run(args ...string) (client.RunDetail, answer) {
	b.Helper()
	a := b.starter(append([]string{"run", "-o", "json"}, args...)...)
	var ended jobsv1.Run
	require.NoError(b, protojson.Unmarshal([]byte(a.stdout), &ended), a.stderr)
	workflowID, runID, _ := strings.Cut(ended.GetName(), "@")
	detail, err := b.client.Runs.Get(b.Context(), client.RunRef{WorkflowID: workflowID, RunID: runID})
	require.NoError(b, err)
	return *detail, a
}

// completed is run for a run that has to complete.
func (b *bench) completed(args ...string) client.RunDetail {
	b.Helper()
	detail, a := b.run(args...)
	require.Zero(b, a.code, a.stderr)
	require.Equal(b, client.RunCompleted, detail.Status)
	return detail
}

// failure gives the error that a run ended with.
func (b *bench) failure(ref client.RunRef) (activity *temporal.ActivityError, cause *temporal.ApplicationError) {
	b.Helper()
	err := b.client.Temporal().GetWorkflow(b.Context(), ref.WorkflowID, ref.RunID).Get(b.Context(), nil)
	require.ErrorAs(b, err, &activity)
	require.ErrorAs(b, err, &cause)
	return activity, cause
}

// trigger runs a job now and waits for the end of the run.
func (b *bench) trigger(jobID string) *client.RunDetail {
	b.Helper()
	triggered, err := b.client.Jobs.Trigger(b.Context(), jobID)
	require.NoError(b, err)
	detail, err := b.client.Runs.Follow(b.Context(), triggered.Run, func(*client.RunDetail) {})
	require.NoError(b, err)
	require.Equal(b, client.RunCompleted, detail.Status, detail.Error)
	return detail
}

// loop is the state of a continuous job, or nil as long as no worker tells.
func (b *bench) loop(jobID string) (*contract.ContinuousState, error) {
	detail, err := b.client.Jobs.Get(b.Context(), jobID)
	if err != nil {
		return nil, err
	}
	return detail.Continuous, nil
}

// upload puts a file into the bucket of uploads.
func (b *bench) upload(key string, data []byte) {
	b.Helper()
	_, err := b.store.Put(b.Context(), objects.Object{Bucket: "uploads", Key: key, Data: data, ContentType: "application/octet-stream"})
	require.NoError(b, err)
}

// listing describes every object of media under a prefix, by its key.
func (b *bench) listing(prefix string) map[string]objects.Info {
	b.Helper()
	found := map[string]objects.Info{}
	for info, err := range b.store.List(b.Context(), "media", prefix+"/") {
		require.NoError(b, err)
		found[info.Key] = info
	}
	return found
}

// manifests are the keys of a listing that are manifests.
func manifests(listing map[string]objects.Info) []string {
	var keys []string
	for key := range maps.Keys(listing) {
		if strings.HasSuffix(key, ".json") {
			keys = append(keys, key)
		}
	}
	return keys
}

// writeFile gives the path of a new file in a folder of the test's own.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
