package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func still(environment map[string]string) cli.Program {
	return cli.Program{
		Now:        func() time.Time { return noon },
		Location:   time.FixedZone("", 2*60*60),
		Getenv:     func(name string) string { return environment[name] },
		IsTerminal: func(any) bool { return true },
	}
}

var plain = map[string]string{"NO_COLOR": "1"}

func samplePlan() *jobsv1.Plan {
	const (
		create, update, remove       = jobsv1.JobAction_JOB_ACTION_CREATE, jobsv1.JobAction_JOB_ACTION_UPDATE, jobsv1.JobAction_JOB_ACTION_DELETE
		isBlocked, isSame, isOrphans = jobsv1.JobAction_JOB_ACTION_BLOCKED, jobsv1.JobAction_JOB_ACTION_UNCHANGED, jobsv1.JobAction_JOB_ACTION_ORPHANED
	)
	return &jobsv1.Plan{
		Namespace: "default", Foreign: []string{"schedule job/x"}, Warnings: []*jobsv1.PlanWarning{{Message: "Mind the clocks."}},
		Refusal: "the plan deletes more than a fifth of the live jobs: it would delete 1 of 1 jobs",
		Changes: []*jobsv1.JobChange{
			{Action: create, JobId: "take_steps.a", Mode: "one_shot"},
			{Action: isBlocked, JobId: "take_steps.b", Mode: "recurring", Note: "schedule job/take_steps.b is not ours\x1b[2J"},
			{Action: update, JobId: "take_steps.c", Mode: "continuous", Fields: []*jobsv1.FieldChange{
				{Path: "continuous.interval", OldValue: `"PT1S"`, NewValue: `"PT2S"`},
				{Path: "description", NewValue: `"often"`},
			}},
			{
				Action: update, JobId: "take_steps.c2", Mode: "recurring", Drifted: true,
				Fields: []*jobsv1.FieldChange{{
					Path: "schedule.intervals", OldValue: `["every PT1M at PT0S"]`, NewValue: `["every PT1H at PT0S"]`,
				}},
				CurrentStartTimes: []*timestamppb.Timestamp{timestamppb.New(noon.Add(time.Minute))},
				PlannedStartTimes: []*timestamppb.Timestamp{timestamppb.New(noon.Add(time.Hour)), timestamppb.New(noon.Add(2 * time.Hour))},
			},
			{Action: isSame, JobId: "take_steps.d", Mode: "recurring"},
			{Action: isSame, JobId: "take_steps.e", Mode: "recurring", Note: "paused: by hand"},
			{Action: isOrphans, JobId: "take_steps.f", Mode: "recurring"},
			{Action: remove, JobId: "take_steps.g", Mode: "continuous"},
		},
	}
}

func TestWritePlan(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	require.NoError(t, still(plain).WritePlan(&b, samplePlan()))
	require.Equal(t, `+ take_steps.a  one-shot
! take_steps.b  recurring  schedule job/take_steps.b is not ours [2J
~ take_steps.c  continuous
    continuous.interval: "PT1S" → "PT2S"
    description: (not set) → "often"
~ take_steps.c2  recurring  (edited by hand since it was applied)
    schedule.intervals: ["every PT1M at PT0S"] → ["every PT1H at PT0S"]
    next starts now:  2026-05-01 14:01:00 +0200
    next starts then: 2026-05-01 15:00:00 +0200, 2026-05-01 16:00:00 +0200
= take_steps.e  recurring  paused: by hand
? take_steps.f  recurring  no longer declared (kept; --prune deletes it)
- take_steps.g  continuous
! schedule job/x is unmanaged: it has a job's name, and starter did not create it
= unchanged (2)
warning: Mind the clocks.

Apply would refuse this: the plan deletes more than a fifth of the live jobs: it would delete 1 of 1 jobs (--allow-mass-prune).
Plan for namespace default: 1 to create, 2 to update, 1 to delete, 1 blocked, 2 unchanged, 1 no longer declared.
`, b.String())

	b.Reset()
	require.NoError(t, still(nil).WritePlan(&b, samplePlan()))
	require.Contains(t, b.String(), "\x1b[32m+ take_steps.a  one-shot\x1b[0m\n")

	b.Reset()
	require.NoError(t, still(plain).WritePlan(&b, &jobsv1.Plan{Namespace: "default"}))
	require.Equal(t, "Plan for namespace default: 0 to create, 0 to update, 0 to delete, 0 blocked, 0 unchanged, 0 no longer declared.\n", b.String())
}

