package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// TestCommandsWithoutAWorker, TestCommandsOfJobs, TestCommandsOfQueues and TestCommandsOfStandingJobs
// work through the commands as an operator would, each against a real Temporal of its own.
func TestCommandsWithoutAWorker(t *testing.T) {
	t.Parallel()
	withoutWorker(t, console{address: stacktest.StartOwn(t, "--only", "temporal").Temporal})
}

func TestCommandsOfJobs(t *testing.T) {
	t.Parallel()
	c, st := served(t)
	t.Run("connection", func(t *testing.T) { connection(t, st) })
	t.Run("plan and apply", func(t *testing.T) { planAndApply(t, c, st) })
	t.Run("apply asks", func(t *testing.T) { applyAsks(t, c) })
	t.Run("saved plans", func(t *testing.T) { savedPlans(t, c, st) })
	t.Run("drift", func(t *testing.T) { drift(t, c, st) })
	t.Run("guards", func(t *testing.T) { guards(t, c, st) })
	t.Run("blocked", func(t *testing.T) { blocked(t, c, st) })
	t.Run("run", func(t *testing.T) { run(t, c) })
	t.Run("run to be interrupted", func(t *testing.T) { interruptedRun(t, c) })
	t.Run("jobs", func(t *testing.T) { jobs(t, c) })
	t.Run("runs", func(t *testing.T) { runs(t, c) })
	t.Run("lists", func(t *testing.T) { lists(t, c) })
	t.Run("later", func(t *testing.T) { later(t, c) })
	t.Run("completion", func(t *testing.T) { completion(t, c) })
}

func TestCommandsOfQueues(t *testing.T) {
	t.Parallel()
	c, st := served(t)
	t.Run("queues", func(t *testing.T) { queues(t, c) })
	t.Run("ended queues", func(t *testing.T) { endedQueues(t, c, st) })
	t.Run("starts", func(t *testing.T) { starts(t, c) })
}

func TestCommandsOfStandingJobs(t *testing.T) {
	t.Parallel()
	c, st := served(t)
	standing(t, c, st)
}

// served is a Temporal with a worker.
func served(t *testing.T) (console, *stacktest.Stack) {
	t.Helper()
	st := stacktest.StartOwn(t, "--only", "temporal")
	startWorker(t, st)
	return console{address: st.Temporal}, st
}

// terminate ends a job that no worker serves.
func terminate(t *testing.T, st *stacktest.Stack, jobID string) {
	t.Helper()
	require.NoError(t, st.Dial(t).TerminateWorkflow(t.Context(), contract.JobWorkflowID(jobID), "", "test"))
}

func startWorker(t *testing.T, st *stacktest.Stack) { workertest.Start(t, st, testTypes()[:2]...) }

// withoutWorker waits for answers that do not come, for all of them at once.
func withoutWorker(t *testing.T, c console) {
	t.Run("enqueue", func(t *testing.T) {
		t.Parallel()
		r := c.run(t.Context(), "queues", "enqueue", "deserted", "--type", "TakeSteps", "--key", "deserted", "--spec", `{"steps": 1}`)
		require.Equal(t, 1, r.code)
		require.Equal(t, "starter: enqueue job take_steps.deserted in queue deserted: no worker answers within 15s: is a worker of its type running? (it may still be done when one answers)\n", r.stderr)

		r = c.run(t.Context(), "queues", "describe", "deserted", "--timeout", "0.2")
		require.Equal(t, 1, r.code)
		require.Equal(t, "starter: gave up after PT0.2S (--timeout)\n", r.stderr)
	})
	t.Run("run", func(t *testing.T) {
		t.Parallel()
		r := c.run(t.Context(), "run", "--type", "NobodyServes", "--key", "alone", "--spec", `{"steps": 1}`, "--timeout", "PT3S")
		require.Equal(t, 1, r.code)
		require.Regexp(t, `^waiting for a worker of type nobody
starter: gave up waiting after PT3S; the run goes on, show it with: starter runs describe job/nobody_serves\.alone [0-9a-f-]{36}
$`, r.stderr)
		require.Contains(t, c.ok(t, "jobs", "stop", "nobody_serves.alone", "--yes"), "Job nobody_serves.alone: stop requested.\n")
	})
	t.Run("apply goes on past a change that fails", func(t *testing.T) {
		t.Parallel()
		text := `
[jobs.nobody_serves.loop]
spec = { steps = 1 }
continuous = { interval = "PT1H" }
`
		c.ok(t, "apply", "-f", writeFile(t, "jobs.toml", text), "--yes")
		text = strings.Replace(text, "steps = 1", "steps = 2", 1) + `
[jobs.nobody_serves.other]
spec = { steps = 1 }
one_shot = {}
`
		r := c.run(t.Context(), "apply", "-f", writeFile(t, "jobs.toml", text), "--yes")
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stdout, "~ nobody_serves.loop  continuous\n    spec.steps: 1 → 2\n")
		require.Contains(t, r.stdout, "Applied: 1 created, 0 updated, 0 deleted, 1 failed in ")
		require.Equal(t, `[1/2] created nobody_serves.other
[2/2] failed to update nobody_serves.loop: set_job job nobody_serves.loop: no worker answers within 15s: is a worker of its type running? (it may still be done when one answers)
starter: 1 of 2 changes failed
`, r.stderr)
	})
}

