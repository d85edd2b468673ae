package reconcile_test

import (
	"context"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/reconcile"
	"github.com/dendrascience/dendra-jobs/internal/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1/platformv1connect"
)

const token = "hunter2hunter2"

func newSource(t *testing.T, server *reconciletest.Server) *reconcile.Platform {
	t.Helper()
	client, err := platform.New(platform.Config{URL: server.URL, Token: token})
	require.NoError(t, err)
	return reconcile.NewPlatform(client)
}

func TestConfigsOfThePlatform(t *testing.T) {
	t.Parallel()
	server := reconciletest.New(t)
	server.RequireToken(token)
	server.SetPageSize(2)
	server.Enable("a", "b", "c", "d", "e")
	server.Disable("b", "d")
	source := newSource(t, server)

	configs, err := source.Configs(t.Context())
	require.NoError(t, err)
	require.Len(t, configs, 5)
	for _, c := range configs {
		require.Equal(t, strings.Contains("a c e", c.ID), c.Job != nil, c.ID)
		require.Zero(t, c.Condition)
	}
	want := configs[0].Job
	require.Empty(t, want.Validate())
	require.Equal(t, "orchestrate_integration.a", want.ID)
	require.Equal(t, "organization:demo", want.Options.Owner.String())
	require.JSONEq(t, `{"config_id":"a"}`, string(want.Spec))
}

// Others write conditions of their own, at the same time.
func TestConditionsOfOthersStay(t *testing.T) {
	t.Parallel()
	server := reconciletest.New(t)
	server.Enable("a")
	server.Enable("a")
	source := newSource(t, server)
	condition := reconcile.Condition{Reason: reconcile.ReasonBlocked, Message: "in the way"}
	require.NoError(t, source.SetCondition(t.Context(), "a", condition))
	require.EqualValues(t, 2, server.Config("a").GetStatus().GetObservedVersion(), "nobody has written before")

	client, err := platform.New(platform.Config{URL: server.URL, Token: token})
	require.NoError(t, err)
	theirs := server.Config("a").GetStatus()
	theirs.Conditions = append(theirs.Conditions, &platformv1.Condition{Type: "Ready"})
	write(t, client.Integrations, theirs)
	server.Enable("a")
	condition = reconcile.Condition{Scheduled: true, Reason: reconcile.ReasonApplied}
	require.NoError(t, source.SetCondition(t.Context(), "a", condition))
	require.NotNil(t, server.Condition("a", "Ready"))
	require.Equal(t, "Applied", server.Condition("a", "Scheduled").GetReason())
	require.EqualValues(t, 2, server.Config("a").GetStatus().GetObservedVersion(), "it is that of the other conditions")

	configs, err := source.Configs(t.Context())
	require.NoError(t, err)
	require.Equal(t, condition, configs[0].Condition)
	require.NoError(t, source.SetCondition(t.Context(), "gone", condition))
}

func write(t *testing.T, client platformv1connect.IntegrationServiceClient, status *platformv1.IntegrationConfigStatus) {
	t.Helper()
	_, err := client.UpdateIntegrationConfigStatus(t.Context(), &platformv1.UpdateIntegrationConfigStatusRequest{ConfigId: "a", Status: status})
	require.NoError(t, err)
}

func TestErrorsOfThePlatform(t *testing.T) {
	t.Parallel()
	server := reconciletest.New(t)
	for _, test := range []struct {
		err         error
		class, want string
	}{
		{connect.NewError(connect.CodeUnavailable, "busy"), platform.ClassUnreachable, "the Platform API does not answer: unavailable: busy"},
		{connect.NewError(connect.CodePermissionDenied, "no"), platform.ClassRefused, "the Platform API refuses the token: permission_denied: no"},
		{connect.NewError(connect.CodeInvalidArgument, "wrong"), platform.ClassAnswer, "the Platform API answers: invalid_argument: wrong"},
		{connect.NewError(connect.CodeInternal, "broken"), platform.ClassUnreachable, "the Platform API is in trouble: internal: broken"},
	} {
		server.Fail(test.err)
		_, err := newSource(t, server).Configs(t.Context())
		require.EqualError(t, err, test.want)
		var failure *job.Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, test.class, failure.Class)
		require.False(t, failure.Final)
	}
}

// All of it together, on the API.
func TestReconcilingWithThePlatform(t *testing.T) {
	t.Parallel()
	server, jobs := reconciletest.New(t), jobtest.NewJobs()
	server.Enable("a", "b")
	source := newSource(t, server)
	once(t, jobs, source, false)
	require.Equal(t, ids("a", "b"), jobs.IDs())
	require.Empty(t, once(t, jobs, source, false).outcomes)
	require.Equal(t, 2, server.Writes())

	server.Disable("a")
	once(t, jobs, source, false)
	require.Equal(t, ids("b"), jobs.IDs())
	require.Equal(t, "Disabled", server.Condition("a", "Scheduled").GetReason())
	server.Remove("b")
	once(t, jobs, source, false)
	require.Empty(t, jobs.IDs(), "it is not known any more")
}

// A change of a config is acted upon at once, and the conditions that follow are not.
func TestHintsOfThePlatform(t *testing.T) {
	t.Parallel()
	server, looks := reconciletest.New(t), make(chan []string, 10)
	ended := make(chan error)
	ctx, stop := context.WithCancel(t.Context())
	source := newSource(t, server)
	go func() { ended <- source.Hints(ctx, func(configs ...string) { looks <- configs }) }()
	require.Empty(t, <-looks, "all, once it has begun")
	server.Enable("a")
	require.Equal(t, []string{"a"}, <-looks)
	require.NoError(t, source.SetCondition(t.Context(), "a", reconcile.Condition{Reason: reconcile.ReasonApplied}))
	server.Remove("a")
	require.Equal(t, []string{"a"}, <-looks)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Empty(t, looks)

	server.Fail(connect.NewError(connect.CodeUnavailable, "busy"))
	require.EqualError(t, source.Hints(t.Context(), nil), "the Platform API does not answer: unavailable: busy")
}
