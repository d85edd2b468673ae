package cli_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// TestDriftOfThreeSchedulesAndAForeignOne: someone pauses, edits and deletes a schedule by
// hand, and makes one of a job's name. Drift lists exactly the three, and the foreign one as
// such. Apply undoes the edit and the deletion, keeps the pause, and leaves the foreign one
// alone.
func TestDriftOfThreeSchedulesAndAForeignOne(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := console{address: st.Temporal, namespace: st.Namespace}
	temporal := st.Dial(t)
	schedule := func(key string) sdk.ScheduleHandle {
		return temporal.ScheduleClient().GetHandle(t.Context(), contract.ScheduleID("take_steps."+key))
	}
	live := func(key string) *workflowservice.DescribeScheduleResponse {
		answer, err := temporal.WorkflowService().DescribeSchedule(t.Context(), &workflowservice.DescribeScheduleRequest{
			Namespace: st.Namespace, ScheduleId: contract.ScheduleID("take_steps." + key),
		})
		require.NoError(t, err)
		return answer
	}
	var jobs strings.Builder
	for _, key := range []string{"paused-one", "edited", "deleted", "fine"} {
		fmt.Fprintf(&jobs, "[jobs.take_steps.%s]\nspec = { steps = 1 }\nrecurring = { recur_every = \"P1D\" }\n\n", key)
	}
	file := writeFile(t, "jobs.toml", jobs.String())
	require.Contains(t, c.ok(t, "apply", "-f", file, "--yes"), "Applied: 4 created")
	require.Contains(t, c.ok(t, "drift"), "0 jobs have drifted, of 4 applied.")

	require.NoError(t, schedule("paused-one").Pause(t.Context(), sdk.SchedulePauseOptions{Note: "vendor is down"}))
	edited := live("edited").GetSchedule()
	edited.GetSpec().GetInterval()[0].Interval, edited.GetSpec().GetInterval()[0].Phase = durationpb.New(time.Hour), nil
	_, err := temporal.WorkflowService().UpdateSchedule(t.Context(), &workflowservice.UpdateScheduleRequest{
		Namespace: st.Namespace, ScheduleId: contract.ScheduleID("take_steps.edited"), Schedule: edited, RequestId: "by hand",
	})
	require.NoError(t, err)
	require.NoError(t, schedule("deleted").Delete(t.Context()))
	_, err = temporal.ScheduleClient().Create(t.Context(), sdk.ScheduleOptions{
		ID: contract.ScheduleID("take_steps.foreign"), Paused: true, Note: "someone else's",
		Spec:   sdk.ScheduleSpec{Intervals: []sdk.ScheduleIntervalSpec{{Every: time.Hour}}},
		Action: &sdk.ScheduleWorkflowAction{ID: "x", Workflow: "Other", TaskQueue: "other"},
	})
	require.NoError(t, err)
	foreign := live("foreign").String()
	stacktest.WaitFor(t, "the foreign schedule to be listed", func() (bool, error) {
		return strings.Contains(c.run(t.Context(), "drift").stdout, "take_steps.foreign"), nil
	})

	r := c.run(t.Context(), "drift")
	require.Equal(t, 2, r.code, r.stderr)
	require.Regexp(t, `^- take_steps\.deleted  recurring  its schedule was deleted
~ take_steps\.edited  recurring  edited
    schedule\.intervals: \["every P1D at [^"]+"\] → \["every PT1H at PT0S"\]
~ take_steps\.paused-one  recurring  paused: vendor is down
    paused: false → true
! schedule job/take_steps\.foreign is unmanaged: it has a job's name, and starter did not create it

Namespace \S+ against the last apply: 3 jobs have drifted, 1 resource is unmanaged, of 4 applied\.
$`, r.stdout)
	asJSON := c.run(t.Context(), "drift", "-o", "json")
	require.Equal(t, 2, asJSON.code)
	require.Equal(t, 3, strings.Count(asJSON.stdout, `"kind": "DRIFT_KIND_`))
	require.Contains(t, asJSON.stdout, `"foreign": [
    "schedule job/take_steps.foreign"
  ]`)

	// A job of the foreign schedule's name is blocked; all others are applied.
	taken := writeFile(t, "jobs.toml", jobs.String()+"[jobs.take_steps.foreign]\nspec = { steps = 1 }\nrecurring = { recur_every = \"P1D\" }\n")
	r = c.run(t.Context(), "plan", "-f", taken)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stdout, "! take_steps.foreign  recurring  schedule job/take_steps.foreign ")
	require.Contains(t, r.stdout, "= take_steps.paused-one  recurring  paused: vendor is down")
	require.Contains(t, r.stdout, "1 to create, 1 to update, 0 to delete, 1 blocked, 2 unchanged")
	r = c.run(t.Context(), "apply", "-f", taken, "--yes")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "Applied: 1 created, 1 updated, 0 deleted in ")
	require.Contains(t, r.stderr, "starter: 1 job is blocked and unchanged\n")
	require.Equal(t, foreign, live("foreign").String(), "untouched")
	require.True(t, live("paused-one").GetSchedule().GetState().GetPaused(), "the pause is kept")
	require.Equal(t, "vendor is down", live("paused-one").GetSchedule().GetState().GetNotes())

	require.NoError(t, schedule("foreign").Delete(t.Context()))
	stacktest.WaitFor(t, "the pause to be all of the drift", func() (bool, error) {
		r = c.run(t.Context(), "drift")
		return strings.HasPrefix(r.stdout, "~ take_steps.paused-one  recurring  paused: vendor is down\n    paused: false → true\n\n"), nil
	})
	c.ok(t, "apply", "-f", file, "--yes", "--reset-pauses")
	require.Empty(t, answered[jobsv1.GetDriftResponse](t, c, "drift").GetDrifts())
	require.Empty(t, answered[jobsv1.GetDriftResponse](t, c, "drift").GetForeign())
}
