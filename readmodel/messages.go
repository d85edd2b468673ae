package readmodel

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Timestamp is a time on the wire, nil for the zero time.
func Timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// Enum is an enum of the contract. The words of this system are its names in lower case,
// without the prefix.
type Enum interface {
	~int32
	Descriptor() protoreflect.EnumDescriptor
}

// EnumOf is the value that a word stands for; unspecified if there is none.
func EnumOf[E Enum, S ~string](word S) E {
	var e E
	return E(EnumNumber(e.Descriptor(), string(word)))
}

// EnumNumber is that of the value that a word stands for; 0 if there is none.
func EnumNumber(of protoreflect.EnumDescriptor, word string) protoreflect.EnumNumber {
	name := enumPrefix(of) + strings.ToUpper(strings.ReplaceAll(word, "-", "_"))
	value := of.Values().ByName(protoreflect.Name(name))
	if value == nil {
		return 0
	}
	return value.Number()
}

// EnumWord is the word that a value stands for, "" if it is unspecified.
func EnumWord(of protoreflect.EnumDescriptor, number protoreflect.EnumNumber) string {
	value := of.Values().ByNumber(number)
	if number == 0 || value == nil {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(string(value.Name()), enumPrefix(of)))
}

// enumPrefix is that of the names of an enum's values: RUN_STATUS_.
func enumPrefix(of protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(of.Values().ByNumber(0).Name()), "UNSPECIFIED")
}

// RunName is the name of a run: WORKFLOW_ID@RUN_ID.
func RunName(ref client.RunRef) string { return ref.WorkflowID + "@" + ref.RunID }

// IterationName is the name of an iteration: JOB_ID#NUMBER.
func IterationName(jobID string, number int64) string {
	return jobID + "#" + strconv.FormatInt(number, 10)
}

// ItemRunName is the name of the run of a queue's item, "" if it has none.
func ItemRunName(jobID, runID string) string {
	if runID == "" {
		return ""
	}
	return RunName(client.RunRef{WorkflowID: contract.JobWorkflowID(jobID), RunID: runID})
}

// FailingMessage is on the wire, nil for nil.
func FailingMessage(f *contract.Failing) *jobsv1.Failing {
	if f == nil {
		return nil
	}
	return &jobsv1.Failing{
		Failures: int32(f.Failures), Since: Timestamp(f.Since), ErrorClass: f.Class, ErrorMessage: f.Error, NextRunTime: Timestamp(f.NextRun),
	}
}

// QueueMessage is a queue on the wire.
func QueueMessage(q *client.Queue) *jobsv1.Queue {
	m := &jobsv1.Queue{
		Name: q.Name, Status: EnumOf[jobsv1.QueueStatus](q.Status), Waiting: int32(q.Waiting), OldestTime: Timestamp(q.Oldest),
		RanLastMinute: int32(q.LastMinute), RanLastHour: int32(q.LastHour), RanSinceTime: Timestamp(q.RanSince),
		Accepted: q.Accepted, Completed: q.Completed, Failed: q.Failed, Canceled: q.Canceled, Skipped: q.Skipped,
		DeadLetters: int32(q.DeadLetters), OnFailure: EnumOf[jobsv1.FailurePolicy](q.OnFailure),
		Lost: q.Lost, DeadLettersDropped: q.DeadLettersDropped, Paused: q.Paused, PauseReason: q.PauseReason, PauseEndTime: Timestamp(q.PauseEnd), Draining: q.Draining,
	}
	if item := q.Running; item != nil {
		m.Running = &jobsv1.QueueItem{
			Sequence: item.Sequence, JobId: item.JobID, StartTime: Timestamp(item.Started), RunName: ItemRunName(item.JobID, item.RunID),
		}
	}
	if halt := q.Halted; halt != nil {
		m.Halt = &jobsv1.QueueHalt{StartTime: Timestamp(halt.Since), Reason: halt.Reason, JobId: halt.JobID, RunName: ItemRunName(halt.JobID, halt.RunID)}
	}
	if end := q.Ended; end != nil {
		m.End = &jobsv1.QueueEnd{
			Status: EnumOf[jobsv1.RunStatus](end.Status), EndTime: Timestamp(end.At), EndedBy: end.By, Reason: end.Reason,
			RunningStatus: EnumOf[jobsv1.RunStatus](end.Running),
		}
	}
	if handler := q.Stopping; handler != nil {
		m.Stopping = &jobsv1.StoppingHandler{JobId: handler.JobID, EndTime: Timestamp(handler.Until)}
	}
	switch {
	case q.Ended != nil:
		m.Status = jobsv1.QueueStatus_QUEUE_STATUS_ENDED
		m.Reason = QueueEnded(q.Ended.Status)
		if q.Ended.Reason != "" {
			m.Reason += ": " + q.Ended.Reason
		}
	case q.Halted != nil:
		m.Reason = q.Halted.Reason
	case q.Paused:
		m.Reason = contract.PauseText(q.PauseReason, q.PauseEnd)
	}
	return m
}

