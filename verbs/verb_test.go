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
	for outcomes, want := range map[string]bool{
		"": false, "C": false, "CF": true, "CT": true, "FMHP": true, "FC": false, "FR": false,
		"FX": false, "FK": false, "X": false, "CKH": false,
	} {
		j := &jobsv1.JobOverview{Mode: verbs.Recurring, Outcomes: outcomes}
		require.Equal(t, want, verbs.RetryRun.AppliesAmong(verbs.OfOverview(j)), outcomes)
		if want {
			require.True(t, verbs.RetryRun.Applies(verbs.OfOverview(j)), outcomes)
		}
	}
	require.False(t, verbs.RetryRun.AppliesAmong(verbs.OfOverview(&jobsv1.JobOverview{Mode: verbs.Continuous, Outcomes: "F"})))
}