func TestWriteJobs(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(d)) }
	var b strings.Builder
	require.NoError(t, still(plain).WriteJobs(&b, []*jobsv1.Job{
		{
			Id: "take_steps.a", Mode: &jobsv1.Job_Recurring{}, Options: &jobsv1.JobOptions{Owner: "user:ada"},
			State: &jobsv1.JobState{
				Status: jobsv1.JobStatus_JOB_STATUS_SCHEDULED, LastStartTime: at(-90 * time.Second), NextStartTime: at(4 * time.Minute),
			},
		},
		{
			Id: "take_steps.b", Mode: &jobsv1.Job_Continuous{},
			State: &jobsv1.JobState{Status: jobsv1.JobStatus_JOB_STATUS_PAUSED, Reason: "two\nlines", LastStartTime: at(-50 * time.Hour)},
		},
		{
			Id: "take_steps.long-key", Mode: &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: "photos"}},
			State: &jobsv1.JobState{Status: jobsv1.JobStatus_JOB_STATUS_WAITING},
		},
	}))
	require.Equal(t, `JOB                  MODE        STATUS     LAST START                  NEXT                 OWNER     NOTE
take_steps.a         recurring   scheduled  13:58:30 (2 min ago)        14:04:00 (in 4 min)  user:ada  -
take_steps.b         continuous  paused     2026-04-29 12:00 (2 d ago)  -                    -         two lines
take_steps.long-key  queued      waiting    -                           -                    -         queue photos
`, b.String())
}

func TestWriteJob(t *testing.T) {
	t.Parallel()
	j := job.Job{
		ID: "take_steps.b", Type: "TakeSteps", Worker: "load", Provider: job.ProviderTOML,
		Spec:    json.RawMessage(`{"steps":2,"to":"x"}`),
		Trigger: job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second)}},
		Options: job.DefaultOptions(job.ModeContinuous),
	}
	j.Options.Owner = job.Owner{Organization: "ucnrs"}
	j.Options.Tags = map[string]string{"b": "2", "a": "1"}
	m := api.JobMessage(j)
	m.State = &jobsv1.JobState{
		Status: jobsv1.JobStatus_JOB_STATUS_RUNNING, LastStartTime: timestamppb.New(noon.Add(-3 * time.Hour)),
		Continuous: &jobsv1.ContinuousState{
			Phase: "failing", Iterations: 7, Failed: 2, ConsecutiveFailures: 1,
			Totals: map[string]int64{"steps": 12, "points": 3}, NextTime: timestamppb.New(noon.Add(time.Second)), LastError: "no",
		},
	}
	iteration := func(number int64, ago, lasted time.Duration) *jobsv1.Run {
		return &jobsv1.Run{
			Iteration: number, StartTime: timestamppb.New(noon.Add(-ago)), EndTime: timestamppb.New(noon.Add(lasted - ago)),
		}
	}
	sixth, seventh := iteration(6, 9*time.Second, 1234*time.Millisecond), iteration(7, time.Second, 5*time.Millisecond)
	sixth.Message, seventh.ErrorClass, seventh.ErrorMessage = "fine", "Told", "no"
	sixth.Status, seventh.Status = jobsv1.RunStatus_RUN_STATUS_COMPLETED, jobsv1.RunStatus_RUN_STATUS_FAILED
	underWay := &jobsv1.Run{
		Iteration: 8, StartTime: timestamppb.New(noon.Add(-2 * time.Second)), Status: jobsv1.RunStatus_RUN_STATUS_RUNNING,
		Progress: &jobsv1.RunProgress{Done: 1, Total: 3},
	}
	fifth := iteration(5, 12*time.Second, time.Second)
	fifth.Status = jobsv1.RunStatus_RUN_STATUS_INTERRUPTED
	var b strings.Builder
	require.NoError(t, still(plain).WriteJob(&b, m, []*jobsv1.Run{underWay, seventh, sixth, fifth}))
	require.Equal(t, `Job          take_steps.b
Type         TakeSteps
Mode         continuous, PT1S between iterations
Owner        organization:ucnrs
Tags         a=1, b=2
Provider     toml
Worker       load
Spec         {
               "steps": 2,
               "to": "x"
             }
Run timeout  PT1H, heartbeat PT15S, stop grace period PT10S
Retries      without limit, after PT1S, growing to PT1M
Status       running
Last start   11:00:00 (3 h ago)
Phase        failing
Iterations   7, 2 failed, 1 of these in a row
Totals       points 3, steps 12
Next         14:00:01 (in 1 s)
Last error   no

Latest iterations
NUMBER  STATUS     START                TOOK   RESULT
8       running    13:59:58 (2 s ago)   2s     1/3
7       failed     13:59:59 (1 s ago)   5ms    Told: no
6       completed  13:59:51 (9 s ago)   1.23s  fine
5       cut short  13:59:48 (12 s ago)  1s     -
`, b.String())
}

