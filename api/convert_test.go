package api_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// through sends a definition over the wire as JSON.
func through(t *testing.T, j job.Job) (job.Job, *jobsv1.Job) {
	t.Helper()
	text, err := protojson.Marshal(api.JobMessage(j))
	require.NoError(t, err)
	var m jobsv1.Job
	require.NoError(t, protojson.Unmarshal(text, &m))
	back, problems := api.Definition(&m)
	require.Empty(t, problems, "%s", text)
	return back, &m
}

func TestValidJobsGoThroughTheWire(t *testing.T) {
	t.Parallel()
	d := &draw{stacktest.Random(t)}
	seen := map[job.Mode]*jobsv1.Job{}
	for _, mode := range job.Modes() {
		seen[mode] = &jobsv1.Job{}
	}
	for range 1000 {
		j := d.job()
		back, m := through(t, j)
		require.Equal(t, j, back)
		before, err := j.DefinitionHash()
		require.NoError(t, err)
		after, err := back.DefinitionHash()
		require.NoError(t, err)
		require.Equal(t, before, after)
		requireSameFromTOML(t, back)
		proto.Merge(seen[j.Mode()], m)
	}
	for _, mode := range job.Modes() {
		requireAllSet(t, seen[mode].ProtoReflect(), "etag", "state", "freshness", "deadline")
	}
	requireAllSet(t, seen[job.ModeRecurring].ProtoReflect(), "etag", "state")
}

// requireSameFromTOML requires that the table that a job is shown as declares it.
func requireSameFromTOML(t *testing.T, j job.Job) {
	t.Helper()
	text, err := jobsfile.TOML(j)
	require.NoError(t, err)
	file, problems := jobsfile.Read("jobs.toml", []byte(text), []job.Type{{Name: j.Type, Worker: j.Worker}})
	require.Empty(t, problems, text)
	j.Provider = job.ProviderTOML
	require.Equal(t, []job.Job{j}, file.Jobs, text)
}

func TestNoFieldOfADefinitionIsForgotten(t *testing.T) {
	t.Parallel()
	triggers := reflect.TypeFor[job.Trigger]()
	for i := range triggers.NumField() {
		mode := triggers.Field(i)
		t.Run(mode.Name, func(t *testing.T) {
			t.Parallel()
			var j job.Job
			fill(reflect.ValueOf(&j).Elem())
			trigger := reflect.New(mode.Type.Elem())
			fill(trigger.Elem())
			j.Trigger = job.Trigger{}
			reflect.ValueOf(&j.Trigger).Elem().Field(i).Set(trigger)
			back, m := through(t, j)
			require.Equal(t, j, back)
			requireAllSet(t, m.ProtoReflect(), "etag", "state")
		})
	}
}

