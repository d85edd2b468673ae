package reconcile_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1/platformv1connect"
)

// spec is that of the orchestrator of a config.
func spec(t *testing.T, source *reconcile.Platform, config string) (s reconcile.OrchestratorSpec) {
	t.Helper()
	configs, err := source.Configs(t.Context())
	require.NoError(t, err)
	for _, c := range configs {
		if c.ID == config {
			require.NotNil(t, c.Job)
			require.NoError(t, job.DecodeSpec(c.Job.Spec, &s))
		}
	}
	return s
}

func TestConfigsOfThePlatform(t *testing.T) {
	t.Parallel()
	p := reconciletest.New(t)
	var all []string
	for n := range 103 { // more than a page
		all = append(all, fmt.Sprintf("c%03d", n))
	}
	p.Enable(all...)
	p.Disable(all[0], all[101])
	configs, err := reconcile.NewPlatform(p.Client).Configs(t.Context())
	require.NoError(t, err)
	require.Len(t, configs, len(all))
	for n, c := range configs {
		require.Equal(t, all[n], c.ID)
		require.Equal(t, n != 0 && n != 101, c.Job != nil, c.ID)
		require.Zero(t, c.Condition)
	}
	want := configs[1].Job
	require.Empty(t, want.Validate())
	require.Equal(t, "orchestrate_integration.c001", want.ID)
	require.Equal(t, "organization:demo", want.Options.Owner.String())
}

func reference(id string) map[string]*platformv1.VariableValue {
	return map[string]*platformv1.VariableValue{"to": {Value: &platformv1.VariableValue_ConfigId{ConfigId: id}}}
}

// referring is a type whose configs refer to others.
func referring(p *reconciletest.Platform) *platformv1.IntegrationType {
	return &platformv1.IntegrationType{Id: "referring", Name: "Referring", Jobs: []*platformv1.IntegrationJob{
		p.Job("ExtractTest", map[string]any{"list": []any{"${config_id}"}}),
	}, Variables: []*platformv1.Variable{{Name: "to", Type: platformv1.VariableType_VARIABLE_TYPE_CONFIG, Required: true}}}
}

// The revision of an orchestrator changes with what its jobs follow from, and with nothing
// else.
func TestRevisionOfAnOrchestrator(t *testing.T) {
	t.Parallel()
	p := reconciletest.New(t)
	source := reconcile.NewPlatform(p.Client)
	p.Enable("a", "b")
	p.PutType(referring(p))
	revision, neighbor := spec(t, source, "a").Revision, spec(t, source, "b").Revision
	require.NotEmpty(t, revision)
	changes := func(why string, does bool) {
		t.Helper()
		next := spec(t, source, "a").Revision
		require.Equal(t, does, next != revision, why)
		revision = next
	}
	require.NoError(t, source.SetCondition(t.Context(), "a", reconcile.Condition{Reason: reconcile.ReasonApplied}))
	changes("a status", false)
	p.PutConfig(&platformv1.IntegrationConfig{Id: "s", TypeId: "referring", Values: reference("a")})
	changes("a config that refers to it and is not enabled", false)
	p.Enable("s")
	changes("one that is enabled", true)
	require.NoError(t, source.SetCondition(t.Context(), "s", reconcile.Condition{Reason: reconcile.ReasonApplied}))
	changes("the status of that one", false)
	kind := referring(p)
	kind.Jobs[0].Spec.Fields["more"] = kind.GetJobs()[0].GetSpec().GetFields()["list"]
	p.PutType(kind)
	changes("the type of that one", true)
	p.Disable("s")
	changes("one that is disabled", true)
	p.PutConfig(&platformv1.IntegrationConfig{Id: "a", TypeId: reconciletest.TypeID, Enabled: true, OperationMode: platformv1.OperationMode_OPERATION_MODE_TEST})
	changes("its own mode", true)
	require.Equal(t, neighbor, spec(t, source, "b").Revision)
}

