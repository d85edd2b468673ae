package workers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

// The test binary is also a worker, so that tests can kill one.
const workerVariable = "DENDRA_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		workers.Main(workers.Program{
			Worker: "testing",
			Types:  func(workers.Environment) ([]job.Type, error) { return testTypes(), nil },
		})
	}
	os.Exit(m.Run()) //nolint:forbidigo // The main of the test binary.
}

// recordSpec is the spec of RecordSteps.
type recordSpec struct {
	// Ledger is a file that gets a line for everything the handler does.
	Ledger string `json:"ledger"`
	// Steps is how many steps a run has. Each is a line in the ledger.
	Steps int `json:"steps" minimum:"0"`
	// Gate is a file without which no step but the first is done.
	Gate string `json:"gate,omitempty"`
	// IgnoreStop lets the handler ignore requests to stop.
	IgnoreStop bool `json:"ignore_stop,omitempty"`
	// IgnoreContext lets it ignore them and the end of its context.
	IgnoreContext bool `json:"ignore_context,omitempty"`
	// Fail is the error class of a run that fails at its first step.
	Fail string `json:"fail,omitempty"`
	// Broken is a file with which a run fails for good after its first step.
	Broken string `json:"broken,omitempty"`
	// Kill is how many of the job's first starts kill the process.
	Kill int `json:"kill,omitempty"`
	// LogEnd has the handler write a line when it ends, however it ends.
	LogEnd bool `json:"log_end,omitempty"`
}

// testTypes are job types whose handlers write what they really did into a
// ledger of their own, apart from everything that Temporal records.
func testTypes() []job.Type {
	return []job.Type{
		job.NewType("RecordSteps", "testing", "Writes steps into a ledger.", recordSteps),
		job.NewType("Tick", "testing", "Writes into a ledger all the time.", tick),
		job.NewType("LeaveMuch", "testing", "Fails, or leaves more than it may when it is stopped.", leaveMuch),
		job.NewType("PanicAtOnce", "testing", "Panics.", func(context.Context, job.Run, struct{}) (job.Result, error) {
			panic("out of luck") //nolint:forbidigo // That is what the type is for.
		}),
		job.NewType("TellSecret", "testing", "Puts a secret into its error.", func(_ context.Context, run job.Run, _ struct{}) (job.Result, error) {
			value, err := run.Secret("secret://test-token")
			if err != nil {
				return job.Result{}, err
			}
			return job.Result{}, job.Final("Refused", "the vendor refuses token %s", value)
		}),
	}
}

func recordSteps(ctx context.Context, run job.Run, spec recordSpec) (_ job.Result, err error) {
	ledger := ledgerOf(spec.Ledger)
	step := 0
	if _, err := run.Cursor(&step); err != nil {
		return job.Result{}, err
	}
	if run.Job().Mode() == job.ModeContinuous {
		step = 0
	}
	if err := ledger.add("start", run, step); err != nil {
		return job.Result{}, err
	}
	if starts, err := ledger.starts(run.Job().ID); err != nil || starts <= spec.Kill {
		return job.Result{}, errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	if spec.LogEnd {
		defer func() { err = errors.Join(err, ledger.add("left", run, step)) }()
	}
	if spec.Fail != "" {
		return job.Result{}, job.Final(spec.Fail, "told to fail")
	}
	for ; step < spec.Steps; step++ {
		if step > 0 {
			if stopped := passGate(ctx, run, spec); stopped != nil {
				return job.Result{}, stopped
			}
		}
		if err := ctx.Err(); err != nil {
			return job.Result{}, err // Looked at before every effect.
		}
		if err := ledger.add("step", run, step+1); err != nil {
			return job.Result{}, err
		}
		run.Checkpoint(job.Progress{Done: int64(step + 1), Total: int64(spec.Steps)}, step+1)
		if _, err := os.Stat(spec.Broken); spec.Broken != "" && err == nil {
			return job.Result{}, job.Final("Broken", "broken after step %d", step+1)
		}
	}
	if err := ctx.Err(); err != nil {
		return job.Result{}, err
	}
	if err := ledger.add("end", run, step); err != nil {
		return job.Result{}, err
	}
	return job.Result{Message: "all steps done", Counts: map[string]int64{"steps": int64(spec.Steps)}}, nil
}

// passGate waits until the gate is open or the run should stop.
func passGate(ctx context.Context, run job.Run, spec recordSpec) error {
	stopping := run.Stopping()
	if spec.IgnoreStop || spec.IgnoreContext {
		stopping = nil
	}
	ended := ctx.Done()
	if spec.IgnoreContext {
		ended = nil
	}
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		if spec.Gate == "" {
			return nil
		}
		if _, err := os.Stat(spec.Gate); err == nil {
			return nil
		}
		select {
		case <-stopping:
			if err := ledgerOf(spec.Ledger).add("stop", run, 0); err != nil {
				return err
			}
			return job.ErrStopped
		case <-ended:
			return ctx.Err()
		case <-poll.C:
		}
	}
}

