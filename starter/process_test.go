package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// site is a stack with workers that serve job types of the catalogue by counting
// what they are asked to run.
type site struct {
	*testing.T
	stack    *stacktest.Stack
	temporal client.Client
	ledger   workertest.Ledger
}

// newSite has a worker for each worker type. That of backend also has the type that more gives:
// another process would take its runs, too.
func newSite(t *testing.T, more ...func(*stacktest.Stack) job.Type) *site {
	t.Helper()
	s := &site{T: t, stack: stacktest.StartNamespace(t)}
	s.temporal = s.stack.Dial(t)
	for worker, name := range map[job.WorkerType]string{
		job.WorkerBackend: "GeneratePhotoVariantsToMinio",
		job.WorkerExtract: "ExtractHoboTimeFrame",
		job.WorkerLoad:    "LiveLoadInfluxV1",
	} {
		types := []job.Type{job.NewType(name, worker, "Counts its runs.", workertest.Noted[map[string]any](&s.ledger, nil))}
		if worker == job.WorkerBackend {
			for _, other := range more {
				types = append(types, other(s.stack))
			}
		}
		workertest.Start(t, s.stack, types...)
	}
	return s
}

// runs are how often each job has run.
func (s *site) runs(ids []string) []int {
	counts := make([]int, len(ids))
	for n, id := range ids {
		counts[n] = len(s.ledger.Calls(id))
	}
	return counts
}

// start runs bin/starter.
func (s *site) start(args ...string) *stacktest.Process {
	s.Helper()
	return stacktest.StartProcess(s, s.stack, "starter", args...)
}

// must runs bin/starter to its end, which must have the exit code.
func (s *site) must(code int, args ...string) string {
	s.Helper()
	p := s.start(args...)
	require.Equal(s, code, p.Wait(), "%v\n%s", args, p.Output())
	return p.Output()
}

// declaredJobs is a jobs file; revision changes the definition of every job.
type declaredJobs struct {
	recurring, continuous, oneShot, queued int
	revision                               int
}

func (d declaredJobs) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, `[defaults]
description = "revision %[1]d"
owner = "user:revision-%[1]d"

[jobs.extract_hobo_time_frame.spec]
base_url = "http://127.0.0.1:1"
token = "secret://revision-%[1]d"
organization = "dendra"
location = "common1"
backfill = "P2D"
increment = "PT12H"
overlap = "PT1H"
loggers = [{ serial = "21234001", station = "revision %[1]d" }]
`, d.revision)
	for n := range d.recurring {
		fmt.Fprintf(&b, "\n[jobs.extract_hobo_time_frame.r-%03d]\nrecurring = { recur_every = \"P%dD\" }\n", n, 30+d.revision)
	}
	for n := range d.continuous {
		fmt.Fprintf(&b, "\n[jobs.live_load_influx_v1.c-%03d]\ncontinuous = { interval = \"PT%dH\" }\n", n, 10+d.revision)
		fmt.Fprintf(&b, "spec = { location = \"revision-%d\", influx_url = \"http://127.0.0.1:8086\" }\n", d.revision)
	}
	for n := range d.oneShot + d.queued {
		kind, mode := "o", "one_shot = {}"
		if n >= d.oneShot {
			kind, mode = "q", `queued = { queue = "photos" }`
		}
		fmt.Fprintf(&b, "\n[jobs.generate_photo_variants_to_minio.%s-%03d]\n%s\n", kind, n, mode)
		// Jobs with the same spec are different jobs.
		fmt.Fprintf(&b, "spec = { bucket = \"uploads\", key = \"revision-%d-%d.jpg\" }\n", d.revision, n%7)
	}
	return b.String()
}

// onces are the ids of the jobs that run once.
func (d declaredJobs) onces() []string {
	var ids []string
	for n := range d.oneShot + d.queued {
		kind := "o"
		if n >= d.oneShot {
			kind = "q"
		}
		ids = append(ids, fmt.Sprintf("generate_photo_variants_to_minio.%s-%03d", kind, n))
	}
	return ids
}

func (d declaredJobs) file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.toml")
	require.NoError(t, os.WriteFile(path, []byte(d.text()), 0o600))
	return path
}
