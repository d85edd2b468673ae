package verbs_test

import (
	"context"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
	"github.com/dendrascience/dendra-jobs/verbs/verbstest"
)

// seen keeps the messages of a call.
type seen struct {
	spec              connect.Spec
	request, response proto.Message
}

func (s *seen) CallUnary(_ context.Context, spec connect.Spec, request, response any) error {
	s.spec = spec
	s.request, _ = request.(proto.Message)
	s.response, _ = response.(proto.Message)
	return nil
}

// TestRows: a row calls its procedure with its messages, and says what was done.
func TestRows(t *testing.T) {
	t.Parallel()
	names, actions := map[string]bool{}, map[jobsv1.AlertAction]bool{}
	for _, v := range verbs.All() {
		require.False(t, names[v.Name], "two verbs are %s", v.Name)
		names[v.Name] = true
		require.Greater(t, v.Role, verbs.RoleViewer, v.Name)
		require.NotEmpty(t, v.Kind, v.Name)
		if v.Action != jobsv1.AlertAction_ALERT_ACTION_UNSPECIFIED {
			require.False(t, actions[v.Action], "two verbs do %s", v.Action)
			actions[v.Action] = true
		}
		if v.Label == "" {
			continue // Only its command builds its request.
		}
		var call seen
		a := verbs.To("one", "two", "three")
		a.Preview = v.Previews
		done, err := v.Do(t.Context(), &call, a)
		require.NoError(t, err)
		require.NotEmpty(t, done.Text, v.Name)
		method, ok := call.spec.Schema.(protoreflect.MethodDescriptor)
		require.True(t, ok)
		require.Equal(t, v.Procedure, call.spec.Procedure)
		require.Equal(t, method.Input().FullName(), call.request.ProtoReflect().Descriptor().FullName(), v.Name)
		require.Equal(t, method.Output().FullName(), call.response.ProtoReflect().Descriptor().FullName(), v.Name)
		if v.Kind != verbs.KindQuarantine {
			require.Regexp(t, "one|three", prototext.Format(call.request), v.Name)
		}
	}
	for number := range jobsv1.AlertAction_name {
		require.Equal(t, number != 0, actions[jobsv1.AlertAction(number)], "the verb of %s", jobsv1.AlertAction(number))
	}
}

// TestRetryOfManyLeavesWhatPeopleHaveStopped takes jobs whose latest run failed by itself.
func TestRetryOfManyLeavesWhatPeopleHaveStopped(t *testing.T) {
	t.Parallel()
	const failed, timedOut = jobsv1.RunStatus_RUN_STATUS_FAILED, jobsv1.RunStatus_RUN_STATUS_TIMED_OUT
	for number := range jobsv1.RunStatus_name {
		status := jobsv1.RunStatus(number)
		listed := &jobsv1.Job{Mode: &jobsv1.Job_Recurring{}, State: &jobsv1.JobState{LatestRunStatus: status}}
		shown := &jobsv1.JobOverview{Mode: verbs.Recurring, LatestRunStatus: status}
		for _, of := range []verbs.Subject{verbs.OfJob(listed), verbs.OfOverview(shown)} {
			require.Equal(t, status == failed || status == timedOut, verbs.RetryRun.AppliesAmong(of), status)
		}
	}
	require.False(t, verbs.RetryRun.AppliesAmong(verbs.OfOverview(&jobsv1.JobOverview{Mode: verbs.Continuous, LatestRunStatus: failed})))
}

// TestRulesSayWhatTheListSays compares the rules with the list of states that all other tests read.
func TestRulesSayWhatTheListSays(t *testing.T) {
	t.Parallel()
	same := func(s verbstest.State, list []*verbs.Verb, of verbs.Subject) {
		for _, v := range list {
			require.Equal(t, s.Applies(v), v.Applies(of), "%s of a %s", v.Name, s.Name)
			require.Equal(t, s.AppliesAmong(v), v.AppliesAmong(of), "%s of a %s among many", v.Name, s.Name)
		}
	}
	for _, s := range verbstest.Jobs(t) {
		same(s, verbs.JobVerbs(), verbs.OfOverview(s.Overview))
		same(s, verbs.JobVerbs(), verbs.OfJob(s.Job))
	}
	for _, s := range verbstest.Runs(t) {
		same(s, verbs.RunVerbs(), verbs.OfRun(s.Run))
	}
	for _, s := range verbstest.Queues(t) {
		same(s, verbs.QueueVerbs(), verbs.OfQueue(s.Queue))
	}
	for _, s := range verbstest.Loads(t) {
		same(s, verbs.LoadVerbs(), verbs.OfLoad(s.Load))
	}
}

// TestTheRunToRetryIsTheLatestThatTells: what later runs have made good is not retried, and those
// that did nothing do not count.
func TestTheRunToRetryIsTheLatestThatTells(t *testing.T) {
	t.Parallel()
	const (
		failed = jobsv1.RunStatus_RUN_STATUS_FAILED
		good   = jobsv1.RunStatus_RUN_STATUS_COMPLETED
		held   = jobsv1.RunStatus_RUN_STATUS_HELD_BACK
	)
	for _, c := range []struct {
		statuses []jobsv1.RunStatus // the latest first
		want     int                // -1 for none
		whyNot   string
	}{
		{nil, -1, ""},
		{[]jobsv1.RunStatus{held, held}, -1, ""},
		{[]jobsv1.RunStatus{failed, good}, 0, ""},
		{[]jobsv1.RunStatus{held, failed, good}, 1, ""},
		{[]jobsv1.RunStatus{good, failed}, -1, "it did not fail"},
		{[]jobsv1.RunStatus{jobsv1.RunStatus_RUN_STATUS_RUNNING, failed}, -1, "it has not ended"},
		{[]jobsv1.RunStatus{jobsv1.RunStatus_RUN_STATUS_CANCELED, failed}, -1, "somebody has ended it"},
	} {
		var runs []*jobsv1.Run
		for _, status := range c.statuses {
			runs = append(runs, &jobsv1.Run{Status: status})
		}
		run, whyNot := verbs.RunToRetry(runs)
		require.Equal(t, c.whyNot, whyNot, "%v", c.statuses)
		if c.want < 0 {
			require.Nil(t, run, "%v", c.statuses)
		} else {
			require.Same(t, runs[c.want], run, "%v", c.statuses)
		}
	}
}
