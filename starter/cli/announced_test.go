package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/grpcproxy"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// externalFile declares jobs of a type that only the example worker has: one of
// them inherits what it needs.
func externalFile(t *testing.T, folder string) string {
	t.Helper()
	return writeFile(t, "external.toml", `
[jobs.hash_files]
spec = { max_bytes = 100 }

[jobs.hash_files.once]
spec = { folder = "`+folder+`" }
bind = { site = "north" }
one_shot = {}

[jobs.hash_files.nightly]
spec = { folder = "`+folder+`" }
recurring = { recur_every = "P1D" }
`)
}

// TestExternalJobType runs jobs of a type that this program was not built with.
func TestExternalJobType(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "temporal")
	c := console{address: st.Temporal}
	folder := t.TempDir()
	for name, text := range map[string]string{"a": "one", "b": "two", "large": string(make([]byte, 101))} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	file := externalFile(t, folder)

	// Offline, and with no worker of the type, it is unknown.
	offline := console{address: "127.0.0.1:1"}.run(t.Context(), "validate", file)
	require.Equal(t, 1, offline.code)
	require.Contains(t, offline.stderr, "Job types of other programs may be missing: temporal at 127.0.0.1:1 cannot be reached")
	require.Contains(t, offline.stderr, `external.toml:2:7: unknown job type "hash_files"`)
	require.Equal(t, 1, c.run(t.Context(), "validate", file).code)

	worker := stacktest.StartProcess(t, st, "example-worker", "--service", "shed", "--tag", "site=north", "--service-timeout", "5s")
	worker.WaitOutput("msg=announced")
	require.Equal(t, file+": 2 jobs are valid\n", c.ok(t, "validate", file))
	wrong := writeFile(t, "wrong.toml", `
[jobs.hash_files]
spec = { max_bytes = 0 }

[jobs.hash_files.once]
spec = { folder = "", depth = 3 }
one_shot = {}
`)
	r := c.run(t.Context(), "validate", wrong)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, ":3:22: spec.max_bytes: 0 is less than 1\n")
	require.Contains(t, r.stderr, `:6:19: spec.folder: the text is empty`)
	require.Contains(t, r.stderr, `unknown key "depth"`)

	hasty := writeFile(t, "hasty.toml", `
[jobs.hash_files.hasty]
spec = { folder = "`+folder+`" }
bind = { site = "north" }
failover_after = "PT2S"
one_shot = {}
`)
	r = c.run(t.Context(), "apply", "--yes", "-f", hasty)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "! hash_files.hasty  one-shot  failover_after is too short: it is PT2S, and service files@shed counts as away after PT5S, its --service-timeout\n")

	require.Equal(t, 2, c.run(t.Context(), "plan", "-f", file).code)
	c.ok(t, "apply", "--yes", "-f", file)
	require.Equal(t, 0, c.run(t.Context(), "plan", "-f", file).code)
	stacktest.WaitFor(t, "the applied job to run", func() (bool, error) {
		run := c.run(t.Context(), "runs", "describe", "hash_files.once", "-o", "json")
		return run.code == 0 && answered[jobsv1.Run](t, c, "runs", "describe", "hash_files.once").GetStatus() == jobsv1.RunStatus_RUN_STATUS_COMPLETED, nil
	})
	detail := answered[jobsv1.Run](t, c, "runs", "describe", "hash_files.once")
	require.Equal(t, map[string]int64{"files": 2, "too_large": 1}, detail.GetCounts())
	require.Equal(t, "shed", detail.GetBinding().GetService())
	require.Contains(t, c.ok(t, "runs", "describe", "hash_files.once"), "Service   shed")

	ad := c.ok(t, "run", "--type", "hash_files", "--spec", `{"folder": "`+folder+`"}`)
	require.Contains(t, ad, "all files are hashed")
	r = c.run(t.Context(), "run", "--type", "HashFiles", "--spec", `{"folders": "x"}`)
	require.Contains(t, r.stderr, `unknown key "folders"; did you mean "folder"?`)

	// The list, and what is missing from it.
	w := answered[jobsv1.ListWorkersResponse](t, c, "workers")
	require.Len(t, w.GetWorkers(), 1)
	require.Equal(t, "shed", w.GetWorkers()[0].GetName())
	require.Equal(t, jobsv1.WorkerStatus_WORKER_STATUS_SERVING, w.GetWorkers()[0].GetStatus())
	require.Empty(t, w.GetUnservedTypes())
	row := regexp.MustCompile(`(?m)^files@shed +serving +\S+ +site=north +\(devel\)( [0-9a-f]{12})? +0/50 .* ago\) +1$`)
	stacktest.WaitFor(t, "the service to tell that it is idle", func() (bool, error) {
		listed := c.ok(t, "workers")
		if !row.MatchString(listed) {
			return false, errors.New(listed)
		}
		return true, nil
	})
	require.Contains(t, c.ok(t, "workers", "describe", "shed"), "HashFiles  one-shot, continuous, recurring, queued  Hashes the files of a folder.")
	require.Contains(t, answered[jobsv1.Worker](t, c, "workers", "describe", "files@shed").GetTypes()[0].GetSpecSchema().String(), "max_bytes")
	require.Equal(t, "starter: files is a worker type; give one of its live services, such as files@shed\n", c.run(t.Context(), "workers", "describe", "files").stderr)
	require.Equal(t, "starter: there is no live service shad; starter workers lists those that live, such as files@shed\n", c.run(t.Context(), "workers", "describe", "shad").stderr)
	require.Equal(t, "starter: there is no live service x; starter workers lists those that live, such as files@shed\n", c.run(t.Context(), "workers", "describe", "x").stderr)

	worker.Kill()
	stacktest.WaitWithin(t, time.Minute, "the job type without a worker", func() (bool, error) {
		w = answered[jobsv1.ListWorkersResponse](t, c, "workers")
		return len(w.GetWorkers()) == 1 && w.GetWorkers()[0].GetStatus() == jobsv1.WorkerStatus_WORKER_STATUS_LOST, nil
	})
	require.Len(t, w.GetUnservedTypes(), 1, "the one on schedule")
	require.Equal(t, "HashFiles", w.GetUnservedTypes()[0].GetJobType())
	require.EqualValues(t, 1, w.GetUnservedTypes()[0].GetJobs())
	terminal := console{address: st.Temporal, terminal: true}
	text := terminal.ok(t, "workers")
	require.Contains(t, text, "\x1b[31mNo live worker serves HashFiles (1 job)\x1b[0m\n")
	require.Contains(t, text, "Lost: files@shed on ")
}

