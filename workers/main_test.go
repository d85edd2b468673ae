package workers_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

// The test binary is also a worker, so that tests can kill one.
const workerVariable = "DENDRA_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		program := workers.Program{
			Worker: "testing",
			Types:  func(workers.Environment) ([]job.Type, error) { return testTypes(), nil },
		}
		if os.Getenv(otherCodeVariable) != "" {
			program = workers.WithWorkflows(program, otherCode)
		}
		workers.Main(program)
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
		job.NewType("LogLines", "testing", "Logs lines, and a secret.", logLines),
		job.NewType("LeaveMuch", "testing", "Fails, or leaves more than it may when it is stopped.", leaveMuch),
		job.NewType("PanicAtOnce", "testing", "Panics.", func(context.Context, job.Run, struct{}) (job.Result, error) {
			panic("out of luck") //nolint:forbidigo // That is what the type is for.
		}),
		job.NewType("TellSecret", "testing", "Puts a secret into all that it leaves.", tellSecret),
	}
}

func recordSteps(ctx context.Context, run job.Run, spec recordSpec) (_ job.Result, err error) {
	ledger := workertest.Book(spec.Ledger)
	step := 0
	if _, err := run.Cursor(&step); err != nil {
		return job.Result{}, err
	}
	if run.Job().Mode() == job.ModeContinuous {
		step = 0
	}
	if err := ledger.Add("start", run, step); err != nil {
		return job.Result{}, err
	}
	if starts, err := ledger.Starts(run.Job().ID); err != nil || starts <= spec.Kill {
		return job.Result{}, errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	if spec.LogEnd {
		defer func() { err = errors.Join(err, ledger.Add("left", run, step)) }()
	}
	if spec.Fail != "" {
		return job.Result{}, job.Final(spec.Fail, "the spec says so")
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
		if err := ledger.Add("step", run, step+1); err != nil {
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
	if err := ledger.Add("end", run, step); err != nil {
		return job.Result{}, err
	}
	return job.Result{Message: "all steps done", Counts: map[string]int64{"steps": int64(spec.Steps)}}, nil
}

// passGate waits until the gate is open or the run should stop.
func passGate(ctx context.Context, run job.Run, spec recordSpec) error {
	waits := run
	if spec.IgnoreStop || spec.IgnoreContext {
		waits = workertest.Deaf(run)
	}
	if spec.IgnoreContext {
		ctx = context.WithoutCancel(ctx)
	}
	err := workertest.Pass(ctx, waits, spec.Gate)
	if errors.Is(err, job.ErrStopped) {
		err = errors.Join(err, workertest.Book(spec.Ledger).Add("stop", run, 0))
	}
	return err
}

// tellSpec is the spec of TellSecret.
type tellSpec struct {
	// Gate is a file without which the handler does not end, "" if it need not wait.
	Gate string `json:"gate,omitempty"`
	// Succeed lets it return no error.
	Succeed bool `json:"succeed,omitempty"`
}

func tellSecret(ctx context.Context, run job.Run, spec tellSpec) (job.Result, error) {
	value, err := run.Secret("secret://test-token", "https://127.0.0.1")
	if err != nil {
		return job.Result{}, err
	}
	in := value + " " + base64.StdEncoding.EncodeToString([]byte("user:"+value)) + " " + url.QueryEscape(value) + " " + url.PathEscape(value)
	// Each bound of a text is within a secret.
	var long strings.Builder
	for long.Len() < 8<<10 {
		long.WriteString(value + " ")
	}
	run.Checkpoint(job.Progress{Done: 1, Message: in + long.String()}, map[string]string{"at " + value: in})
	run.Logger().With(value, in).Warn(in, value, errors.New(in), "all", []string{in})
	result := job.Result{
		Message: in + long.String(), Counts: map[string]int64{value: 1, "n": 1},
		Output: job.EncodeJSON(map[string]string{value: in}), Cursor: job.EncodeJSON([]string{in}),
	}
	if spec.Gate != "" {
		if stopped := passGate(ctx, run, recordSpec{Gate: spec.Gate}); stopped != nil {
			return result, stopped
		}
	}
	if spec.Succeed {
		return result, nil
	}
	return result, job.Final("Refused", "the vendor refuses token %s, %s, %s", value, in, long.String())
}

// linesSpec is the spec of LogLines.
type linesSpec struct {
	// Lines is how many lines an attempt logs.
	Lines int `json:"lines"`
	// Gate is a file without which a run does not end.
	Gate string `json:"gate"`
}

func logLines(ctx context.Context, run job.Run, spec linesSpec) (job.Result, error) {
	secret, err := run.Secret("secret://test-token", "https://127.0.0.1")
	if err != nil {
		return job.Result{}, err
	}
	log := run.Logger()
	log.Warn("the token is "+secret, "token", secret, "error", errors.New("refused "+secret), "all", map[string]string{"token": secret})
	log.With("inner", secret).WithGroup("group").Info("grouped", "token", secret)
	log.Info(strings.Repeat("long ", 2000))
	for n := range spec.Lines {
		log.Info("line", "n", n)
	}
	log.Info("waiting for the gate")
	if stopped := passGate(ctx, run, recordSpec{Gate: spec.Gate}); stopped != nil {
		return job.Result{}, stopped
	}
	return job.Result{Message: "all lines logged"}, nil
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

// tick has an effect 50 times a second, as long as its context allows.
func tick(ctx context.Context, run job.Run, spec tickSpec) (job.Result, error) {
	ledger := workertest.Book(spec.Ledger)
	if err := ledger.Add("start", run, 0); err != nil {
		return job.Result{}, err
	}
	run.Logger().Info("ticking")
	stopping := run.Stopping()
	if spec.IgnoreStop {
		stopping = nil
	}
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for {
		if ctx.Err() != nil {
			if err := ledger.Add("cut off", run, 0); err != nil || !spec.IgnoreStop {
				return job.Result{}, errors.Join(err, ctx.Err())
			}
			return job.Result{Message: "done after all"}, nil
		}
		if err := ledger.Add("tick", run, 0); err != nil {
			return job.Result{}, err
		}
		if _, err := os.Stat(spec.Gate); err == nil {
			return job.Result{Message: "done"}, ledger.Add("end", run, 0)
		}
		select {
		case <-stopping:
			return job.Result{}, errors.Join(ledger.Add("stop", run, 0), job.ErrStopped)
		case <-ctx.Done():
		case <-ticks.C:
		}
	}
}
