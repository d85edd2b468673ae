package main_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestAnApplyThatIsKilledIsCompletedByTheNext kills apply twice, at a random
// number of Schedules each time.
func TestAnApplyThatIsKilledIsCompletedByTheNext(t *testing.T) {
	t.Parallel()
	killedApplies(newSite(t), stacktest.Random(t))
}

func killedApplies(s *site, random *rand.Rand) {
	size := stacktest.Size(1, 5)
	declared := declaredJobs{recurring: 24 * size, continuous: 4 * size, oneShot: 8 * size, queued: 4 * size}
	all := 40 * size
	file := declared.file(s.T)
	foreign := s.foreignSchedule("job/extract_hobo_time_frame.foreign")

	left := declared.recurring
	for range 2 {
		made := random.IntN(left/2) + 1
		halted := s.haltAfter(made)
		killed := s.start("apply", "-f", file, "--yes", "--address", halted.Address)
		halted.wait()
		killed.Kill()
		s.Logf("killed when it had made %d Schedules of %d", made, left)
		left -= made
	}
	s.must(0, "apply", "-f", file, "--yes")
	require.Contains(s, s.must(0, "plan", "-f", file), fmt.Sprintf("%d unchanged", all))
	s.must(0, "plan", "-f", file, "--prune")

	// Each of those that run once does, and once.
	once := declared.onces()
	stacktest.WaitFor(s, "a run of each job that runs once", func() (bool, error) {
		return !slices.Contains(s.runs(once), 0), nil
	})
	s.must(0, "apply", "-f", file, "--yes")
	require.Equal(s, slices.Repeat([]int{1}, len(once)), s.runs(once))
	for query, want := range map[string]int64{
		"WorkflowType = 'RunJob'": int64(len(once)),
		"WorkflowType = 'ContinuousJob' AND ExecutionStatus = 'Running'": int64(declared.continuous),
		"WorkflowType = 'ContinuousJob'":                                 int64(declared.continuous),
		"WorkflowType = 'JobQueue'":                                      1,
	} {
		s.counts(query, want)
	}
	stacktest.WaitFor(s, "all schedules in the list", func() (bool, error) { return len(s.schedules()) >= declared.recurring+1, nil })
	require.Len(s, s.schedules(), declared.recurring+1)
	require.Equal(s, foreign, s.describe("job/extract_hobo_time_frame.foreign"), "a foreign schedule is left as it was")

	// What was applied is known in full, whenever the applies were cut off.
	s.must(2, "drift") // The foreign schedule.
	require.NoError(s, s.temporal.ScheduleClient().GetHandle(s.Context(), "job/extract_hobo_time_frame.foreign").Delete(s.Context()))
	stacktest.WaitFor(s, "the foreign schedule to be gone from the list", func() (bool, error) { return len(s.schedules()) == declared.recurring, nil })
	s.must(0, "drift")
}

func (s *site) foreignSchedule(id string) string {
	s.Helper()
	_, err := s.temporal.ScheduleClient().Create(s.Context(), client.ScheduleOptions{
		ID:     id,
		Spec:   client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: 24 * time.Hour}}},
		Action: &client.ScheduleWorkflowAction{ID: "foreign", Workflow: "Foreign", TaskQueue: "foreign"},
		Paused: true, Note: "someone else's",
	})
	require.NoError(s, err)
	return s.describe(id)
}

// describe is a schedule in one text, with the token that changes with it.
func (s *site) describe(id string) string {
	s.Helper()
	answer, err := s.temporal.WorkflowService().DescribeSchedule(s.Context(), &workflowservice.DescribeScheduleRequest{
		Namespace: s.stack.Namespace, ScheduleId: id,
	})
	require.NoError(s, err)
	return fmt.Sprintf("%x %v %v", answer.GetConflictToken(), answer.GetSchedule(), answer.GetSearchAttributes())
}

// schedules are the ids of all schedules.
func (s *site) schedules() []string {
	s.Helper()
	answer, err := s.temporal.WorkflowService().ListSchedules(s.Context(), &workflowservice.ListSchedulesRequest{
		Namespace: s.stack.Namespace, MaximumPageSize: 1000,
	})
	require.NoError(s, err)
	var ids []string
	for _, entry := range answer.GetSchedules() {
		ids = append(ids, entry.GetScheduleId())
	}
	return ids
}

// counts waits until a query finds as many workflows: the index lags behind.
func (s *site) counts(query string, want int64) {
	s.Helper()
	var got int64
	stacktest.WaitFor(s, fmt.Sprintf("%d × %s", want, query), func() (bool, error) {
		answer, err := s.temporal.CountWorkflow(s.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: s.stack.Namespace, Query: query,
		})
		got = answer.GetCount()
		return got >= want, err
	})
	require.Equal(s, want, got, query)
}
