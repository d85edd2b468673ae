package server_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2/connecthttp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// replica is a process of starter serve, which is started again on the same address.
type replica struct {
	stack   *stacktest.Stack
	address string
	args    []string
	process *stacktest.Process
}

func (r *replica) start(t *testing.T) {
	t.Helper()
	r.process = stacktest.StartProcess(t, r.stack, "starter", append([]string{"serve", "--listen", r.address}, r.args...)...)
}

func (r *replica) waitReady(t *testing.T) {
	t.Helper()
	stacktest.WaitFor(t, "a replica to be ready", func() (bool, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.address+"/readyz", nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

// TestReplicas kills one of two replicas again and again while callers create jobs. Each
// job is asked for twice at once, of one replica or of both, and each call is repeated until
// it is answered. Each job is there once, and ran once.
func TestReplicas(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	draw := stacktest.Random(t)

	ran := startNoting(t, st)
	token := auth.NewToken()
	credentials := filepath.Join(t.TempDir(), "credentials.toml")
	require.NoError(t, os.WriteFile(credentials, []byte(auth.Line("feeder", verbs.RoleAdmin, auth.Hash(token), time.Time{})), 0o600))
	auditLog := filepath.Join(t.TempDir(), "audit.log") // One file for both.
	var replicas []*replica
	var clients []*api.Clients
	for range 2 {
		r := &replica{stack: st, address: "127.0.0.1:" + stacktest.FreePort(t), args: []string{"--credentials", credentials, "--audit-log", auditLog}}
		r.start(t)
		replicas = append(replicas, r)
		transport := &http.Client{Transport: bearer{token, http.DefaultTransport}}
		clients = append(clients, api.NewClients(connecthttp.NewTransport(transport, "http://"+r.address)))
	}
	for _, r := range replicas {
		r.waitReady(t)
	}

	jobs := stacktest.Size(60, 1000)
	var next, repeats atomic.Int64
	var callers sync.WaitGroup
	began := time.Now()
	for caller := range 8 {
		callers.Go(func() {
			for n := next.Add(1); n <= int64(jobs); n = next.Add(1) {
				request := &jobsv1.CreateJobRequest{Job: oneShot(t, fmt.Sprintf("take_steps.n-%04d", n), nil), RequestId: uuid.NewString()}
				create := func(first int) {
					for try := first; ; try++ {
						call, stop := context.WithTimeout(t.Context(), 20*time.Second)
						_, err := clients[try%2].Jobs.CreateJob(call, request)
						stop()
						if err == nil || t.Context().Err() != nil {
							break
						}
						repeats.Add(1)
					}
				}
				var pair sync.WaitGroup
				pair.Go(func() { create(caller) })
				pair.Go(func() { create(caller + int(n)) })
				pair.Wait()
			}
		})
	}
	ended := make(chan struct{})
	go func() { callers.Wait(); close(ended) }()
	kills := 0
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-time.After(time.Duration(500+draw.IntN(2500)) * time.Millisecond):
			victim := replicas[draw.IntN(2)]
			victim.process.Kill()
			kills++
			victim.start(t)
			victim.waitReady(t)
		}
	}
	t.Logf("%d jobs in %s; %d kills, %d calls repeated", jobs, time.Since(began).Round(time.Millisecond), kills, repeats.Load())
	require.Positive(t, kills)

	// Counted in Temporal itself.
	temporal := st.Dial(t)
	count := func(query string) int64 {
		response, err := temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: st.Namespace, Query: query})
		require.NoError(t, err)
		return response.GetCount()
	}
	stacktest.WaitFor(t, "all runs to have ended", func() (bool, error) {
		return count("WorkflowType = 'RunJob' AND ExecutionStatus = 'Completed'") >= int64(jobs), nil
	})
	require.EqualValues(t, jobs, count("WorkflowType = 'RunJob'"))
	ids := map[string]int{}
	var place []byte
	for first := true; first || len(place) > 0; first = false {
		page, err := temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: st.Namespace, Query: "WorkflowType = 'RunJob'", PageSize: 1000, NextPageToken: place,
		})
		require.NoError(t, err)
		for _, execution := range page.GetExecutions() {
			ids[execution.GetExecution().GetWorkflowId()]++
		}
		place = page.GetNextPageToken()
	}
	require.Len(t, ids, jobs)
	for id, runs := range ids {
		require.Equal(t, 1, runs, id)
	}
	requireOnce(t, ran, jobs)
	audited, err := os.ReadFile(auditLog)
	require.NoError(t, err)
	for id := range ids {
		require.Contains(t, string(audited), fmt.Sprintf("%q:%q", "resource", id), "no change is without a line, whoever was killed")
	}
	total := 0
	for from := ""; ; {
		page, err := clients[0].Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{PageSize: 1000, PageToken: from})
		require.NoError(t, err)
		total += len(page.GetJobs())
		if from = page.GetNextPageToken(); from == "" {
			break
		}
	}
	require.Equal(t, jobs, total)
}