// fill gives every field a value, the same each time.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2027, 1, 2, 3, 4, 5, 678901234, time.UTC)))
		return
	case job.Owner:
		v.Set(reflect.ValueOf(job.Owner{Organization: "ucnrs"}))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{"a":{"b":[1,2.5,null,true,"x"]}}`)))
		return
	case job.Overlap:
		v.SetString(string(job.OverlapCancelOther))
		return
	case job.Misfire:
		v.SetString(string(job.MisfireAll))
		return
	case job.OnFailure:
		v.SetString(string(job.OnFailureHalt))
		return
	case job.Failover:
		v.SetString(string(job.FailoverWait))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"a": "b"}))
	case reflect.String:
		v.SetString("x1")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1_000_000_007)
	case reflect.Float64:
		v.SetFloat(2.5)
	default:
		panic(fmt.Sprintf("fill: %s", v.Type()))
	}
}

// requireAllSet requires that a message has all fields, at any depth, but the modes that
// are not set, and those that are named.
func requireAllSet(t *testing.T, m protoreflect.Message, but ...string) {
	t.Helper()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if oneof := f.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() && m.WhichOneof(oneof) != f || slices.Contains(but, string(f.Name())) {
			continue
		}
		require.True(t, m.Has(f), "%s is not set", f.FullName())
		if ours := f.Message() != nil && !f.IsMap() && strings.HasPrefix(string(f.Message().FullName()), "dendra."); ours {
			requireAllSet(t, m.Get(f).Message(), but...)
		}
	}
}

func TestWhatIsLeftOutHasItsDefault(t *testing.T) {
	t.Parallel()
	for _, m := range []*jobsv1.Job{
		{Id: "x.a", Mode: &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}},
		{Id: "x.a", Mode: &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{}}, Options: &jobsv1.JobOptions{RetryBackoff: &jobsv1.RetryBackoff{}}},
	} {
		j, problems := api.Definition(m)
		require.Empty(t, problems)
		require.Equal(t, job.DefaultOptions(j.Mode()), j.Options)
		require.JSONEq(t, "{}", string(j.Spec))
	}
	j, problems := api.Definition(&jobsv1.Job{Options: &jobsv1.JobOptions{
		RetryBackoff: &jobsv1.RetryBackoff{Max: durationpb.New(time.Hour)},
	}})
	require.Empty(t, problems)
	require.Equal(t, job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(time.Hour), Coefficient: 2}, j.Options.RetryBackoff)
}

func TestUnreadableValuesAreProblems(t *testing.T) {
	t.Parallel()
	spec, err := structpb.NewStruct(map[string]any{"a": []any{1, map[string]any{"n": float64(1 << 60)}}})
	require.NoError(t, err)
	_, problems := api.Definition(&jobsv1.Job{
		Spec: spec,
		Mode: &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{
			RecurEvery: durationpb.New(-time.Second), Jitter: &durationpb.Duration{Seconds: math.MaxInt64 / int64(time.Second)}, Offset: &durationpb.Duration{Seconds: 1, Nanos: -1},
		}},
		Options: &jobsv1.JobOptions{Owner: "ada"},
	})
	var texts []string
	for _, problem := range problems {
		texts = append(texts, problem.String())
	}
	require.Equal(t, []string{
		"spec.a.1.n: a whole number beyond 2^53 loses digits on the way; write it as a text if the job type takes one",
		"recurring.recur_every: the duration is negative",
		"recurring.offset: it is not a duration of at most 10,000 years",
		"recurring.jitter: the duration is longer than 292 years",
		`owner: "ada" is not an owner: write organization:NAME or user:NAME`,
	}, texts)
}

func TestProblemsNameTheFieldOfTheRequest(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"":                      "jobs[3]",
		"id":                    "jobs[3].id",
		"paused":                "jobs[3].paused",
		"spec.a.at":             "jobs[3].spec.a.at",
		"recurring":             "jobs[3].recurring",
		"recurring.start_at":    "jobs[3].recurring.start_time",
		"one_shot.at":           "jobs[3].one_shot.start_time",
		"owner":                 "jobs[3].options.owner",
		"tags.type":             "jobs[3].options.tags.type",
		"retry_backoff.max":     "jobs[3].options.retry_backoff.max",
		"deadline.time_zone":    "jobs[3].options.deadline.time_zone",
		"continuous.interval":   "jobs[3].continuous.interval",
		"recurring.end_at":      "jobs[3].recurring.end_time",
		"queued.on_failure":     "jobs[3].queued.on_failure",
		"recurring.retry_every": "jobs[3].recurring.retry_every",
	} {
		var problem job.Problem
		if path != "" {
			problem.Path = strings.Split(path, ".")
		}
		require.Equal(t, want, api.FieldOf("jobs[3]", problem))
	}
}

func TestEnumsHaveAllWords(t *testing.T) {
	t.Parallel()
	checkWords[jobsv1.JobStatus](t, stringsOf(api.JobStatuses()))
	checkWords[jobsv1.RunStatus](t, stringsOf(client.RunStatuses()))
	checkWords[jobsv1.OverlapPolicy](t, stringsOf(job.Overlaps()))
	checkWords[jobsv1.MisfirePolicy](t, stringsOf(job.Misfires()))
	checkWords[jobsv1.FailurePolicy](t, stringsOf([]job.OnFailure{job.OnFailureContinue, job.OnFailureHalt}))
	checkWords[jobsv1.FailoverPolicy](t, stringsOf([]job.Failover{job.FailoverRequeue, job.FailoverWait, job.FailoverFail}))
	checkWords[jobsv1.WorkerStatus](t, stringsOf([]client.ServiceState{client.ServiceServing, client.ServiceDraining, client.ServiceLost}))
	checkWords[jobsv1.QueueStatus](t, append(stringsOf([]client.QueueStatus{
		client.QueueIdle, client.QueueRunning, client.QueuePaused, client.QueueHalted, client.QueueDraining, client.QueueDrained, client.QueueStopping,
	}), "ended"))
	checkWords[jobsv1.JobAction](t, stringsOf([]schedules.Action{
		schedules.ActionCreate, schedules.ActionUpdate, schedules.ActionDelete, schedules.ActionBlocked, schedules.ActionUnchanged, schedules.ActionOrphaned,
	}))
	checkWords[jobsv1.DriftKind](t, stringsOf([]schedules.DriftKind{
		schedules.DriftEdited, schedules.DriftPaused, schedules.DriftResumed, schedules.DriftDeleted, schedules.DriftStopped, schedules.DriftFailing,
	}))
	checkWords[jobsv1.MissedReason](t, stringsOf([]client.MissedReason{
		client.MissedOverlap, client.MissedPaused, client.MissedSkipped, client.MissedServerLate, client.MissedWindow,
		client.MissedBuffer, client.MissedSuperseded, client.MissedFailing, client.MissedUnknown,
	}))
}

func checkWords[E readmodel.Enum](t *testing.T, words []string) {
	t.Helper()
	var e E
	require.Equal(t, e.Descriptor().Values().Len()-1, len(words), "%s", e.Descriptor().FullName())
	for _, word := range words {
		value := api.EnumOf[E](word)
		require.NotZero(t, value, "%s has no %s", e.Descriptor().FullName(), word)
		require.Equal(t, strings.ReplaceAll(word, "-", "_"), api.WordOf(value))
	}
	require.Zero(t, api.EnumOf[E]("unspecified"))
	require.Empty(t, api.WordOf(E(99)))
}

func stringsOf[S ~string](list []S) []string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return texts
}

// draw makes random valid jobs.
type draw struct{ *rand.Rand }

func (d *draw) one(in int) bool { return d.IntN(in) == 0 }

func (d *draw) job() job.Job {
	for {
		if j := d.any(); len(j.Validate()) == 0 {
			return j
		}
	}
}

func (d *draw) duration(from, to time.Duration) job.Duration {
	return job.Duration(from + time.Duration(d.Int64N(int64(to-from))))
}

func (d *draw) seconds(from, to time.Duration) job.Duration {
	return d.duration(from, to) / job.Duration(time.Second) * job.Duration(time.Second)
}

func (d *draw) any() job.Job {
	var trigger job.Trigger
	switch d.IntN(6) {
	case 0, 1, 2:
		trigger.Recurring = d.recurring()
	case 3:
		trigger.Continuous = &job.Continuous{Interval: d.duration(10*time.Millisecond, time.Hour), RestartOnChange: d.one(2)}
	case 4:
		trigger.OneShot = &job.OneShot{}
		if d.one(2) {
			trigger.OneShot.At = d.time()
		}
	default:
		trigger.Queued = &job.Queued{Queue: "q", OnFailure: []job.OnFailure{"", job.OnFailureContinue, job.OnFailureHalt}[d.IntN(3)]}
	}
	j := job.Job{
		ID: job.ID("DoNothing", fmt.Sprint("k", d.IntN(100))), Type: "DoNothing", Worker: "backend", Provider: job.ProviderAPI,
		Trigger: trigger, Options: job.DefaultOptions(trigger.Mode()),
	}
	j.Spec, _ = json.Marshal(map[string]any{"n": d.IntN(1 << 30), "f": d.Float64(), "s": string(rune(d.IntN(0xd7ff))), "l": []any{d.one(2), map[string]any{"ü.": "\u007f<"}}})
	d.options(&j.Options)
	if trigger.Recurring != nil || trigger.Continuous != nil {
		d.limits(&j.Options)
	}
	return j
}

func (d *draw) time() time.Time { return time.Unix(d.Int64N(4e9), d.Int64N(1e9)).UTC() }

func (d *draw) options(o *job.Options) {
	o.Paused = d.one(3)
	if d.one(2) {
		o.Description, o.Owner = "día", []job.Owner{{Organization: "ucnrs"}, {User: "a:b"}}[d.IntN(2)]
	}
	if d.one(2) {
		o.Tags, o.Bind = map[string]string{"site": "a", "ü": ""}, map[string]string{"host": "h"}
	}
	if d.one(2) {
		o.RunTimeout, o.HeartbeatTimeout = d.duration(time.Millisecond, time.Hour), d.duration(time.Second, time.Hour)
	}
	if d.one(2) {
		o.MaxRetryCount = d.IntN(12) - 1
	}
	if d.one(2) {
		o.RetryBackoff = job.Backoff{Initial: d.duration(time.Millisecond, time.Second), Max: d.duration(time.Second, time.Hour), Coefficient: 1 + d.Float64()*9}
	}
	if d.one(2) {
		o.StopGracePeriod = d.duration(time.Millisecond, time.Minute)
	}
	if d.one(2) {
		o.Failover, o.FailoverAfter = []job.Failover{"", job.FailoverWait, job.FailoverFail}[d.IntN(3)], d.duration(time.Second, time.Hour)
	}
}

func (d *draw) limits(o *job.Options) {
	if d.one(2) {
		o.Freshness = d.duration(time.Second, 100*time.Hour)
	}
	if d.one(2) {
		o.Deadline = &job.Deadline{Time: fmt.Sprintf("%02d:%02d", d.IntN(24), d.IntN(60)), TimeZone: []string{"", "Europe/Prague"}[d.IntN(2)]}
	}
}

func (d *draw) recurring() *job.Recurring {
	r := &job.Recurring{}
	if d.one(2) {
		r.RecurEvery = d.seconds(time.Second, 100*time.Hour)
		if d.one(2) {
			offset := d.seconds(0, r.RecurEvery.Std())
			r.Offset = &offset
		}
	} else {
		r.Cron = []string{"30 4 * * mon-fri", "*/5 * * * *"}[d.IntN(2)]
		r.TimeZone = []string{"", "Europe/Prague"}[d.IntN(2)]
	}
	if d.one(3) {
		r.Jitter = d.duration(0, 30*time.Second)
	}
	r.Overlap = append(job.Overlaps(), "", "")[d.IntN(8)]
	r.Misfire = append(job.Misfires(), "")[d.IntN(4)]
	if d.one(3) {
		r.MaxMissed = 1 + d.IntN(1000)
	}
	if d.one(3) {
		r.CatchupWindow = d.duration(10*time.Second, time.Hour)
	}
	if d.one(3) {
		r.StartAt, r.EndAt = d.time(), d.time()
	}
	if d.one(3) {
		r.PauseAfterFailures, r.RetryEvery = d.IntN(9), d.duration(time.Second, time.Hour)
	}
	return r
}