// QueueEnded says how the workflow of a queue has ended.
func QueueEnded(status client.RunStatus) string {
	return fmt.Sprintf("its workflow ended as %s", status)
}

// loaderSilence is the age of the last report at which a loader counts as stopped: ten
// times the interval of reports.
const loaderSilence = 30 * time.Second

// LoadMessage is a load on the wire.
func LoadMessage(load pipeline.Load, now time.Time) *jobsv1.Load {
	loader := now.Sub(load.UpdatedAt) < loaderSilence
	m := &jobsv1.Load{
		Location: load.Location, Flow: string(load.Operation), Mirror: load.Mirror, Status: loadStatus(load, loader),
		Address: load.Address, JobId: load.Job, Waiting: int64(load.Waiting), OldestTime: Timestamp(load.Oldest),
		Points: load.Points, Quarantined: load.Quarantined, Expired: load.Expired,
		LastWriteTime: Timestamp(load.LastWrite), UpdateTime: Timestamp(load.UpdatedAt),
		ErrorMessage: load.Breaker.Reason, NextAttemptTime: Timestamp(load.Breaker.RetryAt), Failures: int32(load.Breaker.Failures),
		ErrorClass: load.Breaker.Class, FailureTime: Timestamp(load.Breaker.FailedAt), MaxBytes: int64(load.MaxBytes), DoneSequence: int64(load.Done),
		LoaderReports: loader,
	}
	m.RecentPoints, m.RecentRefusedPoints = load.Recent.Counts()
	m.RefusingTime, m.RefusalClass, m.RefusalMessage = Timestamp(load.Recent.RefusingSince), load.Recent.Class, load.Recent.Reason
	if loader {
		m.PointsPerSecond = load.PointsPerSecond
	}
	if load.Breaker.State != pipeline.BreakerClosed {
		m.DownTime = Timestamp(load.Breaker.Since)
	}
	if load.Breaker.Held != nil && load.Waiting > 0 {
		m.HeldSequence, m.HeldSubject = int64(load.Breaker.Held.Sequence), load.Breaker.Held.Subject
	}
	return m
}

// Refusals says how many of the latest points of a load were refused, and why the last
// was.
func Refusals(l *jobsv1.Load) string {
	return fmt.Sprintf("%d of the latest %d points are in quarantine, the last as %s: %s",
		l.GetRecentRefusedPoints(), l.GetRecentPoints(), l.GetRefusalClass(), l.GetRefusalMessage())
}

func loadStatus(load pipeline.Load, loader bool) jobsv1.LoadStatus {
	switch {
	case load.Breaker.State == pipeline.BreakerOpen:
		return jobsv1.LoadStatus_LOAD_STATUS_DOWN
	case load.Breaker.State == pipeline.BreakerTrying:
		return jobsv1.LoadStatus_LOAD_STATUS_TRYING
	case !loader:
		return jobsv1.LoadStatus_LOAD_STATUS_NO_LOADER
	case load.Breaker.Failures > 0:
		return jobsv1.LoadStatus_LOAD_STATUS_FAILING
	case !load.Recent.RefusingSince.IsZero():
		return jobsv1.LoadStatus_LOAD_STATUS_REFUSING
	}
	return jobsv1.LoadStatus_LOAD_STATUS_OK
}

// WorkerMessage is a worker process on the wire.
func WorkerMessage(service client.LiveService) *jobsv1.Worker {
	m := &jobsv1.Worker{
		Name: service.Name, Type: string(service.Worker), Status: EnumOf[jobsv1.WorkerStatus](service.State), Tags: service.Tags,
		Identity: service.Identity, StartTime: Timestamp(service.Started), LastSeenTime: Timestamp(service.LastSeen), LastPollTime: Timestamp(service.LastPoll),
		Version: service.Build.Version, Revision: service.Build.Revision,
		Deployment: service.Deployment, BuildId: service.BuildID,
		Module: service.Build.Module, Pid: int64(service.PID), KeepsLogs: service.KeepsLogs,
		Slots: int32(service.Slots), Running: int32(service.Running), StuckHandlers: int32(service.StuckHandlers),
	}
	for _, served := range service.Types {
		m.JobTypes = append(m.JobTypes, served.Name)
	}
	return m
}