// TestWriteJSON has characters that encoding/json escapes.
func TestWriteJSON(t *testing.T) {
	t.Parallel()
	spec, err := json.Marshal(map[string]any{"query": "a<b && c>d", "x": 1.5})
	require.NoError(t, err)
	require.Contains(t, string(spec), `\u0026`)
	const want = `Spec%[1]s {
%[2]s   "query": "a<b && c>d",
%[2]s   "x": 1.5
%[2]s }
`
	j := job.Job{ID: "take_steps.b", Type: "TakeSteps", Spec: spec, Trigger: job.Trigger{OneShot: &job.OneShot{}}}
	var b strings.Builder
	require.NoError(t, still(plain).WriteJob(&b, api.JobMessage(j), nil))
	require.Contains(t, b.String(), fmt.Sprintf(want, strings.Repeat(" ", 8), strings.Repeat(" ", 12)))
	b.Reset()
	require.NoError(t, still(plain).WriteRun(&b, &jobsv1.Run{Name: "job/take_steps.b@", Spec: api.JobMessage(j).GetSpec()}))
	require.Contains(t, b.String(), fmt.Sprintf(want, strings.Repeat(" ", 5), strings.Repeat(" ", 9)))
}

func TestWriteRecurringJob(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]job.Recurring{
		"Mode         recurring, every PT15M\nOverlap      skip, catch-up window PT30M\n": {RecurEvery: job.Duration(15 * time.Minute)},
		"Mode         recurring, every PT15M, offset PT0S, jitter PT1M\nOverlap      buffer_one, catch-up window PT10S\n": {
			RecurEvery: job.Duration(15 * time.Minute), Offset: new(job.Duration(0)), Jitter: job.Duration(time.Minute),
			Overlap: job.OverlapBufferOne, CatchupWindow: job.Duration(10 * time.Second),
		},
		"Mode         recurring, cron \"30 4 * * mon-fri\" in Europe/Prague\nOverlap      skip, catch-up window P3DT1H\n" +
			"Starts from  13:00:00 (1 h ago)\nEnds at      2026-06-01 00:00 (in 30 d)\n": {
			Cron: "30 4 * * mon-fri", TimeZone: "Europe/Prague", StartAt: noon.Add(-time.Hour), EndAt: noon.AddDate(0, 0, 30).Add(10 * time.Hour),
		},
	} {
		var b strings.Builder
		require.NoError(t, still(plain).WriteJob(&b, api.JobMessage(job.Job{
			ID: "take_steps.b", Type: "TakeSteps", Trigger: job.Trigger{Recurring: &r}, Options: job.DefaultOptions(job.ModeRecurring),
		}), nil))
		require.Contains(t, b.String(), want)
	}
}

// TestWriteFailedRun: a class of the list has its cause and cure, also while the run is
// tried again.
func TestWriteFailedRun(t *testing.T) {
	t.Parallel()
	class, _ := errclass.Find(errclass.StoreUnreachable)
	cure := "\nCause     " + class.Cause + "\nCure      " + class.Cure + "\nSee       docs/errors.md#storeunreachable\n"
	written := func(run *jobsv1.Run) string {
		var b strings.Builder
		run.Name = "job/take_steps.a@0196"
		require.NoError(t, still(plain).WriteRun(&b, run))
		return b.String()
	}
	failed := jobsv1.RunStatus_RUN_STATUS_FAILED
	require.Contains(t, written(&jobsv1.Run{Status: failed, ErrorClass: class.Name, ErrorMessage: "away", ErrorKind: "unavailable"}),
		"\nError     StoreUnreachable: away\nKind      unavailable"+cure)
	own := written(&jobsv1.Run{Status: failed, ErrorClass: "Told", ErrorMessage: "no", ErrorKind: "permanent"})
	require.Contains(t, own, "\nKind      permanent\n")
	require.NotContains(t, own, "Cure")
	again := written(&jobsv1.Run{Status: jobsv1.RunStatus_RUN_STATUS_RUNNING, LastErrorClass: class.Name, LastError: "away"})
	require.Contains(t, again, "last error: StoreUnreachable: away")
	require.Contains(t, again, class.Cure)
}