func connection(t *testing.T, st *stacktest.Stack) {
	r := console{address: st.Temporal, namespace: "elsewhere"}.run(t.Context(), "jobs", "list")
	require.Equal(t, 1, r.code)
	require.Equal(t, fmt.Sprintf("starter: temporal at %s has no namespace \"elsewhere\": starter setup makes it\n", st.Temporal), r.stderr)

	c := console{address: st.Temporal}
	for want, args := range map[string][]string{
		"there is no job take_steps.none; starter jobs list shows those there are":  {"jobs", "describe", "take_steps.none"},
		"there is no queue none; the first job that is enqueued creates it":         {"queues", "describe", "none"},
		"0b9f4a52-6f0f-4f7a-9a55-7a8c1d2e3f40 is a run id: write the job before it": {"runs", "describe", "0b9f4a52-6f0f-4f7a-9a55-7a8c1d2e3f40"},
		"there is no run of a job take_steps.none":                                  {"runs", "describe", "take_steps.none"},
		"there is no run job/take_steps.none":                                       {"runs", "describe", "job/take_steps.none"},
		"job take_steps.none has no run 01963b5e-5f2c-7c7e-8f6a-7a8c1d2e3f40":       {"runs", "describe", "take_steps.none", "01963b5e-5f2c-7c7e-8f6a-7a8c1d2e3f40"},
	} {
		r := c.run(t.Context(), args...)
		require.Equal(t, 1, r.code)
		require.Equal(t, "starter: "+want+"\n", r.stderr)
	}
	for _, args := range [][]string{{"run"}, {"jobs", "stop", "--yes"}, {"jobs", "restart"}, {"jobs", "pause"}, {"jobs", "resume"}, {"jobs", "trigger"}} {
		r := c.run(t.Context(), append(args, "take_steps.none")...)
		require.Equal(t, 1, r.code)
		require.Equal(t, "starter: there is no job take_steps.none; starter jobs list shows those there are\n", r.stderr)
	}
}

const declared = `
[jobs.take_steps.once]
spec = { steps = 1 }
one_shot = {}

[jobs.take_steps.often]
spec = { steps = 1 }
recurring = { recur_every = "P1D" }

[jobs.take_steps.always]
spec = { steps = 2 }
continuous = { interval = "PT1H" }

[jobs.take_steps.in-line]
spec = { steps = 1 }
queued = { queue = "declared" }
`

func planAndApply(t *testing.T, c console, st *stacktest.Stack) {
	file := writeFile(t, "jobs.toml", declared)
	require.Equal(t, file+": 4 jobs are valid\n", c.ok(t, "validate", file))

	r := c.run(t.Context(), "plan", "-f", file)
	require.Equal(t, 2, r.code, r.stderr)
	require.Regexp(t, `^\+ take_steps.always  continuous
\+ take_steps.in-line  queued
\+ take_steps.often  recurring
    next starts: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+, \d{4}-.*, \d{4}-.*
\+ take_steps.once  one-shot

Plan for namespace default: 4 to create, 0 to update, 0 to delete, 0 blocked, 0 unchanged, 0 no longer declared.
$`, r.stdout)
	require.Empty(t, r.stderr)

	r = c.run(t.Context(), "run", "take_steps.often", "-f", file)
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: job take_steps.often is not there yet: apply it first\n", r.stderr)

	r = c.run(t.Context(), "apply", "-f", file, "--yes")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "Applied: 4 created, 0 updated, 0 deleted in ")
	for _, line := range []string{"/4] created take_steps.once\n", "/4] created take_steps.often\n", "/4] created take_steps.always\n", "/4] created take_steps.in-line\n"} {
		require.Contains(t, r.stderr, line)
	}

	nothing := "Plan for namespace default: 0 to create, 0 to update, 0 to delete, 0 blocked, 4 unchanged, 0 no longer declared.\n"
	stacktest.WaitFor(t, "an empty plan", func() (bool, error) {
		return c.run(t.Context(), "plan", "-f", file).code == 0, nil
	})
	require.Contains(t, c.ok(t, "plan", "-f", file), nothing)
	require.Contains(t, c.ok(t, "apply", "-f", file), nothing, "nothing to ask about")

	edited := strings.Replace(declared, `"P1D"`, `"PT12H"`, 1)
	edited = edited[:strings.Index(edited, "[jobs.take_steps.always]")] + edited[strings.Index(edited, "[jobs.take_steps.in-line]"):]
	file = writeFile(t, "jobs.toml", edited)
	stacktest.WaitFor(t, "the list to have what is no longer declared", func() (bool, error) {
		r = c.run(t.Context(), "plan", "-f", file)
		return strings.Contains(r.stdout, "? take_steps.always "), nil
	})
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stdout, "? take_steps.always  continuous  no longer declared (kept; --prune deletes it)\n")
	require.Contains(t, r.stdout, "~ take_steps.often  recurring\n    recurring.recur_every: \"P1D\" → \"PT12H\"\n    next starts now:  ")
	require.Contains(t, r.stdout, "\n    next starts then: ")

	r = c.run(t.Context(), "apply", "-f", file, "--yes", "--prune")
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: nothing was applied: the plan deletes more than a fifth of the live jobs: "+
		"it would delete 1 of 2 jobs; if that is meant, add --allow-mass-prune\n", r.stderr)
	require.Contains(t, r.stdout, "Apply would refuse this: the plan deletes more than a fifth of the live jobs")

	did := answered[jobsv1.AppliedJobSet](t, c, "apply", "-f", file, "--yes", "--prune", "--allow-mass-prune")
	require.Len(t, did.GetPlan().GetChanges(), 4)
	var done []string
	for _, change := range did.GetChanges() {
		require.Empty(t, change.GetErrorMessage())
		done = append(done, change.GetAction().String()+" "+change.GetJobId())
	}
	require.Equal(t, []string{"JOB_ACTION_DELETE take_steps.always", "JOB_ACTION_UPDATE take_steps.often"}, done)
	require.Empty(t, answered[jobsv1.AppliedJobSet](t, c, "apply", "-f", file).GetChanges())
	require.Equal(t, st.Namespace, answered[jobsv1.PlanJobSetResponse](t, c, "plan", "-f", file).GetPlan().GetNamespace())

	// For the tests that follow.
	c.ok(t, "apply", "-f", writeFile(t, "jobs.toml", declared), "--yes")
}

