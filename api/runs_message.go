package api

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/client"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// runMessage is a run of a list.
func runMessage(run client.Run) *jobsv1.Run {
	m := &jobsv1.Run{
		Name: runName(run), JobId: run.JobID, JobType: run.Type, Status: enumOf[jobsv1.RunStatus](run.Status),
		Queue: run.Queue, Owner: run.Owner, Iteration: run.Iteration,
		ScheduledTime: timeOf(run.Scheduled), StartTime: timeOf(run.Started), TakenTime: timeOf(run.Taken), EndTime: timeOf(run.Ended),
		Lateness: latenessOf(run), Attempts: int32(run.Attempts), Handovers: int32(run.Handovers), Worker: run.Worker,
		Message: run.Message, Counts: run.Counts, ErrorClass: run.Class, ErrorMessage: run.Error,
		Mode: word(string(run.Mode)), UpdateTime: timeOf(run.LastUpdate),
		WaitReason: run.WaitReason, WaitingForWorker: run.WaitReason != "",
		SupersededByTime: timeOf(run.SupersededBy), HeldUntilTime: timeOf(run.HeldUntil),
	}
	if run.RetryOf != "" {
		m.RetryOf = refName(client.RunRef{WorkflowID: run.WorkflowID, RunID: run.RetryOf})
	}
	if p := run.Progress; p != nil {
		m.Progress = &jobsv1.RunProgress{Done: p.Done, Total: p.Total, Message: p.Message}
	}
	return m
}

// RunMessage is a run on the wire with all that is known of it.
func RunMessage(detail *client.RunDetail) *jobsv1.Run {
	m := runMessage(detail.Run)
	m.Cursor, m.LastError, m.NextAttemptTime = valueOf(detail.Cursor), detail.LastError, timeOf(detail.NextAttempt)
	m.LastErrorClass = detail.LastClass
	if detail.Class != "" {
		m.ErrorKind = detail.Kind.String()
	}
	m.Binding = bindingMessage(detail.Binding)
	if detail.Output != nil {
		m.Output = valueOf(detail.Output.Output)
	}
	if detail.Job != nil {
		m.Spec, m.WorkerType = structOf(detail.Job.Spec), string(detail.Job.Worker)
		m.RunTimeout = durationpb.New(detail.Job.Options.RunTimeout.Std())
	}
	return m
}

// spanMessages are what a run did, on the wire.
func spanMessages(spans []client.Span) []*jobsv1.RunSpan {
	var list []*jobsv1.RunSpan
	for _, span := range spans {
		list = append(list, &jobsv1.RunSpan{
			Kind: enumOf[jobsv1.RunSpanKind](span.Kind), StartTime: timeOf(span.Start), EndTime: timeOf(span.End),
			Attempt: int32(span.Attempt), Worker: span.Worker, ErrorClass: span.Class, Reason: span.Reason,
		})
	}
	return list
}
