package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/server"
	"github.com/dendrascience/dendra-jobs/server/audit"
)

// snapshot is a job in the audit log.
type snapshot struct {
	ID     string         `json:"id"`
	Paused bool           `json:"paused"`
	Spec   map[string]any `json:"spec"`
	State  struct {
		Status      string `json:"status"`
		PauseReason string `json:"pauseReason"`
	} `json:"state"`
}

func decode(t *testing.T, text json.RawMessage) snapshot {
	t.Helper()
	var s snapshot
	require.NoError(t, json.Unmarshal(text, &s), "%s", text)
	return s
}

// auditLog has a line for each call that changes something, and none for others.
func auditLog(t *testing.T, w *world) {
	const canary = "hunter2-canary"
	s := w.guarded(t, nil)
	ada, otto, vera := s.as("ada"), s.as("otto"), s.as("vera")
	last := func() audit.Record {
		all := s.audit.records(t)
		require.NotEmpty(t, all)
		return all[len(all)-1]
	}
	const id = "take_steps.audited"
	requestID := uuid.NewString()
	_, err := ada.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{
		Job: daily(t, id, map[string]any{"password": canary, "token": "secret://hobo", "gate": "one"}), RequestId: requestID,
	})
	require.NoError(t, err)
	line := last()
	require.Equal(t, audit.Record{
		Time: line.Time, Caller: "ada", KnownBy: "token", Role: "admin", Address: "127.0.0.1", Procedure: jobsv1connect.JobServiceCreateJobProcedure,
		Resource: "job/" + id, RequestID: requestID, Code: "ok", After: line.After,
	}, line)
	require.Equal(t, map[string]any{"password": "[redacted]", "token": "secret://hobo", "gate": "one"}, decode(t, line.After).Spec)

	_, err = ada.Jobs.UpdateJob(t.Context(), &jobsv1.UpdateJobRequest{Job: daily(t, id, map[string]any{"password": canary, "gate": "two"})})
	require.NoError(t, err)
	line = last()
	require.Equal(t, "one", decode(t, line.Before).Spec["gate"])
	require.Equal(t, "two", decode(t, line.After).Spec["gate"])

	_, err = otto.Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: id, Reason: "the logger is down"})
	require.NoError(t, err)
	line = last()
	require.Equal(t, []string{"otto", "operator", "the logger is down", "ok"}, []string{line.Caller, line.Role, line.Reason, line.Code})
	require.Equal(t, "JOB_STATUS_SCHEDULED", decode(t, line.Before).State.Status)
	require.Equal(t, "JOB_STATUS_PAUSED", decode(t, line.After).State.Status)
	require.Equal(t, "the logger is down", decode(t, line.After).State.PauseReason)
	_, err = otto.Jobs.ResumeJob(t.Context(), &jobsv1.ResumeJobRequest{Id: id})
	require.NoError(t, err)

	// Who pauses without a reason is named in Temporal too.
	_, err = otto.Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: id})
	require.NoError(t, err)
	require.Equal(t, "requested by otto", decode(t, last().After).State.PauseReason)

	// Refused: by role, by state, by the caller's own mistake, without a token.
	_, err = vera.Jobs.DeleteJob(t.Context(), &jobsv1.DeleteJobRequest{Id: id})
	requireError(t, err, connect.CodePermissionDenied, denied)
	line = last()
	require.Equal(t, []string{"vera", "permission_denied", "PERMISSION_DENIED", "job/" + id}, []string{line.Caller, line.Code, line.Error, line.Resource})
	require.Nil(t, line.Before)
	_, err = ada.Jobs.DeleteJob(t.Context(), &jobsv1.DeleteJobRequest{Id: id, Etag: "another"})
	require.Equal(t, connect.CodeAborted, connect.CodeOf(err))
	line = last()
	require.Equal(t, []string{"aborted", "ETAG_MISMATCH"}, []string{line.Code, line.Error})
	require.Nil(t, line.After)
	_, err = s.as("").Jobs.DeleteJob(t.Context(), &jobsv1.DeleteJobRequest{Id: id})
	requireError(t, err, connect.CodeUnauthenticated, unauthenticated)
	s.log.Flush()
	line = last()
	require.Equal(t, []string{"", "none", "127.0.0.1", "unauthenticated"}, []string{line.Caller, line.Role, line.Address, line.Code})
	require.Equal(t, map[string]int{jobsv1connect.JobServiceDeleteJobProcedure: 1}, line.Refused)
	status, _ := s.call(t, "ada", jobsv1connect.JobServiceDeleteJobProcedure, `{"nothing":`)
	require.Equal(t, 400, status)
	require.Equal(t, "invalid_argument", last().Code)

	// A set of jobs, with what was done to each.
	stream, err := ada.JobSets.ApplyJobSet(t.Context(), &jobsv1.ApplyJobSetRequest{JobSet: &jobsv1.JobSet{
		Provider: "toml", Jobs: []*jobsv1.Job{daily(t, "take_steps.set-a", map[string]any{"password": canary}), daily(t, "take_steps.set-b", nil)},
	}})
	for err == nil {
		_, err = stream.Receive()
	}
	line = last()
	require.Equal(t, "ok", line.Code)
	require.Equal(t, "job-set/toml/take_steps.set-a,take_steps.set-b", line.Resource)
	require.Equal(t, 2, line.ChangeCount)
	require.Contains(t, string(line.Changes[0]), `"action":"JOB_ACTION_CREATE"`)

	// What is read follows from the verb: it is about a job.
	_, err = otto.Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Id: "take_steps.set-b"})
	require.NoError(t, err)
	line = last()
	require.Equal(t, audit.Record{
		Time: line.Time, Caller: "otto", KnownBy: "token", Role: "operator", Address: "127.0.0.1", Procedure: jobsv1connect.JobServiceRunJobProcedure,
		Resource: "job/take_steps.set-b", Code: "ok", Before: line.Before, After: line.After,
	}, line)
	require.Equal(t, "take_steps.set-b", decode(t, line.Before).ID)
	require.Equal(t, "take_steps.set-b", decode(t, line.After).ID)

	// Queues, and a dry run.
	_, err = otto.Queues.SetQueueFailurePolicy(t.Context(), &jobsv1.SetQueueFailurePolicyRequest{Queue: "audited", OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_HALT})
	require.NoError(t, err)
	require.Contains(t, string(last().After), "FAILURE_POLICY_HALT")
	_, err = otto.Queues.PauseQueue(t.Context(), &jobsv1.PauseQueueRequest{Queue: "audited"})
	require.NoError(t, err)
	line = last()
	require.Equal(t, "queue/audited", line.Resource)
	require.NotContains(t, string(line.Before), "PAUSED")
	require.Contains(t, string(line.After), "QUEUE_STATUS_PAUSED")
	item := oneShot(t, "take_steps.enqueued", nil)
	item.Mode = &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: "audited-too"}}
	_, err = ada.Queues.EnqueueJobs(t.Context(), &jobsv1.EnqueueJobsRequest{Jobs: []*jobsv1.Job{item}})
	require.NoError(t, err)
	require.Equal(t, "queue/audited-too/take_steps.enqueued", last().Resource)
	_, err = ada.Queues.EnqueueJobs(t.Context(), &jobsv1.EnqueueJobsRequest{JobIds: []string{"take_steps.enqueued"}})
	require.NoError(t, err)
	require.Equal(t, "queue/audited-too", last().Resource)
	require.JSONEq(t, `{"jobIds":["take_steps.enqueued"]}`, string(last().Request))
	_, err = ada.Jobs.DeleteJob(t.Context(), &jobsv1.DeleteJobRequest{Id: id, ValidateOnly: true})
	require.NoError(t, err)
	require.True(t, last().DryRun)

	count := len(s.audit.records(t))
	_, err = ada.Jobs.DeleteJob(t.Context(), &jobsv1.DeleteJobRequest{Id: id})
	require.NoError(t, err)
	line = last()
	require.Equal(t, id, decode(t, line.Before).ID)
	require.Nil(t, line.After)
	_, err = ada.Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{})
	require.NoError(t, err)
	require.Len(t, s.audit.records(t), count+1, "reads have no line")

	require.NotContains(t, s.audit.String(), canary)
	for _, token := range s.tokens {
		require.NotContains(t, s.audit.String(), token)
	}
}