func savedPlans(t *testing.T, c console, _ *stacktest.Stack) {
	file := writeFile(t, "jobs.toml", declared+`
[jobs.take_steps.saved]
spec = { steps = 1 }
one_shot = {}
`)
	out := filepath.Join(t.TempDir(), "jobs.plan")
	r := c.run(t.Context(), "plan", "-f", file, "--out", out)
	require.Equal(t, 2, r.code)
	require.Equal(t, "saved as "+out+"; carry it out with: starter apply "+out+"\n", r.stderr)
	info, err := os.Stat(out)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	r = c.run(t.Context(), "apply", out, "--prune", "-f", file)
	require.Equal(t, 2, r.code)
	require.Equal(t, "starter: a saved plan has its own options; leave out --file, --prune (see starter apply --help)\n", r.stderr)
	require.Contains(t, c.ok(t, "apply", out), "Applied: 1 created")
	r = c.run(t.Context(), "apply", out)
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: "+out+" is not applied: what the plan was made against has changed since: take_steps.saved; plan again\n", r.stderr)

	r = c.run(t.Context(), "apply", file)
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: "+file+" is not a saved plan: plan --out writes one; a jobs file is applied with: starter apply -f "+file+"\n", r.stderr)
	r = c.run(t.Context(), "plan", "-f", file, "--out", file)
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: the plan cannot be saved: "+file+" is there and is no saved plan; it is not overwritten\n", r.stderr)
	c.ok(t, "plan", "-f", file, "--out", out)
	r = c.run(t.Context(), "apply", filepath.Join(t.TempDir(), "none"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "no such file")
}

func drift(t *testing.T, c console, st *stacktest.Stack) {
	require.Contains(t, c.ok(t, "drift"), "against the last apply: 0 jobs have drifted, of ")
	c.ok(t, "jobs", "pause", "take_steps.often", "--reason", "vendor is down")
	terminate(t, st, "take_steps.always")
	r := c.run(t.Context(), "drift")
	require.Equal(t, 2, r.code, r.stderr)
	require.Regexp(t, `^- take_steps.always  continuous  was stopped: terminated at .*
~ take_steps.often  recurring  paused: vendor is down
    paused: false → true

Namespace default against the last apply: 2 jobs have drifted, of \d+ applied.
$`, r.stdout)

	stacktest.WaitFor(t, "the end of the loop in the list", func() (bool, error) {
		return strings.Contains(c.ok(t, "jobs", "list", "--status", "terminated"), "take_steps.always "), nil
	})
	file := writeFile(t, "jobs.toml", declared)
	require.Contains(t, c.ok(t, "apply", "-f", file, "--yes"), "created")
	r = c.run(t.Context(), "drift")
	require.Equal(t, 2, r.code, "the pause is kept")
	c.ok(t, "apply", "-f", file, "--yes", "--reset-pauses")
	require.Contains(t, c.ok(t, "drift"), "0 jobs have drifted")
}

func guards(t *testing.T, c console, _ *stacktest.Stack) {
	empty := writeFile(t, "jobs.toml", "")
	for _, verb := range []string{"plan", "apply"} {
		r := c.run(t.Context(), verb, "-f", empty, "--prune")
		require.Equal(t, 1, r.code)
		require.Equal(t, "starter: "+empty+" declares no job, and --prune would delete all there are: "+
			"if that is meant, add --allow-empty and --allow-mass-prune\n", r.stderr)
		r = c.run(t.Context(), verb, "-f", empty, "--parallel", "65")
		require.Equal(t, map[string]int{"plan": 1, "apply": 2}[verb], r.code)
		require.Contains(t, r.stderr, "--parallel 65 is not from 1 to 64")
	}
	r := c.run(t.Context(), "apply", "-f", empty, "--prune", "--allow-empty", "--yes")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "nothing was applied: the plan deletes more than a fifth of the live jobs")
}

func applyAsks(t *testing.T, c console) {
	file := writeFile(t, "jobs.toml", declared+`
[jobs.take_steps.asked]
spec = { steps = 1 }
one_shot = {}
`)
	r := c.run(t.Context(), "apply", "-f", file)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "+ take_steps.asked  one-shot\n")
	require.Equal(t, "starter: there is no terminal to ask on: add --yes to apply the plan\n", r.stderr)

	r = c.run(t.Context(), "apply", "-f", file, "-o", "json")
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: apply with -o json does not ask: add --yes to apply the plan\n", r.stderr)
	require.Empty(t, r.stdout)

	for _, answer := range []string{"n\n", "\n", "", "yess\n"} {
		asked := c
		asked.terminal, asked.stdin = true, answer
		r = asked.run(t.Context(), "apply", "-f", file)
		require.Equal(t, 1, r.code)
		require.Equal(t, "\nApply this plan? [y/N] starter: nothing was applied\n", r.stderr)
	}
	asked := c
	asked.terminal, asked.stdin = true, "Y\n"
	r = asked.run(t.Context(), "apply", "-f", file)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "Applied: 1 created, 0 updated, 0 deleted in ")
	require.Contains(t, r.stderr, "Applying")
}

