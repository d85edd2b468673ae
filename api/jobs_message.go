package api

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// rowMessage is a job of a list.
func rowMessage(row client.JobRow) *jobsv1.Job {
	m := &jobsv1.Job{
		Id: row.ID, Type: row.Type, Provider: string(row.Provider), State: rowState(row),
		Options: &jobsv1.JobOptions{Owner: row.Owner, Tags: row.Tags},
	}
	message := m.ProtoReflect()
	if mode := message.Descriptor().Fields().ByName(protoreflect.Name(word(string(row.Mode)))); mode != nil {
		message.Set(mode, message.NewField(mode))
	}
	if queued := m.GetQueued(); queued != nil {
		queued.Queue = row.Queue
	}
	return m
}

func rowState(row client.JobRow) *jobsv1.JobState {
	state := &jobsv1.JobState{
		Status: enumOf[jobsv1.JobStatus](row.Status), PauseReason: row.PauseReason, PauseEndTime: timeOf(row.PauseEnd),
		LastStartTime: timeOf(row.LastStart), NextStartTime: timeOf(row.Next),
	}
	state.Failing = readmodel.FailingMessage(row.Failing)
	state.LastEndTime, state.ErrorClass, state.ErrorMessage = timeOf(row.Ended), row.Class, row.Error
	state.WaitReason, state.StopReason, state.Reason = row.WaitReason, row.StopReason, row.Reason
	state.UnderWay, state.LatestRunStatus = row.UnderWay, enumOf[jobsv1.RunStatus](row.LatestRun)
	return state
}

func detailState(detail *client.JobDetail) *jobsv1.JobState {
	state := rowState(detail.Row)
	state.DefinitionHash, state.NextStartTimes = detail.Hash, timesOf(detail.Next)
	state.Ahead, state.Note = int32(detail.Ahead), detail.Note
	for _, run := range detail.Runs {
		state.RunNames = append(state.RunNames, runName(run))
	}
	if detail.Continuous != nil {
		state.Continuous = continuousMessage(detail.Continuous)
	}
	return state
}

func continuousMessage(state *contract.ContinuousState) *jobsv1.ContinuousState {
	return &jobsv1.ContinuousState{
		Phase: string(state.Phase), Iterations: state.Iterations, Failed: state.Failed, Interrupted: state.Interrupted,
		LostWorkers: state.LostWorkers, Totals: state.Totals, Cursor: valueOf(state.Cursor),
		NextTime: timeOf(state.NextAt), LastSuccessTime: timeOf(state.LastSuccess), LastError: state.LastError,
		ConsecutiveFailures: int32(state.ConsecutiveFailures), ConsecutiveLostWorkers: int32(state.ConsecutiveLost),
		FailingSinceTime: timeOf(state.FailingSince), PauseReason: state.PauseReason, PauseEndTime: timeOf(state.PauseEnd), Binding: bindingMessage(&state.Binding),
	}
}

// bindingMessage is the service of a bound job, nil if it has none.
func bindingMessage(b *contract.Binding) *jobsv1.Binding {
	if b == nil || b.Service == "" {
		return nil
	}
	m := &jobsv1.Binding{Service: b.Service}
	for _, rebind := range b.Rebinds {
		m.Rebinds = append(m.Rebinds, &jobsv1.Rebind{
			RebindTime: timeOf(rebind.At), OldService: rebind.From, NewService: rebind.To, Reason: rebind.Reason,
		})
	}
	return m
}

// changeMessage is what a plan says of a job, and why the change failed.
func changeMessage(change schedules.Change, failed error) *jobsv1.JobChange {
	m := &jobsv1.JobChange{
		Action: enumOf[jobsv1.JobAction](change.Action), JobId: change.JobID, Fields: fieldMessages(change.Fields),
		Note: change.Note, Drifted: change.Drifted, Mode: word(string(change.Mode)), Etag: change.Fingerprint(),
		CurrentStartTimes: timesOf(change.NextNow), PlannedStartTimes: timesOf(change.NextThen),
	}
	if failed == nil {
		failed = change.Unread
	}
	if failed != nil {
		m.ErrorMessage = oneLine(failed)
	}
	return m
}

func fieldMessages(fields []schedules.Field) []*jobsv1.FieldChange {
	var list []*jobsv1.FieldChange
	for _, field := range fields {
		list = append(list, &jobsv1.FieldChange{Path: field.Path, OldValue: field.Old, NewValue: field.New})
	}
	return list
}

// placeMessage is the place of an item in a queue.
func placeMessage(receipt contract.EnqueueReceipt) *jobsv1.QueuePlace {
	return &jobsv1.QueuePlace{Sequence: receipt.Sequence, Ahead: int32(receipt.Ahead), Duplicate: receipt.Duplicate}
}

// latenessOf is a duration on the wire, nil where it is not known.
func latenessOf(run client.Run) *durationpb.Duration {
	if run.Scheduled.IsZero() || run.Delayed() {
		return nil
	}
	return durationpb.New(run.Lateness.Std())
}