func TestBindIsShown(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "bound.toml", `
[jobs.take_steps.a]
spec = { steps = 1 }
bind = { zone = "north", name = "x" }
failover = "fail"
failover_after = "PT5S"
one_shot = {}
`)
	require.Equal(t, file+": 1 job is valid\n", console{}.ok(t, "validate", file))
	bad := writeFile(t, "bad.toml", `
[jobs.take_steps.a]
spec = { steps = 1 }
bind = { zone = 3 }
failover = "move"
failover_after = 0.5
one_shot = {}
`)
	r := console{}.run(t.Context(), "validate", bad)
	require.Contains(t, r.stderr, ":4:17: bind.zone: 3 is not a string\n")
	require.Contains(t, r.stderr, `:5:12: failover: "move" is not one of requeue, wait, fail`)
	require.Contains(t, r.stderr, ":6:18: failover_after: 0.5 is shorter than PT1S")
	require.Equal(t, job.FailoverRequeue, job.Options{}.FailoverPolicy())
}

// TestExternalJobTypeOutlastsAnOutage has a job type of another worker while parts of
// Temporal are away, and while no worker that brings it lives.
func TestExternalJobTypeOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "temporal")
	c := console{address: st.Temporal}
	file := externalFile(t, t.TempDir())
	start := func() *stacktest.Process {
		p := stacktest.StartProcess(t, st, "example-worker", "--service", "shed", "--tag", "site=north", "--service-timeout", "5s")
		p.WaitOutput("msg=announced")
		return p
	}
	valid := file + ": 2 jobs are valid\n"

	worker := start()
	require.Equal(t, valid, c.ok(t, "validate", file))
	st.Kill()
	for _, typeName := range []string{"HashFiles", "Nope"} {
		r := c.run(t.Context(), "run", "--type", typeName, "--spec", "{}")
		require.Equal(t, 1, r.code, "a call that may be right")
		require.Contains(t, r.stderr, "temporal at "+st.Temporal+" cannot be reached; is it running there?")
		require.NotContains(t, r.stderr, "unknown")
	}
	for _, verb := range []string{"plan", "apply"} {
		r := c.run(t.Context(), verb, "-f", file)
		require.Equal(t, 1, r.code)
		require.Regexp(t, `^It is not known whether workers have the job types of \S+ that are not built in: hash_files\.\nstarter: temporal at \S+ cannot be reached`, r.stderr)
	}

	// Nobody announces it again.
	worker.Kill()
	st.Restart(t)
	c.address = st.Temporal
	workers := client.New(st.Dial(t), st.Namespace).Workers
	stacktest.WaitFor(t, "the worker to be lost", func() (bool, error) {
		services, err := workers.Services(t.Context(), time.Now().Add(-time.Hour))
		return len(services.Lost) == 1, err
	})
	r := c.run(t.Context(), "validate", file)
	require.Equal(t, result{0, valid, "No live worker serves job type HashFiles: its schema is that of service files@shed.\n"}, r)
	require.Equal(t, 2, c.run(t.Context(), "run", "--type", "Nope", "--spec", "{}").code)

	// A host of a cluster is away: some descriptions do not come, for some time or at all.
	var asked, unanswered atomic.Int64
	released := make(chan struct{})
	proxy, err := grpcproxy.Start(t.Context(), st.Temporal, grpcproxy.Options{Refuse: func(method string) error {
		if method == "DescribeActivityExecution" && asked.Add(1) <= unanswered.Load() {
			<-released
		}
		return nil
	}})
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	t.Cleanup(func() { close(released) })
	behind := console{address: proxy.Address}
	unanswered.Store(1)
	require.Equal(t, valid, behind.ok(t, "validate", file))
	unanswered.Store(1000)
	r = behind.run(t.Context(), "run", "--type", "HashFiles", "--spec", "{}")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "\nstarter: temporal at "+proxy.Address+" does not answer in time\n")

	// What was applied keeps it, also when its workers have left in peace.
	c.ok(t, "apply", "--yes", "-f", file)
	require.Equal(t, valid, behind.ok(t, "validate", file))
	worker = start()
	worker.Signal(syscall.SIGTERM)
	require.Zero(t, worker.Wait())
	stacktest.WaitFor(t, "no service to be known", func() (bool, error) {
		services, err := workers.Services(t.Context(), time.Now().Add(-time.Hour))
		return len(services.Live)+len(services.Lost) == 0, err
	})
	r = c.run(t.Context(), "validate", file)
	require.Equal(t, result{0, valid, "No live worker serves job type HashFiles: its schema is that of the last apply.\n"}, r)
	require.Contains(t, c.run(t.Context(), "run", "--type", "HashFiles", "--spec", `{"folders": "x"}`).stderr, `unknown key "folders"; did you mean "folder"?`)
	saved := filepath.Join(t.TempDir(), "plan")
	require.Zero(t, c.run(t.Context(), "plan", "-f", file, "--out", saved).code)
	c.ok(t, "apply", saved)
}