func blocked(t *testing.T, c console, st *stacktest.Stack) {
	temporal := st.Dial(t)
	_, err := temporal.ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{
		ID: contract.JobWorkflowID("take_steps.taken"), TaskQueue: "others",
	}, "Others")
	require.NoError(t, err)
	file := writeFile(t, "jobs.toml", declared+`
[jobs.take_steps.taken]
spec = { steps = 1 }
one_shot = {}

[jobs.take_steps.free]
spec = { steps = 1 }
one_shot = {}
`)
	r := c.run(t.Context(), "plan", "-f", file)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stdout, "! take_steps.taken  one-shot  workflow job/take_steps.taken does not have the search attributes of job take_steps.taken: not ours\n")

	r = c.run(t.Context(), "apply", "-f", file, "--yes")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "Applied: 1 created")
	require.Contains(t, r.stderr, "created take_steps.free\nstarter: 1 job is blocked and unchanged\n")

	r = c.run(t.Context(), "plan", "-f", file)
	require.Equal(t, 2, r.code, "blocked jobs are not as declared")
	r = c.run(t.Context(), "run", "--type", "TakeSteps", "--key", "taken", "--spec", `{"steps": 1}`)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "not ours")
	terminate(t, st, "take_steps.taken")
}

func run(t *testing.T, c console) {
	out := c.ok(t, "run", "--type", "TakeSteps", "--key", "adhoc", "--spec", `{"steps": 3}`, "--owner", "user:ada", "--run-timeout", "PT5M", "--max-retry-count", "0")
	require.Regexp(t, `^Job     take_steps\.adhoc
Run     job/take_steps\.adhoc [0-9a-f-]{36}
Status  completed after [0-9.]+m?s
Result  all steps taken
Counts  steps 3
Worker  clitest@.*
$`, out)

	detail := answered[jobsv1.Run](t, c, "run", "--type", "TakeSteps", "--spec", `{"steps": 2}`)
	require.Regexp(t, `^take_steps\.[0-9a-z]{26}$`, detail.GetJobId())
	require.Equal(t, map[string]int64{"steps": 2}, detail.GetCounts())
	require.EqualValues(t, 2, detail.GetSpec().GetFields()["steps"].GetNumberValue())

	r := c.run(t.Context(), "run", "--type", "TakeSteps", "--key", "fails", "--spec", `{"steps": 1, "fail": true}`)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "Status  failed after ")
	require.Contains(t, r.stderr, "starter: run of job take_steps.fails failed: told to fail\n")

	repeatedRun(t, c)
	for jobID, want := range map[string]string{
		"take_steps.once":    `Job     take_steps\.once\nRun     job/take_steps\.once [0-9a-f-]{36}\nStatus  completed`,
		"take_steps.often":   `Job     take_steps\.often\nRun     job/take_steps\.often-[0-9TZ:-]+ [0-9a-f-]{36}\nStatus  completed`,
		"take_steps.in-line": `Job     take_steps\.in-line\nRun     job/take_steps\.in-line [0-9a-f-]{36}\nStatus  completed`,
		"take_steps.always":  `Job        take_steps\.always\nIteration  [1-9]\nStatus     completed after .*\nResult     all steps taken\nCounts     steps 2`,
	} {
		require.Regexp(t, want, c.ok(t, "run", jobID))
	}

	file := writeFile(t, "jobs.toml", "[jobs.take_steps.undeclared]\nspec = { steps = 4 }\none_shot = {}\n")
	require.Contains(t, c.ok(t, "run", "take_steps.undeclared", "-f", file), "Counts  steps 4\n")
	r = c.run(t.Context(), "run", "take_steps.other", "-f", file)
	require.Equal(t, "starter: "+file+" declares no job take_steps.other\n", r.stderr)

	// A key that is that of a job from elsewhere is not taken over.
	r = c.run(t.Context(), "run", "--type", "TakeSteps", "--key", "often", "--spec", `{"steps": 1}`)
	require.Equal(t, "starter: job take_steps.often exists already, recurring and from provider toml: starter run take_steps.often runs it\n", r.stderr)

	require.Regexp(t, `^Job take_steps\.once: started, run [0-9a-f-]{36} of job/take_steps\.once\.\n$`, c.ok(t, "run", "take_steps.once", "--detach"))
	require.Regexp(t, `^Job take_steps\.in-line: in queue declared, number \d+, 0 ahead\.\n$`, c.ok(t, "jobs", "trigger", "take_steps.in-line"))
	require.Regexp(t, `^Job take_steps\.always: iteration \d+ triggered\.\n$`, c.ok(t, "jobs", "trigger", "take_steps.always"))
}

// repeatedRun repeats a command with a key, as a script does that has lost the answer.
func repeatedRun(t *testing.T, c console) {
	repeat := func(spec string, more ...string) result {
		return c.run(t.Context(), append([]string{"run", "--type", "TakeSteps", "--key", "repeated", "--spec", spec}, more...)...)
	}
	first := repeat(`{"steps": 3}`)
	require.Zero(t, first.code, first.stderr)
	again := repeat(`{"steps": 3}`)
	require.Zero(t, again.code, again.stderr)
	require.Equal(t, first.stdout, again.stdout, "the run that has completed")
	require.Equal(t, "Job take_steps.repeated has completed already; this is its run. With --again it runs again.\n", again.stderr)
	require.Regexp(t, `^Job take_steps\.repeated: it has completed already, run [0-9a-f-]{36} of job/take_steps\.repeated\.\n$`, repeat(`{"steps": 3}`, "--detach").stdout)
	require.Equal(t, first.stdout, repeat(`{"steps": 3}`, "--in", "PT1H").stdout, "it does not wait for later either")
	again = repeat(`{"steps": 4}`)
	require.Equal(t, 1, again.code)
	require.Equal(t, "starter: job take_steps.repeated has run before (completed): it has another spec than this one; give another --key, or --again to run this one under it\n", again.stderr)
	again = repeat(`{"steps": 4}`, "--again")
	require.Zero(t, again.code, again.stderr)
	require.Contains(t, again.stdout, "Counts  steps 4\n")
	again = repeat(`{"steps": 4}`, "--again", "--output", "json")
	require.Zero(t, again.code, again.stderr)
	require.NotContains(t, again.stderr, "already")
	require.Contains(t, c.run(t.Context(), "run", "--type", "TakeSteps", "--again").stderr, "--again goes with --type and --key")
}