func TestWriteRun(t *testing.T) {
	t.Parallel()
	output, err := structpb.NewValue([]any{"a"})
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, still(plain).WriteRun(&b, &jobsv1.Run{
		Name: "job/take_steps.a@0196", JobId: "take_steps.a", JobType: "TakeSteps", Mode: "one_shot", Status: jobsv1.RunStatus_RUN_STATUS_COMPLETED,
		StartTime: timestamppb.New(noon.Add(-time.Hour)), EndTime: timestamppb.New(noon.Add(-time.Hour + 90*time.Second)),
		Worker: "load@host/1", Attempts: 2, Message: "done", Counts: map[string]int64{"steps": 2}, Output: output, Handovers: 1,
	}))
	require.Equal(t, `Job        take_steps.a
Type       TakeSteps
Mode       one-shot
Workflow   job/take_steps.a
Run        0196
Status     completed after 1m30s, 2 attempts
Started    13:00:00 (1 h ago)
Ended      13:01:30 (59 min ago)
Worker     load@host/1
Result     done
Counts     steps 2
Output     [
             "a"
           ]
Handovers  1
`, b.String())
}

func TestRunProgress(t *testing.T) {
	t.Parallel()
	const running = jobsv1.RunStatus_RUN_STATUS_RUNNING
	for want, run := range map[string]*jobsv1.Run{
		"running":                           {Status: running, Attempts: 1},
		"waiting for a worker of type load": {Status: running, Attempts: 1, WaitingForWorker: true, WorkerType: "load"},
		"running, 1/3 resizing":             {Status: running, Attempts: 1, Progress: &jobsv1.RunProgress{Done: 1, Total: 3, Message: "resizing"}},
		"waiting to try again, attempt 2, last error: no": {
			Status: running, Attempts: 2, LastError: "no", NextAttemptTime: timestamppb.New(noon),
		},
	} {
		require.Equal(t, want, cli.RunProgress(run))
	}
}

func TestWriteQueue(t *testing.T) {
	t.Parallel()
	item := func(sequence int64, key string) *jobsv1.QueueItem {
		return &jobsv1.QueueItem{Sequence: sequence, JobId: "take_steps." + key, AcceptTime: timestamppb.New(noon.Add(-time.Minute))}
	}
	queue := &jobsv1.Queue{
		Name: "photos", Status: jobsv1.QueueStatus_QUEUE_STATUS_RUNNING, Accepted: 5, Completed: 1, Waiting: 3,
		OldestTime: timestamppb.New(noon.Add(-time.Minute)),
		Running:    &jobsv1.QueueItem{Sequence: 2, JobId: "take_steps.b", StartTime: timestamppb.New(noon.Add(-30 * time.Second))},
		Next:       []*jobsv1.QueueItem{item(3, "c"), item(4, "d"), item(5, "e")},
		Recent: []*jobsv1.FinishedItem{{
			Sequence: 1, JobId: "take_steps.a", Status: jobsv1.ItemStatus_ITEM_STATUS_COMPLETED,
			StartTime: timestamppb.New(noon.Add(-40 * time.Second)), EndTime: timestamppb.New(noon.Add(-30 * time.Second)),
		}},
	}
	var b strings.Builder
	require.NoError(t, still(plain).WriteQueue(&b, queue, 2))
	require.Equal(t, `Queue       photos
Status      running
Accepted    5
Ended       1 completed, 0 failed, 0 canceled, 0 skipped
Throughput  0 in the last minute, 0 in the last hour
Running     2 take_steps.b, since 13:59:30 (30 s ago)
Waiting     3
Oldest      accepted 13:59:00 (1 min ago)

Waiting, the next first
NUMBER  JOB           ACCEPTED
3       take_steps.c  13:59:00 (1 min ago)
4       take_steps.d  13:59:00 (1 min ago)
...     and 1 more    -

Ended, the latest first
NUMBER  JOB           STATUS     ENDED                RAN  ERROR
1       take_steps.a  completed  13:59:30 (30 s ago)  10s  -
`, b.String())
}