// tickSpec is the spec of Tick.
type tickSpec struct {
	Ledger string `json:"ledger"`
	// Gate is a file with which a run ends.
	Gate string `json:"gate"`
	// IgnoreStop lets the handler ignore requests to stop, and return a result although
	// its context has ended.
	IgnoreStop bool `json:"ignore_stop,omitempty"`
}

// tick has an effect every few milliseconds, as long as its context allows.
func tick(ctx context.Context, run job.Run, spec tickSpec) (job.Result, error) {
	ledger := ledgerOf(spec.Ledger)
	if err := ledger.add("start", run, 0); err != nil {
		return job.Result{}, err
	}
	run.Logger().Info("ticking")
	stopping := run.Stopping()
	if spec.IgnoreStop {
		stopping = nil
	}
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for {
		if ctx.Err() != nil {
			if err := ledger.add("cut off", run, 0); err != nil || !spec.IgnoreStop {
				return job.Result{}, errors.Join(err, ctx.Err())
			}
			return job.Result{Message: "done after all"}, nil
		}
		if err := ledger.add("tick", run, 0); err != nil {
			return job.Result{}, err
		}
		if _, err := os.Stat(spec.Gate); err == nil {
			return job.Result{Message: "done"}, ledger.add("end", run, 0)
		}
		select {
		case <-stopping:
			return job.Result{}, errors.Join(ledger.add("stop", run, 0), job.ErrStopped)
		case <-ctx.Done():
		case <-ticks.C:
		}
	}
}

// ledgerOf is the ledger in a file.
type ledgerOf string

// entry is one line of a ledger.
type entry struct {
	What    string    `json:"what"`
	JobID   string    `json:"job_id"`
	RunID   string    `json:"run_id"`
	Attempt int       `json:"attempt"`
	Step    int       `json:"step"`
	PID     int       `json:"pid"`
	At      time.Time `json:"at"`
}

func (l ledgerOf) add(what string, run job.Run, step int) error {
	line, err := json.Marshal(entry{what, run.Job().ID, run.ID(), run.Attempt(), step, os.Getpid(), time.Now()})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(string(l), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return file.Close()
}

// starts counts those of a job.
func (l ledgerOf) starts(jobID string) (int, error) {
	text, err := os.ReadFile(string(l))
	return strings.Count(string(text), fmt.Sprintf(`{"what":"start","job_id":%q,`, jobID)), err
}

// read gives all lines so far that are whole.
func (l ledgerOf) read(t *testing.T) []entry {
	t.Helper()
	text, err := os.ReadFile(string(l))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	var entries []entry
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var e entry
		require.NoError(t, json.Unmarshal(line, &e))
		entries = append(entries, e)
	}
	return entries
}

// count gives the number of lines with the word. It is asked again and again, of
// ledgers of thousands of lines, and so does not parse them.
func (l ledgerOf) count(t *testing.T, what string) int {
	t.Helper()
	text, err := os.ReadFile(string(l))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return bytes.Count(text[:bytes.LastIndexByte(text, '\n')+1], []byte(`{"what":"`+what+`",`))
}

// waitFor waits until n lines of the ledger have the word.
func (l ledgerOf) waitFor(t *testing.T, what string, n int) {
	t.Helper()
	stacktest.WaitFor(t, fmt.Sprintf("%d times %q in the ledger", n, what), func() (bool, error) {
		return l.count(t, what) >= n, nil
	})
}