// A config that registers nothing is told why.
func TestAnEnabledConfigWithoutJobsIsExplained(t *testing.T) {
	t.Parallel()
	p := reconciletest.New(t)
	source := reconcile.NewPlatform(p.Client)
	p.Enable("a")
	p.Disable("a")
	p.PutType(referring(p))
	p.PutType(&platformv1.IntegrationType{Id: "empty", Name: "Empty"})
	p.PutConfig(&platformv1.IntegrationConfig{Id: "e", TypeId: "empty", Enabled: true})
	p.PutConfig(&platformv1.IntegrationConfig{Id: "s", TypeId: "referring", Enabled: true, Values: reference("a")})
	p.PutConfig(&platformv1.IntegrationConfig{Id: "z", TypeId: "referring", Enabled: true, Values: reference("gone")})
	once(t, jobtest.NewJobs(), source, false)
	for config, want := range map[string]string{
		"e": "configs of this type have no jobs",
		"s": "the platform registers no job for this config: values.to: the config is not enabled",
		"z": "the platform registers no job for this config: values.to: the organization has no such config",
	} {
		c := p.Condition(config, "Scheduled")
		require.Equal(t, "NothingRegistered", c.GetReason())
		require.Equal(t, want, c.GetMessage())
	}
	require.Empty(t, once(t, jobtest.NewJobs(), source, false).outcomes)
}

// Others write conditions of their own, at the same time.
func TestConditionsOfOthersStay(t *testing.T) {
	t.Parallel()
	p := reconciletest.New(t)
	source := reconcile.NewPlatform(p.Client)
	p.Enable("a")
	p.Disable("a")
	p.Enable("a")
	condition := reconcile.Condition{Reason: reconcile.ReasonBlocked, Message: "in the way"}
	condition.Version = 3
	require.NoError(t, source.SetCondition(t.Context(), "a", condition))
	require.EqualValues(t, 3, p.Get("a").GetStatus().GetObservedVersion())

	theirs := platform.ConditionChange{Observed: 3, Set: []platform.Condition{{Type: "Ready", Holds: true}, {Type: "Theirs"}}}
	require.NoError(t, p.Client.WriteConditions(t.Context(), "a", theirs))
	p.Disable("a")
	p.Enable("a")
	condition = reconcile.Condition{Scheduled: true, Reason: reconcile.ReasonApplied, Version: 5}
	require.NoError(t, source.SetCondition(t.Context(), "a", condition))
	require.NotNil(t, p.Condition("a", "Ready"))
	require.Equal(t, "Applied", p.Condition("a", "Scheduled").GetReason())
	require.EqualValues(t, 5, p.Condition("a", "Scheduled").GetObservedVersion())
	require.EqualValues(t, 3, p.Get("a").GetStatus().GetObservedVersion(), "the other conditions are about an earlier one")

	configs, err := source.Configs(t.Context())
	require.NoError(t, err)
	require.Equal(t, condition, configs[0].Condition)
	require.True(t, configs[0].Orchestrated)
	etags := p.Etags()
	require.NoError(t, source.SetCondition(t.Context(), "a", condition))
	require.NoError(t, p.Client.WriteConditions(t.Context(), "a", theirs))
	require.Equal(t, etags, p.Etags(), "what is so is not written")
	theirs.Set[0].Holds, theirs.Observed = false, 2
	require.NoError(t, p.Client.WriteConditions(t.Context(), "a", theirs))
	require.Equal(t, etags, p.Etags(), "it is about an earlier version")

	require.NoError(t, source.SetCondition(t.Context(), "a", reconcile.Condition{Reason: reconcile.ReasonDisabled, Version: 5}))
	require.Nil(t, p.Condition("a", "Ready"), "it goes with the orchestrator")
	require.NotNil(t, p.Condition("a", "Theirs"))
	require.NoError(t, source.SetCondition(t.Context(), "gone", condition))
}