func interruptedRun(t *testing.T, c console) {
	gate := workertest.NewGate(t)
	spec := fmt.Sprintf(`{"steps": 2, "gate": %q}`, gate)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	// Interrupted as soon as the run shows its progress.
	go func() {
		defer interrupt()
		stacktest.WaitFor(t, "progress of the run", func() (bool, error) {
			return strings.Contains(c.run(t.Context(), "runs", "describe", "take_steps.gated").stdout, "running, 1/2 on the way"), nil
		})
	}()
	r := c.run(ctx, "run", "--type", "TakeSteps", "--key", "gated", "--spec", spec)
	require.Equal(t, 1, r.code)
	require.Regexp(t, `starter: interrupted; the run goes on, show it with: starter runs describe job/take_steps\.gated [0-9a-f-]{36}\n$`, r.stderr)

	r = c.run(t.Context(), "run", "--type", "TakeSteps", "--key", "gated", "--spec", `{"steps": 7}`)
	require.Equal(t, "starter: a run of job take_steps.gated with another spec is running: wait for its end, or stop it\n", r.stderr)
	r = c.run(t.Context(), "run", "take_steps.gated", "--detach")
	require.Contains(t, r.stderr, "A run of job take_steps.gated is running already; no other is started.\n")

	followed := c
	followed.terminal = true
	workertest.Open(t, gate)
	r = followed.run(t.Context(), "run", "take_steps.gated")
	require.Zero(t, r.code, r.stderr)

	gate += "2"
	spec = fmt.Sprintf(`{"steps": 2, "gate": %q}`, gate)
	c.ok(t, "run", "--type", "TakeSteps", "--key", "stopped", "--spec", spec, "--detach")
	c.ok(t, "jobs", "stop", "take_steps.stopped", "--yes")
	stacktest.WaitFor(t, "the end of the stopped run", func() (bool, error) {
		return strings.Contains(c.ok(t, "runs", "describe", "take_steps.stopped"), " canceled after "), nil
	})
	r = c.run(t.Context(), "jobs", "stop", "take_steps.stopped", "--yes")
	require.Equal(t, "starter: job take_steps.stopped does not run\n", r.stderr)
}

func jobs(t *testing.T, c console) {
	stacktest.WaitFor(t, "the jobs in the list", func() (bool, error) {
		listed := c.ok(t, "jobs", "list", "--all")
		for _, id := range []string{"take_steps.once", "take_steps.often", "take_steps.always", "take_steps.in-line", "take_steps.adhoc"} {
			if !strings.Contains(listed, id+" ") {
				return false, fmt.Errorf("%s", listed)
			}
		}
		return true, nil
	})
	rows := answered[jobsv1.ListJobsResponse](t, c, "jobs", "list", "--mode", "recurring").GetJobs()
	require.Len(t, rows, 1)
	require.Equal(t, "take_steps.often", rows[0].GetId())
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_SCHEDULED, rows[0].GetState().GetStatus())
	require.NotNil(t, rows[0].GetState().GetNextStartTime())
	require.Len(t, answered[jobsv1.ListJobsResponse](t, c, "jobs", "list", "--all", "--owner", "user:ada").GetJobs(), 1)
	require.Empty(t, answered[jobsv1.ListJobsResponse](t, c, "jobs", "list", "--type", "OnlyRecurring").GetJobs())
	require.Equal(t, "{\n  \"jobs\": []\n}\n", c.run(t.Context(), "jobs", "list", "--type", "OnlyRecurring", "-o", "json").stdout)

	require.Contains(t, c.ok(t, "jobs", "pause", "take_steps.often", "--reason", "for the test"), "Job take_steps.often: paused.\n")
	require.Contains(t, c.ok(t, "jobs", "describe", "take_steps.often"), "\nStatus       paused: for the test\n")
	require.Contains(t, c.ok(t, "plan", "-f", writeFile(t, "jobs.toml", declared)), "= take_steps.often  recurring  paused: for the test\n")
	require.False(t, answered[jobsv1.ResumeJobResponse](t, c, "jobs", "resume", "take_steps.often", "--reason", "done").GetUnchanged())
	require.Equal(t, "Job take_steps.often: unchanged; it is not paused; to run it now, trigger it.\n", c.ok(t, "jobs", "resume", "take_steps.often"))
	described := c.ok(t, "jobs", "describe", "take_steps.often")
	require.Contains(t, described, "\nStatus       scheduled\n")
	require.Contains(t, described, "\nNext  ")
	require.Contains(t, described, "\nLatest runs\nSTATUS  ")

	c.ok(t, "jobs", "pause", "take_steps.always")
	stacktest.WaitFor(t, "the pause", func() (bool, error) {
		return strings.Contains(c.ok(t, "jobs", "describe", "take_steps.always"), " paused\nIterations "), nil
	})
	r := c.run(t.Context(), "run", "take_steps.always")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "job take_steps.always is paused (requested ")
	require.Equal(t, "Job take_steps.always: resumed.\n", c.ok(t, "jobs", "resume", "take_steps.always"))
	require.Equal(t, "Job take_steps.always: unchanged; it is not paused; to run it now, trigger it.\n", c.ok(t, "jobs", "resume", "take_steps.always"))
	c.ok(t, "jobs", "restart", "take_steps.always")
	detail := answered[jobsv1.Job](t, c, "jobs", "describe", "take_steps.always")
	require.NotNil(t, detail.GetContinuous())
	require.NotNil(t, detail.GetState().GetContinuous())
	c.ok(t, "jobs", "stop", "take_steps.always", "--reason", "enough", "--yes")
	c.ok(t, "jobs", "restart", "take_steps.always")
	require.Regexp(t, `\nStatus +(running|waiting: no worker .*)\n`, c.ok(t, "jobs", "describe", "take_steps.always"), "restarted although it was still being stopped")
	c.ok(t, "jobs", "stop", "take_steps.always", "--reason", "enough", "--yes")
	stacktest.WaitFor(t, "the end of the loop", func() (bool, error) {
		return strings.Contains(c.ok(t, "jobs", "describe", "take_steps.always"), " stopped: enough\n"), nil
	})
	r = c.run(t.Context(), "jobs", "resume", "take_steps.always")
	require.Equal(t, "starter: job take_steps.always does not run: restart it first\n", r.stderr)
	c.ok(t, "jobs", "restart", "take_steps.always")
	require.Contains(t, c.ok(t, "jobs", "describe", "take_steps.always"), "\nIterations   ")

	for verb, want := range map[string]string{
		"pause":   "job take_steps.once cannot be paused: stop it, or pause its queue",
		"restart": "job take_steps.once is not continuous: trigger it instead",
	} {
		r := c.run(t.Context(), "jobs", verb, "take_steps.once")
		require.Equal(t, 1, r.code)
		require.Equal(t, "starter: "+want+"\n", r.stderr)
	}
	r = c.run(t.Context(), "jobs", "stop", "take_steps.often", "--yes")
	require.Equal(t, "starter: job take_steps.often has no run now; pause it to keep it from starting more\n", r.stderr)
}