func newLedger(t *testing.T) ledgerOf {
	t.Helper()
	return ledgerOf(filepath.Join(t.TempDir(), "ledger"))
}

// open makes a gate's file.
func open(t *testing.T, gate string) {
	t.Helper()
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
}

// workerProgram is a worker process for the test job types, on the Temporal at an
// address.
func workerProgram(t *testing.T, address string, args ...string) stacktest.Program {
	t.Helper()
	return stacktest.Program{
		Name: "test worker", Path: executable(t), Args: append([]string{"--address", address}, args...),
		Env: []string{workerVariable + "=1", "DENDRA_SECRET_TEST_TOKEN=hunter2hunter2"},
	}
}

// startWorker runs a worker process for the test job types, on a stack of the
// test's own.
func startWorker(t *testing.T, st *stacktest.Stack, args ...string) *stacktest.Process {
	t.Helper()
	w := stacktest.StartProgram(t, st, workerProgram(t, st.Temporal, args...))
	w.WaitOutput("serving")
	return w
}

// startService runs a worker process that is a service of the given name.
func startService(t *testing.T, st *stacktest.Stack, name string, args ...string) *stacktest.Process {
	t.Helper()
	w := startWorker(t, st, append([]string{"--service", name}, args...)...)
	w.WaitOutput("msg=announced")
	return w
}

// lostAfter is how long a run or a service may be silent in tests in which one
// dies: short for those who wait for that, and long for a busy machine, on which
// one that lives must not be taken for dead.
const lostAfter = 4 * time.Second

// startMortal is startService for a service that is to die.
func startMortal(t *testing.T, st *stacktest.Stack, name string, args ...string) *stacktest.Process {
	t.Helper()
	return startService(t, st, name, append([]string{"--service-timeout", lostAfter.String()}, args...)...)
}

// mortal is a job in a test in which workers die.
func mortal(j job.Job) job.Job {
	j.Options.HeartbeatTimeout = job.Duration(lostAfter)
	return j
}

// sharedWorker serves the stack that tests share: a worker of each test's own would
// take runs of the others, and hand them over when its test ends.
var sharedWorker struct {
	sync.Mutex
	process *stacktest.Process
}

// startShared gives the stack that tests share, with its worker.
func startShared(t *testing.T) *stacktest.Stack {
	t.Helper()
	st := stacktest.Start(t)
	sharedWorker.Lock()
	defer sharedWorker.Unlock()
	if sharedWorker.process != nil {
		sharedWorker.process.ShowOnFailure(t)
		require.False(t, sharedWorker.process.Ended(), "the shared worker has ended")
		return st
	}
	program := workerProgram(t, st.Temporal)
	program.Shared = true
	sharedWorker.process = stacktest.StartProgram(t, st, program)
	sharedWorker.process.WaitOutput("serving")
	return st
}

func newControl(t *testing.T, st *stacktest.Stack) *client.Client {
	t.Helper()
	return client.New(st.Dial(t), st.Namespace)
}

// newJob is a job of the given type; its key is unique to the test.
func newJob(t *testing.T, typeName, key string, schedule job.Trigger, spec any) job.Job {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	if extra := len(name) + 1 + len(key) - 64; extra > 0 {
		name = name[extra:]
	}
	j := job.Job{
		ID: job.ID(typeName, strings.TrimLeft(name, ".-")+"-"+key), Type: typeName, Worker: "testing", Provider: job.ProviderAPI,
		Spec: job.EncodeJSON(spec), Trigger: schedule, Options: job.DefaultOptions(schedule.Mode()),
	}
	j.Options.HeartbeatTimeout = job.Duration(30 * time.Second) // No run is lost since the machine is busy.
	require.Empty(t, j.Validate())
	return j
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

// waitOut lets a time pass, for what takes place in it.
func waitOut(t *testing.T, d time.Duration) {
	t.Helper()
	began := time.Now()
	stacktest.WaitFor(t, d.String()+" to pass", func() (bool, error) { return time.Since(began) >= d, nil })
}