// received tells when a request was let in, before anything is done.
type received struct {
	connect.ServerStream
	then func()
}

func (r received) Receive(message any) error {
	err := r.ServerStream.Receive(message)
	if err == nil {
		r.then()
	}
	return err
}

// TestAuditBeforeAChange has the line of a change in the file before it is made: a process that
// is killed meanwhile leaves it.
func TestAuditBeforeAChange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	log, err := audit.Open(path, quiet)
	require.NoError(t, err)
	var text []byte
	s := alone(t).guarded(t, func(c *server.Config) {
		c.Audit = log
		c.API.Interceptors = append(c.API.Interceptors, func(next connect.ServerFunc) connect.ServerFunc {
			return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
				return next(ctx, spec, received{stream, func() { text, err = os.ReadFile(path) }})
			}
		})
	})
	_, failed := s.as("otto").Alerts.CreateSilence(t.Context(), &jobsv1.CreateSilenceRequest{Silence: &jobsv1.Silence{Reason: "maintenance"}})
	require.Error(t, failed, "there is no NATS")
	require.NoError(t, err)
	var begun, ended audit.Record
	require.NoError(t, json.Unmarshal(text, &begun), "one line")
	require.Equal(t, []string{"started", "otto", "token", jobsv1connect.AlertServiceCreateSilenceProcedure}, []string{begun.Code, begun.Caller, begun.KnownBy, begun.Procedure})
	all, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(bytes.TrimPrefix(all, text), &ended), "another line")
	require.Equal(t, begun.Call, ended.Call)
	require.NotEqual(t, begun.Code, ended.Code)
}