func runs(t *testing.T, c console) {
	stacktest.WaitFor(t, "the run in the list", func() (bool, error) {
		return strings.Contains(c.ok(t, "runs", "list", "--job", "take_steps.adhoc", "--since", "PT1H"), "take_steps.adhoc  completed "), nil
	})
	listed := answered[jobsv1.ListRunsResponse](t, c, "runs", "list", "--job", "take_steps.often", "--mode", "recurring", "--status", "completed", "--type", "TakeSteps").GetRuns()
	require.NotEmpty(t, listed)
	workflowID, runID, _ := strings.Cut(listed[0].GetName(), "@")
	detail := answered[jobsv1.Run](t, c, "runs", "describe", "take_steps.often", runID)
	require.Equal(t, listed[0].GetName(), detail.GetName())
	require.True(t, proto.Equal(detail, answered[jobsv1.Run](t, c, "runs", "describe", workflowID)))
	require.Equal(t, listed[0].GetName(), answered[jobsv1.Run](t, c, "runs", "describe", "take_steps.often").GetName())
	require.Empty(t, answered[jobsv1.ListRunsResponse](t, c, "runs", "list", "--since", "2100-01-01T00:00:00Z").GetRuns())

	described := c.ok(t, "runs", "describe", "take_steps.adhoc")
	require.Contains(t, described, "\nOutput    {\n            \"last\": 3\n          }\n")
	require.Contains(t, c.ok(t, "runs", "describe", "take_steps.fails"), "\nError     Told: told to fail\n")

	r := c.run(t.Context(), "runs", "list", "--limit", "1")
	require.Regexp(t, `^There may be more: --limit 0 lists all\. With -o json, nextPageToken is where --page-token goes on\.\n$`, r.stderr)
	require.Len(t, strings.Split(strings.TrimSpace(r.stdout), "\n"), 2)
}

