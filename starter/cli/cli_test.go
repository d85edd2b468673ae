package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// stepSpec is the spec of TakeSteps.
type stepSpec struct {
	// Steps is how many steps a run has.
	Steps int `json:"steps" minimum:"1"`
	// Gate is a file that a run waits for after its first step.
	Gate string `json:"gate,omitempty"`
	// Deaf is to wait there even if the run is told to stop; a file whose name ends
	// in .reached says that it waits.
	Deaf bool `json:"deaf,omitempty"`
	// Fail ends the run as failed.
	Fail bool `json:"fail,omitempty"`
	// From and To must not be equal, if they are set.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Validate implements the rule that spans two keys.
func (s *stepSpec) Validate() error {
	if s.From != "" && s.From == s.To {
		return errors.New("from and to are the same")
	}
	return nil
}

const testWorker job.WorkerType = "clitest"

func testTypes() []job.Type {
	return []job.Type{
		job.NewType("TakeSteps", testWorker, "Takes steps.", takeSteps),
		job.NewType("OnlyRecurring", testWorker, "Cannot be run once.", takeSteps, job.ModeRecurring),
		job.NewType("NobodyServes", "nobody", "Has no worker.", takeSteps),
	}
}

func takeSteps(ctx context.Context, run job.Run, spec stepSpec) (job.Result, error) {
	if spec.Fail {
		return job.Result{}, job.Final("Told", "told to fail")
	}
	run.Checkpoint(job.Progress{Done: 1, Total: int64(spec.Steps), Message: "on the way"}, nil)
	waits := run
	if spec.Deaf {
		waits = workertest.Deaf(run)
		if err := os.WriteFile(spec.Gate+".reached", nil, 0o600); err != nil {
			return job.Result{}, err
		}
	}
	if err := workertest.Pass(ctx, waits, spec.Gate); err != nil {
		return job.Result{}, err
	}
	return job.Result{
		Message: "all steps taken",
		Counts:  map[string]int64{"steps": int64(spec.Steps)},
		Output:  job.EncodeJSON(map[string]int{"last": spec.Steps}),
	}, nil
}

// result is what one command line gave.
type result struct {
	code           int
	stdout, stderr string
}

// console runs command lines.
type console struct {
	address   string
	namespace string
	stdin     string
	terminal  bool
	env       map[string]string
	now       time.Time  // zero: the clock
	types     []job.Type // besides those of testTypes
	until     string     // interrupts the command once standard error has it
}

func (c console) run(ctx context.Context, args ...string) result {
	ctx, interrupt := context.WithCancel(ctx)
	defer interrupt()
	var stdout bytes.Buffer
	stderr := &watched{until: c.until, then: interrupt}
	program := cli.Program{
		Getenv: func(name string) string { return c.env[name] },
		Stdin:  strings.NewReader(c.stdin), Stdout: &stdout, Stderr: stderr,
		Types:    append(testTypes(), c.types...),
		Patience: time.Hour, // A busy machine says nothing of its own.
	}
	if !c.now.IsZero() {
		program.Now = func() time.Time { return c.now }
	}
	if c.terminal {
		program.IsTerminal = func(any) bool { return true }
	}
	if c.address != "" {
		args = append(args, "--address", c.address)
	}
	if c.namespace != "" {
		args = append(args, "--namespace", c.namespace)
	}
	code := program.Execute(ctx, args)
	return result{code, stdout.String(), stderr.String()}
}

// watched is standard error that calls then once it has the text until.
type watched struct {
	stacktest.Output
	until string
	then  func()
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Output.Write(p)
	if w.until != "" && strings.Contains(w.String(), w.until) {
		w.then()
	}
	return n, err
}

// ok runs a command line that must succeed without a word on standard error,
// apart from progress.
func (c console) ok(t *testing.T, args ...string) string {
	t.Helper()
	r := c.run(t.Context(), args...)
	require.Zero(t, r.code, "%v\n%s\n%s", args, r.stdout, r.stderr)
	return r.stdout
}

// decoded runs a command line with -o json and decodes what it gives.
func decoded[T any](t *testing.T, c console, args ...string) T {
	t.Helper()
	return decodeText[T](t, c.ok(t, append(args, "-o", "json")...))
}

func decodeText[T any](t *testing.T, text string) T {
	t.Helper()
	var value T
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&value))
	return value
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