// startNoting starts a worker whose ledger has what it runs.
func startNoting(t *testing.T, st *stacktest.Stack) *workertest.Ledger {
	t.Helper()
	l := &workertest.Ledger{}
	workertest.Start(t, st, job.NewType("TakeSteps", "servetest", "Does nothing.", workertest.Noted[stepSpec](l, nil)))
	return l
}

// requireOnce requires that so many jobs ran, each once.
func requireOnce(t *testing.T, l *workertest.Ledger, jobs int) {
	t.Helper()
	ran := map[string]bool{}
	for _, call := range l.Calls("") {
		require.False(t, ran[call.JobID], call.JobID)
		ran[call.JobID] = true
	}
	require.Len(t, ran, jobs)
}

// TestReplicasOfAFile has three replicas keep Temporal in line with one file: each job is
// made, changed and started once, and what a person deletes comes back.
func TestReplicasOfAFile(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	ran := startNoting(t, st)
	path := filepath.Join(t.TempDir(), "jobs.toml")
	write := func(jobs int, cron string) {
		var text strings.Builder
		for n := range jobs {
			fmt.Fprintf(&text, "[jobs.take_steps.once-%02d]\none_shot = {}\n[jobs.take_steps.daily-%02d]\nrecurring = { cron = %q }\n", n, n, cron)
		}
		replace(t, path, []byte(text.String()))
	}
	write(20, "0 6 1 1 *")
	c := client.New(st.Dial(t), st.Namespace)
	workertest.WaitListed(t, c)
	var replicas []*replica
	for range 3 {
		r := &replica{stack: st, address: "127.0.0.1:" + stacktest.FreePort(t), args: []string{"--file", path, "--prune", "--sync-every", "PT3S"}}
		r.start(t)
		replicas = append(replicas, r)
	}
	clients := api.NewClients(connecthttp.NewTransport(http.DefaultClient, "http://"+replicas[0].address))
	replicas[0].waitReady(t)
	jobs := func(filter string) int {
		page, err := clients.Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{Filter: filter, PageSize: 1000})
		require.NoError(t, err)
		return len(page.GetJobs())
	}
	stacktest.WaitFor(t, "all jobs", func() (bool, error) { return jobs("mode = recurring") == 20 && jobs("status = COMPLETED") == 20, nil })
	requireOnce(t, ran, 20)

	replicas[1].process.Kill()
	write(19, "0 7 1 1 *")
	stacktest.WaitFor(t, "the change", func() (bool, error) {
		found, err := clients.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: "take_steps.daily-18"})
		return err == nil && found.GetJob().GetRecurring().GetCron() == "0 7 1 1 *" && jobs("mode = recurring") == 19, err
	})
	require.NoError(t, st.Dial(t).ScheduleClient().GetHandle(t.Context(), "job/take_steps.daily-03").Delete(t.Context()))
	stacktest.WaitFor(t, "what was deleted by hand", func() (bool, error) {
		_, err := clients.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: "take_steps.daily-03"})
		return err == nil, err
	})
	requireOnce(t, ran, 20)

	// Every change is in the audit log of one replica, which is its standard output.
	var made int
	for _, r := range replicas {
		made += strings.Count(r.process.Output(), `"action":"JOB_ACTION_CREATE"`)
	}
	require.GreaterOrEqual(t, made, 41)
	replicas[0].process.Signal(os.Interrupt)
	require.Zero(t, replicas[0].process.Wait())
}