func queues(t *testing.T, c console) {
	gate := workertest.NewGate(t)
	first := fmt.Sprintf(`{"steps": 1, "gate": %q}`, gate)
	require.Equal(t, "JOB               NUMBER  AHEAD  NOTE\ntake_steps.first  1       0      -\n",
		c.ok(t, "queues", "enqueue", "line", "--type", "TakeSteps", "--key", "first", "--spec", first))

	var items strings.Builder
	const n = 40
	for k := range n {
		fmt.Fprintf(&items, `{"key": "item-%02d", "spec": {"steps": 1}}`+"\n", k)
	}
	file := writeFile(t, "items.jsonl", items.String())
	places := answered[jobsv1.EnqueueJobsResponse](t, c, "queues", "enqueue", "line", "--type", "TakeSteps", "--file", file).GetPlaces()
	require.Len(t, places, n)
	for k, place := range places {
		require.EqualValues(t, k+2, place.GetSequence())
		require.EqualValues(t, k+1, place.GetAhead())
		require.False(t, place.GetDuplicate())
	}
	again := console{address: c.address, stdin: items.String()}
	for k, place := range answered[jobsv1.EnqueueJobsResponse](t, again, "queues", "enqueue", "line", "--type", "TakeSteps", "--file", "-").GetPlaces() {
		require.True(t, place.GetDuplicate(), "a job in the queue is known by its key")
		require.Equal(t, places[k].GetSequence(), place.GetSequence())
	}

	described := c.ok(t, "queues", "describe", "line", "--limit", "3")
	require.Contains(t, described, "\nRunning     1 take_steps.first, since ")
	require.Contains(t, described, "\nWaiting     40\n")
	require.Contains(t, described, "\n2       take_steps.item-00  ")
	require.Contains(t, described, "\n...     and 37 more  ")
	require.Contains(t, c.ok(t, "jobs", "describe", "take_steps.item-05"), "\nStatus       waiting, 6 ahead\n")

	c.ok(t, "jobs", "stop", "take_steps.item-39", "--yes")
	require.Equal(t, "Queue line: paused, 39 waiting.\n", c.ok(t, "queues", "pause", "line", "--reason", "lunch"))
	require.Equal(t, "Queue line: paused, 39 waiting; it was paused already: lunch.\n", c.ok(t, "queues", "pause", "line", "--reason", "tea"))
	stacktest.WaitFor(t, "the queue in the list", func() (bool, error) {
		list := c.ok(t, "queues", "list")
		require.Contains(t, list, "WAITING  OLDEST  RUNNING           LAST MINUTE  LAST HOUR  COMPLETED")
		return regexp.MustCompile(`paused: lunch; also: tea  39 +\d+ s +take_steps\.first  0 +0 +0 `).MatchString(list), nil
	})
	workertest.Open(t, gate)
	c.ok(t, "queues", "resume", "line")

	r := c.run(t.Context(), "run", "take_steps.item-38")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "Job     take_steps.item-38\n")
	var state *jobsv1.Queue
	stacktest.WaitFor(t, "the queue to hear of the last end", func() (bool, error) {
		state = answered[jobsv1.GetQueueResponse](t, c, "queues", "describe", "line").GetQueue()
		return state.GetCompleted() >= 40, nil
	})
	// On a busy machine all has ended before the run is asked for: then it is another one.
	ran := state.GetCompleted()
	require.LessOrEqual(t, ran, int64(41))
	require.EqualValues(t, ran, state.GetRanLastHour())
	require.EqualValues(t, 1, state.GetCanceled())
	for k := 1; k < len(state.GetRecent()); k++ {
		require.Greater(t, state.GetRecent()[k].GetSequence(), state.GetRecent()[k-1].GetSequence(), "in order")
	}

	for want, args := range map[string][]string{
		"No dead letter found.\n": {"dead", "list", "line"},
		"No item found.\n":        {"peek", "line"},
	} {
		r := c.run(t.Context(), append([]string{"queues"}, args...)...)
		require.Zero(t, r.code)
		require.Equal(t, want, r.stderr)
	}

	c.ok(t, "apply", "-f", writeFile(t, "jobs.toml", "[jobs.take_steps.in-line]\nspec = { steps = 1 }\nqueued = { queue = \"declared\" }\n"), "--yes")
	require.Regexp(t, `take_steps\.in-line  \d+ +0 `, c.ok(t, "queues", "enqueue", "declared", "--job", "take_steps.in-line"))
	r = c.run(t.Context(), "queues", "enqueue", "line", "--job", "take_steps.in-line")
	require.Equal(t, "starter: job take_steps.in-line does not belong to queue line: it is queued, in queue declared\n", r.stderr)

	stacktest.WaitFor(t, "the runs in the list", func() (bool, error) {
		listed := c.ok(t, "runs", "list", "--queue", "line", "--limit", "0")
		return len(strings.Split(strings.TrimSpace(listed), "\n")) == int(ran)+1, nil
	})
}

