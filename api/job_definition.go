package api

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Definition is the job that a message declares. What is left out has its default. It
// lists what cannot be read; whether the job is valid is for [job.Job.Validate] and its
// job type to say.
func Definition(m *jobsv1.Job) (job.Job, []job.Problem) {
	var r reader
	j := job.Job{
		ID: m.GetId(), Type: m.GetType(), Worker: job.WorkerType(m.GetWorker()), Provider: job.Provider(m.GetProvider()),
		Spec: r.spec(m.GetSpec()),
	}
	switch mode := m.GetMode().(type) {
	case *jobsv1.Job_OneShot:
		j.OneShot = &job.OneShot{At: r.time(mode.OneShot.GetStartTime(), "one_shot", "at")}
	case *jobsv1.Job_Recurring:
		j.Recurring = r.recurring(mode.Recurring)
	case *jobsv1.Job_Continuous:
		j.Continuous = &job.Continuous{
			Interval: r.duration(mode.Continuous.GetInterval(), "continuous", "interval"), RestartOnChange: mode.Continuous.GetRestartOnChange(),
		}
	case *jobsv1.Job_Queued:
		j.Queued = &job.Queued{Queue: mode.Queued.GetQueue(), OnFailure: wordOf[job.OnFailure](mode.Queued.GetOnFailure())}
	}
	j.Options = r.options(job.DefaultOptions(j.Mode()), m.GetOptions())
	j.Options.Paused = m.GetPaused()
	return j, r.problems
}

// reader reads values, and notes what is wrong with them.
type reader struct{ problems []job.Problem }

func (r *reader) at(path []string, format string, args ...any) {
	r.problems = append(r.problems, job.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) recurring(m *jobsv1.Recurring) *job.Recurring {
	in := func(name string) []string { return []string{"recurring", name} }
	recurring := &job.Recurring{
		RecurEvery: r.duration(m.GetRecurEvery(), in("recur_every")...), Cron: m.GetCron(), TimeZone: m.GetTimeZone(),
		Jitter:  r.duration(m.GetJitter(), in("jitter")...),
		Overlap: wordOf[job.Overlap](m.GetOverlap()), Misfire: wordOf[job.Misfire](m.GetMisfire()),
		MaxMissed: int(m.GetMaxMissed()), CatchupWindow: r.duration(m.GetCatchupWindow(), in("catchup_window")...),
		StartAt: r.time(m.GetStartTime(), in("start_at")...), EndAt: r.time(m.GetEndTime(), in("end_at")...),
		PauseAfterFailures: int(m.GetPauseAfterFailures()), RetryEvery: r.duration(m.GetRetryEvery(), in("retry_every")...),
	}
	if m.GetOffset() != nil {
		offset := r.duration(m.GetOffset(), in("offset")...)
		recurring.Offset = &offset
	}
	return recurring
}

func (r *reader) options(o job.Options, m *jobsv1.JobOptions) job.Options {
	set := func(into *job.Duration, d *durationpb.Duration, path ...string) {
		if d != nil {
			*into = r.duration(d, path...)
		}
	}
	o.Description, o.Tags, o.Bind = m.GetDescription(), m.GetTags(), m.GetBind()
	if err := o.Owner.UnmarshalText([]byte(m.GetOwner())); err != nil {
		r.at([]string{"owner"}, "%s", err)
	}
	set(&o.RunTimeout, m.GetRunTimeout(), "run_timeout")
	set(&o.HeartbeatTimeout, m.GetHeartbeatTimeout(), "heartbeat_timeout")
	if m != nil && m.MaxRetryCount != nil {
		o.MaxRetryCount = int(m.GetMaxRetryCount())
	}
	set(&o.RetryBackoff.Initial, m.GetRetryBackoff().GetInitial(), "retry_backoff", "initial")
	set(&o.RetryBackoff.Max, m.GetRetryBackoff().GetMax(), "retry_backoff", "max")
	if coefficient := m.GetRetryBackoff().GetCoefficient(); coefficient != 0 {
		o.RetryBackoff.Coefficient = coefficient
	}
	set(&o.StopGracePeriod, m.GetStopGracePeriod(), "stop_grace_period")
	o.Failover = wordOf[job.Failover](m.GetFailover())
	set(&o.FailoverAfter, m.GetFailoverAfter(), "failover_after")
	set(&o.Freshness, m.GetFreshness(), "freshness")
	if d := m.GetDeadline(); d != nil {
		o.Deadline = &job.Deadline{Time: d.GetTime(), TimeZone: d.GetTimeZone()}
	}
	return o
}

func (r *reader) time(t *timestamppb.Timestamp, path ...string) time.Time {
	if t == nil {
		return time.Time{}
	}
	if t.CheckValid() != nil {
		r.at(path, "it is not a time from the year 1 to 9999")
		return time.Time{}
	}
	return t.AsTime()
}

func (r *reader) duration(d *durationpb.Duration, path ...string) job.Duration {
	switch {
	case d == nil:
		return 0
	case d.CheckValid() != nil:
		r.at(path, "it is not a duration of at most 10,000 years")
	case d.GetSeconds() < 0 || d.GetNanos() < 0:
		r.at(path, "the duration is negative")
	case d.GetSeconds() > math.MaxInt64/int64(time.Second)-1:
		r.at(path, "the duration is longer than 292 years")
	default:
		return job.Duration(d.AsDuration())
	}
	return 0
}

// maxWhole is the largest number up to which floating-point numbers hold every whole one.
const maxWhole = 1 << 53

// wireOfSpec is more bytes of a message than any byte of JSON becomes: a digit and a comma
// are eleven.
const wireOfSpec = 8

// spec is the JSON text of a spec.
func (r *reader) spec(s *structpb.Struct) json.RawMessage {
	if s == nil {
		return json.RawMessage("{}")
	}
	if proto.Size(s) > wireOfSpec*job.MaxSpecBytes { // It need not become a text to be too large.
		r.at([]string{"spec"}, "the spec has more than %d bytes: pass large data by reference", job.MaxSpecBytes)
		return nil
	}
	r.whole(structpb.NewStructValue(s), append(make([]string, 0, maxDepth), "spec"))
	text, err := json.Marshal(s.AsMap())
	if err != nil {
		r.at([]string{"spec"}, "it has a number that is not finite")
		return nil
	}
	return text
}

// whole reports numbers that have lost digits on the way. It writes on into the path.
func (r *reader) whole(v *structpb.Value, path []string) {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_NumberValue:
		if math.Abs(kind.NumberValue) > maxWhole && kind.NumberValue == math.Trunc(kind.NumberValue) {
			r.at(slices.Clone(path), "a whole number beyond 2^53 loses digits on the way; write it as a text if the job type takes one")
		}
	case *structpb.Value_StructValue:
		for _, name := range sortedKeys(kind.StructValue.GetFields()) {
			r.whole(kind.StructValue.GetFields()[name], append(path, name))
		}
	case *structpb.Value_ListValue:
		for n, element := range kind.ListValue.GetValues() {
			r.whole(element, append(path, strconv.Itoa(n)))
		}
	}
}
