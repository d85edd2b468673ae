package schedules_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// vendor is what the runs of a test job talk to: it fails on demand, and keeps a
// ledger of all calls, apart from everything that Temporal records.
type vendor struct {
	mu    sync.Mutex
	away  map[string]bool // by job id
	calls map[string][]bool
	block chan struct{} // while open, calls of jobs in hang wait
	hang  map[string]bool
}

func newVendor() *vendor {
	return &vendor{away: map[string]bool{}, calls: map[string][]bool{}, hang: map[string]bool{}, block: make(chan struct{})}
}

func (v *vendor) jobType() job.Type {
	return job.NewType("CallVendor", "testing", "Calls a vendor.", func(ctx context.Context, run job.Run, _ anySpec) (job.Result, error) {
		id := run.Job().ID
		if v.hangs(id) {
			select {
			case <-v.block:
			case <-run.Stopping():
				return job.Result{}, job.ErrStopped
			case <-ctx.Done():
				return job.Result{}, ctx.Err()
			}
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.calls[id] = append(v.calls[id], !v.away[id])
		if v.away[id] {
			return job.Result{}, job.Final("Away", "the vendor is away")
		}
		return job.Result{Message: "called"}, nil
	})
}

func (v *vendor) hangs(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.hang[id]
}

func (v *vendor) setHang(id string, hang bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hang[id] = hang
}

func (v *vendor) setAway(id string, away bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.away[id] = away
}

// count gives the calls of a job that succeeded and that failed.
func (v *vendor) count(id string) (succeeded, failed int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, ok := range v.calls[id] {
		if ok {
			succeeded++
		} else {
			failed++
		}
	}
	return succeeded, failed
}

// calling is a recurring job that calls the vendor.
func calling(key string, every time.Duration, limit int, probeEvery time.Duration) job.Job {
	schedule := job.Schedule{Recurring: &job.Recurring{
		RecurEvery: job.Duration(every), PauseAfterFailures: limit, ProbeEvery: job.Duration(probeEvery),
	}}
	return job.Job{
		ID: job.ID("CallVendor", key), Type: "CallVendor", Worker: "testing", Provider: job.ProviderTOML,
		Schedule: schedule, Spec: []byte(`{}`), Options: job.DefaultOptions(job.ModeRecurring),
	}
}

// withVendor runs a test on a stack and with a vendor of its own.
func withVendor(t *testing.T, test func(t *testing.T, f *fixture, v *vendor)) {
	t.Helper()
	v := newVendor()
	test(t, newFixture(t, stacktest.StartNamespace(t), v.jobType()), v)
}

// waitPaused waits until a job's schedule is paused, or not, and gives its note.
func (f *fixture) waitPaused(id string, paused bool) string {
	f.Helper()
	var note string
	stacktest.WaitFor(f, fmt.Sprintf("job %s to be paused: %t", id, paused), func() (bool, error) {
		live, err := f.client.LiveSchedule(f.Context(), id)
		if err != nil || live == nil {
			return false, err
		}
		note = live.PauseReason
		return live.Paused == paused, nil
	})
	return note
}

// probe gives the result of a job's probe, which has ended or is about to.
func (f *fixture) probe(id string) workflows.ProbeOutput {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	var out workflows.ProbeOutput
	require.NoError(f, f.temporal.GetWorkflow(ctx, contract.ProbeWorkflowID(id), "").Get(ctx, &out))
	return out
}

func (f *fixture) probeOpen(id string) bool {
	f.Helper()
	response, err := f.temporal.DescribeWorkflowExecution(f.Context(), contract.ProbeWorkflowID(id), "")
	require.NoError(f, err)
	return response.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// trigger starts a run and waits for its end.
func (f *fixture) trigger(id string) client.RunStatus {
	f.Helper()
	triggered, err := f.client.Trigger(f.Context(), id)
	require.NoError(f, err)
	run, err := f.client.Follow(f.Context(), triggered.Run, func(*client.RunDetail) {})
	require.NoError(f, err)
	if run.Status == client.RunFailed {
		require.Equal(f, "Away: the vendor is away", run.Class+": "+run.Error)
		require.NotEmpty(f, run.Worker)
	}
	return run.Status
}

func TestAFailingJobIsPausedTriedAndResumed(t *testing.T) {
	t.Parallel()
	withVendor(t, func(t *testing.T, f *fixture, v *vendor) {
		j := calling("often", time.Second, 3, time.Second)
		v.setAway(j.ID, true)
		f.apply(f.plan(false, j))
		note := f.waitPaused(j.ID, true)
		require.Contains(t, note, "3 runs in a row failed, the last one: the vendor is away; paused at ")

		// Only tries follow, which find the vendor away, and say so.
		stacktest.WaitFor(t, "a try", func() (bool, error) {
			detail, err := f.client.Job(t.Context(), j.ID)
			return err == nil && detail.Probe != nil && detail.Probe.Tries >= 1, err
		})
		succeeded, failed := v.count(j.ID) // Before the tries are read, since they go on.
		detail, err := f.client.Job(t.Context(), j.ID)
		require.NoError(t, err)
		require.Equal(t, client.JobPaused, detail.Row.Status)
		require.Equal(t, note, detail.Row.PauseReason)
		require.Equal(t, "the vendor is away", detail.Probe.LastError)
		plan := f.plan(false, j)
		require.True(t, plan.Empty())
		require.Equal(t, "paused: "+note, plan.Changes[0].Note)
		require.Zero(t, succeeded)
		require.LessOrEqual(t, failed, 3+detail.Probe.Tries+1)

		// The probe is not taken for a job or a run.
		jobs, _, err := f.client.Jobs(t.Context(), client.JobFilter{})
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		require.Equal(t, job.ModeRecurring, jobs[0].Mode)
		runs, err := f.client.Runs(t.Context(), client.RunFilter{JobID: j.ID})
		require.NoError(t, err)
		for _, run := range runs {
			require.NotEqual(t, contract.ProbeWorkflowID(j.ID), run.WorkflowID)
		}
		_, err = f.client.LiveWorkflow(t.Context(), j.ID)
		require.NoError(t, err)
		require.Equal(t, plan.Namespace, f.plan(true, j).Namespace)
		require.True(t, f.plan(true, j).Empty())

		v.setAway(j.ID, false)
		resumed := f.waitPaused(j.ID, false)
		require.Contains(t, resumed, "a run succeeded, after ")
		require.Equal(t, resumed, f.probe(j.ID).Reason)
		succeeded, _ = v.count(j.ID)
		stacktest.WaitFor(t, "the schedule to go on", func() (bool, error) {
			now, _ := v.count(j.ID)
			return now >= succeeded+2, nil
		})
	})
}

// The runs of a job that is far from due are those that the test triggers.
func TestWhatCountsAsAFailureInARow(t *testing.T) {
	t.Parallel()
	withVendor(t, func(t *testing.T, f *fixture, v *vendor) {
		j := calling("daily", 24*time.Hour, 3, time.Hour)
		f.apply(f.plan(false, j))
		live := func() *client.Live {
			live, err := f.client.LiveSchedule(t.Context(), j.ID)
			require.NoError(t, err)
			return live
		}
		v.setAway(j.ID, true)
		require.Equal(t, client.RunFailed, f.trigger(j.ID))
		require.Equal(t, client.RunFailed, f.trigger(j.ID))
		v.setAway(j.ID, false)
		require.Equal(t, client.RunCompleted, f.trigger(j.ID))
		v.setAway(j.ID, true)
		require.Equal(t, client.RunFailed, f.trigger(j.ID))
		require.Equal(t, client.RunFailed, f.trigger(j.ID))
		require.False(t, live().Paused, "a success starts the count anew")

		v.setHang(j.ID, true)
		triggered, err := f.client.Trigger(t.Context(), j.ID)
		require.NoError(t, err)
		stacktest.WaitFor(t, "the run to be canceled", func() (bool, error) {
			run, err := f.client.Run(t.Context(), triggered.Run)
			if err != nil || run.Worker == "" && run.Status == client.RunRunning {
				return false, err
			}
			if run.Status == client.RunRunning {
				return false, f.client.Stop(t.Context(), j.ID, "by test")
			}
			return run.Status == client.RunCanceled, nil
		})
		v.setHang(j.ID, false)
		require.False(t, live().Paused, "a canceled run does not count")
		require.Equal(t, client.RunFailed, f.trigger(j.ID))
		note := f.waitPaused(j.ID, true)
		require.Contains(t, note, "3 runs in a row failed")

		// A failing run that someone triggers changes nothing; one that succeeds resumes.
		require.Equal(t, client.RunFailed, f.trigger(j.ID))
		require.Equal(t, note, f.waitPaused(j.ID, true))
		require.True(t, f.probeOpen(j.ID))
		v.setAway(j.ID, false)
		require.Equal(t, client.RunCompleted, f.trigger(j.ID))
		require.Contains(t, f.waitPaused(j.ID, false), "a run succeeded, after 0 tries")
		require.Zero(t, f.probe(j.ID).Tries)
		_, failed := v.count(j.ID)
		require.Equal(t, 6, failed)
	})
}

func TestAnOperatorsHandWinsOverTheProbe(t *testing.T) {
	t.Parallel()
	withVendor(t, func(t *testing.T, f *fixture, v *vendor) {
		paused := func(key string) job.Job {
			j := calling(key, 24*time.Hour, 1, time.Second)
			v.setAway(j.ID, true)
			f.apply(f.plan(false, j))
			require.Equal(t, client.RunFailed, f.trigger(j.ID))
			require.Contains(t, f.waitPaused(j.ID, true), "a run failed: the vendor is away; paused at ")
			return j
		}
		for key, c := range map[string]struct {
			act    func(j job.Job)
			reason string
			after  func(live *client.Live)
		}{
			"resumed": {
				func(j job.Job) { require.NoError(t, f.client.Resume(t.Context(), j.ID, "I know better")) },
				"the schedule was resumed",
				func(live *client.Live) { require.False(t, live.Paused) },
			},
			"paused": {
				func(j job.Job) { require.NoError(t, f.client.Pause(t.Context(), j.ID, "for good")) },
				"the schedule was paused for another reason: for good",
				func(live *client.Live) { require.True(t, live.Paused); require.Equal(t, "for good", live.PauseReason) },
			},
			"edited": { // In the Web UI, of which the probe is not told.
				func(j job.Job) {
					handle := f.temporal.ScheduleClient().GetHandle(t.Context(), contract.ScheduleID(j.ID))
					require.NoError(t, handle.Pause(t.Context(), sdk.SchedulePauseOptions{Note: "in the Web UI"}))
				},
				"the schedule was paused for another reason: in the Web UI",
				func(live *client.Live) {
					require.True(t, live.Paused)
					require.Equal(t, "in the Web UI", live.PauseReason)
				},
			},
			"changed": {
				func(j job.Job) {
					j.Spec = json.RawMessage(`{"b":1}`)
					f.apply(f.plan(false, j))
				},
				"the job has another definition now",
				func(live *client.Live) {
					require.False(t, live.Paused, "what failed was the old definition")
					require.Equal(t, "resumed: its definition was changed", live.PauseReason)
				},
			},
			"deleted": {
				func(j job.Job) { require.NoError(t, f.client.DeleteSchedule(t.Context(), j.ID, nil)) },
				"the schedule is gone",
				func(live *client.Live) { require.Nil(t, live) },
			},
		} {
			j := paused(key)
			c.act(j)
			require.True(t, strings.HasPrefix(f.probe(j.ID).Reason, c.reason), "%s: %s", key, f.probe(j.ID).Reason)
			live, err := f.client.LiveSchedule(t.Context(), j.ID)
			require.NoError(t, err)
			c.after(live)
		}

		// After an operator has resumed it, the count starts anew.
		j := calling("anew", 24*time.Hour, 2, time.Hour)
		v.setAway(j.ID, true)
		f.apply(f.plan(false, j))
		f.trigger(j.ID)
		f.trigger(j.ID)
		first := f.waitPaused(j.ID, true)
		require.NoError(t, f.client.Resume(t.Context(), j.ID, ""))
		require.Equal(t, "the schedule was resumed", f.probe(j.ID).Reason)
		f.trigger(j.ID)
		live, err := f.client.LiveSchedule(t.Context(), j.ID)
		require.NoError(t, err)
		require.False(t, live.Paused)
		f.trigger(j.ID)
		second := f.waitPaused(j.ID, true)
		require.Contains(t, second, "2 runs in a row failed")
		require.NotEqual(t, first, second)

		// One that pauses at the first failure is tried again after each pause.
		j = calling("each", 24*time.Hour, 1, time.Hour)
		v.setAway(j.ID, true)
		f.apply(f.plan(false, j))
		f.trigger(j.ID)
		first = f.waitPaused(j.ID, true)
		require.NoError(t, f.client.Resume(t.Context(), j.ID, ""))
		require.Equal(t, "the schedule was resumed", f.probe(j.ID).Reason)
		f.trigger(j.ID)
		require.NotEqual(t, first, f.waitPaused(j.ID, true))
		require.True(t, f.probeOpen(j.ID))

		// A pause of an operator from before is left as it is.
		j = calling("before", 24*time.Hour, 1, time.Second)
		v.setAway(j.ID, true)
		f.apply(f.plan(false, j))
		require.NoError(t, f.client.Pause(t.Context(), j.ID, "by hand; also: for repairs"))
		f.trigger(j.ID)
		require.Equal(t, "by hand; also: for repairs", f.waitPaused(j.ID, true))
		_, err = f.temporal.DescribeWorkflowExecution(t.Context(), contract.ProbeWorkflowID(j.ID), "")
		require.Error(t, err, "it is not tried")
	})
}