// TestVerbsOfQueues works with a queue whose items fail.
func TestVerbsOfQueues(t *testing.T) {
	t.Parallel()
	c, _ := served(t)
	put := func(key, spec string) {
		c.ok(t, "queues", "enqueue", "worked", "--type", "TakeSteps", "--key", key, "--spec", spec, "--max-retry-count", "0")
	}
	require.Equal(t, "Queue worked: on failure halt.\n", c.ok(t, "queues", "set", "worked", "--on-failure", "halt"))
	require.Equal(t, "Queue worked: 0 items removed.\n", c.ok(t, "queues", "purge", "worked"), "there is nothing to ask about")
	put("broken", `{"steps": 1, "fail": true}`)
	for _, key := range []string{"w1", "w2", "w3", "w4"} {
		put(key, `{"steps": 1}`)
	}
	halted := func() {
		stacktest.WaitFor(t, "the queue to halt", func() (bool, error) {
			return strings.Contains(c.ok(t, "queues", "describe", "worked"), "\nStatus      halted\n"), nil
		})
	}
	halted()
	require.Contains(t, c.ok(t, "queues", "describe", "worked"), ": job take_steps.broken failed: told to fail\nOn failure  halt\n")
	require.Equal(t, "Queue worked: resumed, 5 waiting.\n", c.ok(t, "queues", "resume", "worked"))
	halted()
	require.Equal(t, "Job take_steps.w3: the next one of queue worked, 4 waiting.\n", c.ok(t, "queues", "move", "worked", "take_steps.w3"))
	require.Equal(t, "Job take_steps.w1: removed from queue worked.\n", c.ok(t, "queues", "cancel", "worked", "take_steps.w1", "--yes"))
	require.Regexp(t, `^AHEAD  NUMBER  JOB +ACCEPTED\n0 +4 +take_steps\.w3 .*\n1 +3 +take_steps\.w2 .*\n$`, c.ok(t, "queues", "peek", "worked", "--limit", "2"))
	r := c.run(t.Context(), "queues", "cancel", "worked", "take_steps.w1", "--yes")
	require.Equal(t, "starter: job take_steps.w1 is not in queue worked; starter queues peek worked lists the waiting items\n", r.stderr)
	r = c.run(t.Context(), "queues", "purge", "worked", "--from", "5")
	require.Equal(t, "starter: there is no terminal to ask on: add --yes to purge the queue\n", r.stderr)
	asked := c
	asked.terminal, asked.stdin = true, "n\n"
	r = asked.run(t.Context(), "queues", "purge", "worked", "--from", "5")
	require.Equal(t, "Remove 1 waiting item from queue worked? [y/N] starter: nothing was removed\n", r.stderr)
	require.Equal(t, "Queue worked: 1 item removed.\n", c.ok(t, "queues", "purge", "worked", "--from", "5", "--yes"))
	require.Equal(t, "Queue worked: failed item skipped, 2 waiting.\n", c.ok(t, "queues", "skip", "worked", "--yes"))
	require.Equal(t, "Queue worked: empty (2 completed, 2 failed, 2 canceled, 0 skipped). It refuses items until it is resumed.\n",
		c.ok(t, "queues", "drain", "worked", "--yes"))
	r = c.run(t.Context(), "queues", "enqueue", "worked", "--type", "TakeSteps", "--key", "late", "--spec", `{"steps": 1}`)
	require.Contains(t, r.stderr, "queue worked is being drained: it takes no more items until it is resumed")
	require.Equal(t, "Queue worked: resumed, 0 waiting.\n", c.ok(t, "queues", "resume", "worked"))
	require.Equal(t, "Queue worked: unchanged, 0 waiting; it was not paused, drained or halted.\n", c.ok(t, "queues", "resume", "worked"))
	resumed := answered[jobsv1.ResumeQueueResponse](t, c, "queues", "resume", "worked")
	require.True(t, resumed.GetUnchanged())
	require.Zero(t, resumed.GetSummary().GetWaiting())

	c.ok(t, "queues", "set", "worked", "--on-failure", "continue")
	require.Regexp(t, `^NUMBER  JOB +FAILED +ERROR\n1 +take_steps\.broken  .*\)  told to fail\n$`, c.ok(t, "queues", "dead", "list", "worked"))
	require.Regexp(t, `take_steps\.broken  6 +0 `, c.ok(t, "queues", "dead", "retry", "worked", "1"))
	stacktest.WaitFor(t, "the job to fail again", func() (bool, error) {
		return strings.Contains(c.ok(t, "queues", "dead", "list", "worked"), "\n6 "), nil
	})
	require.Equal(t, "Queue worked: 1 dead letter dropped.\n", c.ok(t, "queues", "dead", "drop", "worked", "--all", "--yes"))
	r = c.run(t.Context(), "queues", "dead", "retry", "worked", "take_steps.broken")
	require.Equal(t, "starter: queue worked has no dead letter of job take_steps.broken; starter queues dead list worked shows those there are\n", r.stderr)

	r = c.run(t.Context(), "queues", "dead", "retry", "worked", "77")
	require.Equal(t, "starter: queue worked has no dead letter 77; starter queues dead list worked shows those there are\n", r.stderr)

	dead := func(numbers ...string) {
		stacktest.WaitFor(t, "dead letters "+strings.Join(numbers, ", "), func() (bool, error) {
			list := c.ok(t, "queues", "dead", "list", "worked")
			return !slices.ContainsFunc(numbers, func(n string) bool { return !strings.Contains(list, "\n"+n+" ") }), nil
		})
	}
	put("twice", `{"steps": 1, "fail": true}`)
	dead("7")
	put("twice", `{"steps": 2, "fail": true}`)
	dead("7", "8")
	r = c.run(t.Context(), "queues", "dead", "retry", "worked", "--all")
	require.Zero(t, r.code)
	require.Regexp(t, `^JOB +NUMBER  AHEAD  NOTE\ntake_steps\.twice  9 +0 +-\n$`, r.stdout)
	require.Equal(t, "Dead letter 8 of job take_steps.twice is left: another one of the job has another spec; retry this one when the job has ended.\n", r.stderr)
	dead("8", "9")
	enqueueOtherSpec(t, c)
}

// enqueueOtherSpec puts in work under a key that has run: nothing is lost silently.
func enqueueOtherSpec(t *testing.T, c console) {
	t.Helper()
	gate := workertest.NewGate(t)
	put := func(key, spec string, more ...string) result {
		return c.run(t.Context(), append([]string{"queues", "enqueue", "others", "--type", "TakeSteps", "--key", key, "--spec", spec}, more...)...)
	}
	require.Zero(t, c.run(t.Context(), "run", "--type", "TakeSteps", "--key", "other", "--spec", `{"steps": 1}`).code)
	r := put("other", `{"steps": 2}`)
	require.Equal(t, 1, r.code)
	require.Empty(t, r.stdout)
	require.Equal(t, "starter: job take_steps.other has run before (completed): it has another spec than this one; give another --key, or --again to run this one under it\n", r.stderr)
	r = put("other", `{"steps": 1}`)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "  completed before: skipped at its turn\n")
	stacktest.WaitFor(t, "the repeated item to be skipped", func() (bool, error) {
		return strings.Contains(c.ok(t, "queues", "describe", "others"), " 1 skipped\n"), nil
	})
	r = put("other", `{"steps": 2}`, "--again")
	require.Zero(t, r.code, r.stderr)
	stacktest.WaitFor(t, "the new work", func() (bool, error) {
		return strings.Contains(c.ok(t, "queues", "describe", "others"), " 1 completed,"), nil
	})

	c.ok(t, "run", "--type", "TakeSteps", "--key", "busy", "--spec", fmt.Sprintf(`{"steps": 1, "gate": %q}`, gate), "--detach")
	r = put("busy", `{"steps": 2}`)
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: a run of job take_steps.busy with another spec is running: wait for its end, or stop it\n", r.stderr)
	workertest.Open(t, gate)
}

func completion(t *testing.T, c console) {
	suggest := func(args ...string) string {
		// The address has to stand before the word to complete.
		return console{}.ok(t, append([]string{"__complete", "--address", c.address}, args...)...)
	}
	require.Contains(t, suggest("jobs", "describe", ""), "take_steps.often\n")
	require.Contains(t, suggest("queues", "describe", ""), "declared\n")
}