func TestWhen(t *testing.T) {
	t.Parallel()
	p := still(plain)
	for want, at := range map[string]time.Time{
		"":                             {},
		"14:00:00 (in 0 s)":            noon,
		"14:01:30 (in 2 min)":          noon.Add(90 * time.Second),
		"15:59:59 (in 2 h)":            noon.Add(2*time.Hour - time.Millisecond),
		"14:59:59 (in 1 h)":            noon.Add(time.Hour - time.Millisecond),
		"2026-05-02 00:00 (in 10 h)":   noon.Add(10 * time.Hour),
		"2026-05-11 14:00 (in 10 d)":   noon.AddDate(0, 0, 10),
		"2025-05-01 14:00 (365 d ago)": noon.AddDate(-1, 0, 0),
	} {
		require.Equal(t, want, p.When(at))
	}
}

func TestWriteWorkersInTrouble(t *testing.T) {
	t.Parallel()
	service := func(name string, running, stuck int32) *jobsv1.Worker {
		return &jobsv1.Worker{
			Type: "load", Name: name, Slots: 50, Tags: map[string]string{job.TagHost: "field"}, Running: running, StuckHandlers: stuck,
			Status: jobsv1.WorkerStatus_WORKER_STATUS_SERVING, LastSeenTime: timestamppb.New(noon),
		}
	}
	var out strings.Builder
	require.NoError(t, still(plain).WriteWorkers(&out, &jobsv1.ListWorkersResponse{Workers: []*jobsv1.Worker{
		service("well", 1, 0), service("stuck", 2, 2),
	}}))
	_, troubles, _ := strings.Cut(out.String(), "\n\n")
	require.Equal(t, "load@stuck has 2 handlers that did not stop when asked to: restart it\n", troubles)
}

// A stack is read line by line.
func TestLogLineWithAStack(t *testing.T) {
	t.Parallel()
	attributes, err := structpb.NewStruct(map[string]any{"panic": "divide by \x1b zero", "stack": "goroutine 1 [running]:\nmain.main()\n\tmain.go:7 +0x1d\n", "worker": "backend"})
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, still(plain).WriteLogLine(&out, &jobsv1.LogLine{
		Time: timestamppb.New(noon), Level: "ERROR", Attempt: 1, Message: "the handler panicked", Attributes: attributes,
	}))
	require.Equal(t, `2026-05-01 14:00:00.000 ERROR attempt 1: the handler panicked panic="divide by \u001b zero"
  stack:
    goroutine 1 [running]:
    main.main()
      main.go:7 +0x1d
`, out.String())
}

// TestTextsDoNotSteerTheTerminal prints a text from outside that would set the title of the
// window, clear it, and turn what follows around.
func TestTextsDoNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b]0;owned\x07 \x1b[2J\u202egnihton\u2066\u200b\u2028 \u009b31m\nforged"
	var b, notes strings.Builder
	require.NoError(t, still(nil).WriteNext(&b, &notes, &jobsv1.ListNextStartsResponse{
		Paused: true, PauseReason: hostile, Skipped: []*jobsv1.SkippedStart{{StartTime: timestamppb.New(time.Unix(0, 0)), SkippedBy: hostile}},
	}))
	require.Equal(t, 2, strings.Count(notes.String(), "\n"), "each note is one line: %q", notes.String())
	require.Contains(t, notes.String(), "gnihton")
	require.NoError(t, still(plain).WritePlan(&b, &jobsv1.Plan{Namespace: "default", Warnings: []*jobsv1.PlanWarning{{Message: hostile}}}))
	for _, text := range []string{notes.String(), b.String()} {
		require.NotRegexp(t, "[\x1b\x07\u202e\u2066\u200b\u2028\u009b]", text)
	}
	require.Equal(t, "a\x1b[31mb\x1b[0m [2J\tc\nd", plantext.CleanLines("a\x1b[31mb\x1b[0m\x1b[2J\tc\nd", "\x1b[31m", "\x1b[0m"))
}