// TestServeWaitsForJobTypes serves a file of jobs before the worker of their type has
// announced itself.
func TestServeWaitsForJobTypes(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	file := externalFile(t, t.TempDir())
	serving := stacktest.StartProcess(t, st, "starter", "serve", "--listen", "127.0.0.1:0", "-f", file)
	serving.WaitOutput("no worker has announced the job types hash_files of " + file)
	stacktest.StartProcess(t, st, "example-worker", "--service", "shed", "--tag", "site=north")
	serving.WaitOutput("job_id=hash_files.nightly action=create")
	serving.Signal(syscall.SIGTERM)
	require.Zero(t, serving.Wait())

	// A file with a mistake keeps the server from nothing else, and is read again.
	wrong := writeFile(t, "wrong.toml", "[defaults]\nwrong = 3\n")
	serving = stacktest.StartProcess(t, st, "starter", "serve", "--listen", "127.0.0.1:0", "-f", wrong)
	serving.WaitOutput("starter: serving http://")
	serving.WaitOutput(wrong + " has 1 problem")
	require.NoError(t, os.WriteFile(wrong, []byte("[defaults]\n"), 0o600))
	serving.WaitOutput(`"Temporal is in line with the jobs file"`)
	serving.Signal(syscall.SIGTERM)
	require.Zero(t, serving.Wait())

	nowhere := stacktest.StartProcess(t, st, "starter", "serve", "--listen", "127.0.0.1:0", "-f", wrong+".none")
	require.Equal(t, 1, nowhere.Wait())
}