// failing is a server whose calls fail.
func failing(t *testing.T, err error) *reconcile.Platform {
	t.Helper()
	server := connect.NewServer(func(connect.ServerFunc) connect.ServerFunc {
		return func(context.Context, connect.Spec, connect.ServerStream) error { return err }
	})
	platformv1connect.RegisterIntegrationServiceHandler(server, platformv1connect.UnimplementedIntegrationServiceHandler{})
	platformv1connect.RegisterChangeServiceHandler(server, platformv1connect.UnimplementedChangeServiceHandler{})
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server)
	listener := httptest.NewServer(mux)
	t.Cleanup(listener.Close)
	client, problem := platform.New(platform.Config{URL: listener.URL, Token: "hunter2"})
	require.NoError(t, problem)
	return reconcile.NewPlatform(client)
}

func TestErrorsOfThePlatform(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err         error
		class, want string
	}{
		{connect.NewError(connect.CodeUnavailable, "busy"), errclass.PlatformUnreachable, "the Platform API does not answer: unavailable: busy"},
		{connect.NewError(connect.CodePermissionDenied, "no"), errclass.PlatformRefused, "the Platform API refuses the token: permission_denied: no"},
		{connect.NewError(connect.CodeInvalidArgument, "wrong"), errclass.PlatformAnswer, "the Platform API answers: invalid_argument: wrong"},
		{connect.NewError(connect.CodeInternal, "broken"), errclass.PlatformUnreachable, "the Platform API is in trouble: internal: broken"},
	} {
		source := failing(t, test.err)
		_, err := source.Configs(t.Context())
		require.EqualError(t, err, test.want)
		failure := jobtest.FailureOf(t, err)
		require.Equal(t, test.class, failure.Class)
		require.False(t, failure.Kind.Final())
		require.EqualError(t, source.Hints(t.Context(), nil), test.want)
	}
}

// All of it together, on the API.
func TestReconcilingWithThePlatform(t *testing.T) {
	t.Parallel()
	p, jobs := reconciletest.New(t), jobtest.NewJobs()
	p.Enable("a", "b")
	source := reconcile.NewPlatform(p.Client)
	once(t, jobs, source, false)
	require.Equal(t, ids("a", "b"), jobs.IDs())
	etags := p.Etags()
	require.Empty(t, once(t, jobs, source, false).outcomes)
	require.Equal(t, etags, p.Etags())

	require.NoError(t, p.Client.WriteConditions(t.Context(), "a", platform.ConditionChange{Set: []platform.Condition{{Type: "Ready"}}}))
	p.Disable("a")
	once(t, jobs, source, false)
	require.Equal(t, ids("b"), jobs.IDs())
	require.Equal(t, "Disabled", p.Condition("a", "Scheduled").GetReason())
	require.Nil(t, p.Condition("a", "Ready"))
	require.Empty(t, once(t, jobs, source, false).outcomes)
	p.Remove("b")
	once(t, jobs, source, false)
	require.Empty(t, jobs.IDs(), "it is not known any more")
}

// A change of a config is acted upon at once, and the conditions that follow are not.
func TestHintsOfThePlatform(t *testing.T) {
	t.Parallel()
	p, looks := reconciletest.New(t), make(chan []string, 10)
	ended := make(chan error)
	ctx, stop := context.WithCancel(t.Context())
	source := reconcile.NewPlatform(p.Client)
	go func() { ended <- source.Hints(ctx, func(configs ...string) { looks <- configs }) }()
	require.Empty(t, <-looks, "all, once it has begun")
	p.Enable("a")
	require.Equal(t, []string{"a"}, <-looks)
	require.NoError(t, source.SetCondition(t.Context(), "a", reconcile.Condition{Reason: reconcile.ReasonApplied}))
	p.Remove("a")
	require.Equal(t, []string{"a"}, <-looks)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Empty(t, looks)
}
