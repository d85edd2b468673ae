package api

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// timeOf is a time on the wire, nil for the zero time.
func timeOf(t time.Time) *timestamppb.Timestamp { return readmodel.Timestamp(t) }

func timesOf(times []time.Time) []*timestamppb.Timestamp {
	list := make([]*timestamppb.Timestamp, len(times))
	for i, t := range times {
		list[i] = timestamppb.New(t)
	}
	return list
}

// toTime is a time of a request, zero if it has none.
func toTime(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// enumOf is the value that a word stands for; unspecified if there is none.
func enumOf[E readmodel.Enum, S ~string](word S) E { return readmodel.EnumOf[E](word) }

// wordOf is the word that a value stands for, "" if it is unspecified.
func wordOf[S ~string, E readmodel.Enum](e E) S {
	return S(readmodel.EnumWord(e.Descriptor(), protoreflect.EnumNumber(e)))
}

// structOf is a JSON object on the wire. Numbers become floating-point ones.
func structOf(text json.RawMessage) *structpb.Struct {
	if len(text) == 0 {
		return nil
	}
	object := &structpb.Struct{}
	if err := protojson.Unmarshal(text, object); err != nil {
		return nil // Not JSON: it was never checked.
	}
	return object
}

// valueOf is any JSON on the wire.
func valueOf(text json.RawMessage) *structpb.Value {
	if len(text) == 0 {
		return nil
	}
	value := &structpb.Value{}
	if err := protojson.Unmarshal(text, value); err != nil {
		return structpb.NewStringValue(string(text))
	}
	return value
}

// Word is the word of people and of jobs files for a value of an enum of the contract:
// timed_out for RUN_STATUS_TIMED_OUT. It is "" for the unspecified value.
func Word(e protoreflect.Enum) string { return readmodel.EnumWord(e.Descriptor(), e.Number()) }

// Refusals says in a sentence how many of the latest points of a load were refused, and why
// the last was.
func Refusals(l *jobsv1.Load) string { return readmodel.Refusals(l) }

// RuleWord is the word of a rule of alerts: queue-halted.
func RuleWord(rule jobsv1.AlertRule) string { return readmodel.RuleWord(rule) }

// AlertGroup is what needs a person, with all that it explains.
type AlertGroup = readmodel.AlertGroup

// GroupAlerts puts alerts to those that explain them, and those of jobs that fail alike to each
// other.
func GroupAlerts(list []*jobsv1.Alert) []AlertGroup { return readmodel.GroupAlerts(list) }

// RuleOf is the rule of a word; unspecified if there is none.
func RuleOf(word string) jobsv1.AlertRule { return readmodel.RuleOf(word) }

// WorkflowOf is the id of the workflow of a job, in Temporal.
func WorkflowOf(jobID string) string { return contract.JobWorkflowID(jobID) }

// JobOfWorkflow is the job of a workflow with such an id, or of a Schedule.
func JobOfWorkflow(id string) (jobID string, ok bool) { return contract.JobIDOfSchedule(id) }

// Bounds of requests.
const (
	// MaxBatchItems bounds the jobs of a request of EnqueueJobs.
	MaxBatchItems = contract.MaxBatchItems
	// MaxStarts bounds the runs of a backfill, and the starts in an answer.
	MaxStarts = client.MaxStarts
)

// InQueue reports whether a job is an item that a queue has, and tells of itself.
func InQueue(j *jobsv1.JobOverview) bool { return readmodel.InQueue(j) }

// FreshUntil is when the latest success of a job becomes older than its freshness: the zero
// time if it has none, or nothing is known of it yet.
func FreshUntil(j *jobsv1.JobOverview) time.Time { return readmodel.FreshUntil(j) }

// ParseDuration reads a duration as people and jobs files write it: PT15M, 900.
func ParseDuration(text string) (time.Duration, error) {
	d, err := job.ParseDuration(text)
	return d.Std(), err
}
