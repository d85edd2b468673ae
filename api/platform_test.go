package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// integrationsAndTeardowns switches a config, and marks an organization.
func integrationsAndTeardowns(t *testing.T, w *world, key string, c *calledClients) {
	ctx, p := t.Context(), w.platform
	_, err := c.Integrations.GetIntegration(ctx, &jobsv1.GetIntegrationRequest{Id: "gone-" + key})
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)
	config := "config-" + key
	p.PutType(&platformv1.IntegrationType{Id: "type-" + key, Name: "Steps", Jobs: []*platformv1.IntegrationJob{p.Job("ExtractTest", map[string]any{"stations": []any{}})}})
	p.PutConfig(&platformv1.IntegrationConfig{Id: config, TypeId: "type-" + key})
	listed, err := c.Integrations.ListIntegrations(ctx, &jobsv1.ListIntegrationsRequest{})
	require.NoError(t, err)
	require.NotEmpty(t, listed.GetIntegrations())
	checked, err := c.Integrations.CheckIntegration(ctx, &jobsv1.CheckIntegrationRequest{Id: config})
	require.NoError(t, err)
	require.Empty(t, checked.GetFindings())
	require.Len(t, checked.GetNotes(), 1)
	enabled, err := c.Integrations.EnableIntegration(ctx, &jobsv1.EnableIntegrationRequest{Id: config})
	require.NoError(t, err)
	require.Equal(t, jobsv1.IntegrationState_INTEGRATION_STATE_NOT_READY, enabled.GetIntegration().GetState())
	got, err := c.Integrations.GetIntegration(ctx, &jobsv1.GetIntegrationRequest{Id: config})
	require.NoError(t, err)
	require.True(t, got.GetIntegration().GetEnabled())
	disabled, err := c.Integrations.DisableIntegration(ctx, &jobsv1.DisableIntegrationRequest{Id: config})
	require.NoError(t, err)
	require.Equal(t, jobsv1.IntegrationState_INTEGRATION_STATE_DISABLED, disabled.GetIntegration().GetState())

	sum := sha256.Sum256([]byte(key))
	id, slug := hex.EncodeToString(sum[:12]), "org-"+key
	p.Put(&platformv1.Resource{Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{Id: id, Name: slug, Slug: slug}}})
	_, err = c.Teardowns.GetTeardown(ctx, &jobsv1.GetTeardownRequest{Organization: "gone-" + key})
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)
	planned, err := c.Teardowns.PlanTeardown(ctx, &jobsv1.PlanTeardownRequest{Organization: slug})
	require.NoError(t, err)
	require.NotEmpty(t, planned.GetRunName())
	started, err := c.Teardowns.StartTeardown(ctx, &jobsv1.StartTeardownRequest{Organization: id, GracePeriod: durationpb.New(24 * time.Hour)})
	require.NoError(t, err)
	require.False(t, started.GetAlreadyMarked())
	require.NotNil(t, started.GetTeardown().GetDeleteTime())
	found, err := c.Teardowns.GetTeardown(ctx, &jobsv1.GetTeardownRequest{Organization: slug})
	require.NoError(t, err)
	require.Equal(t, started.GetTeardown().GetJobId(), found.GetTeardown().GetJobId())
	require.Equal(t, jobsv1.RunStatus_RUN_STATUS_WAITING, found.GetTeardown().GetRun().GetStatus())
	undone, err := c.Teardowns.UndoTeardown(ctx, &jobsv1.UndoTeardownRequest{Organization: slug})
	require.NoError(t, err)
	require.Nil(t, undone.GetTeardown().GetDeleteTime())

	_, err = c.ReverseSync.ListReverseSyncConflicts(ctx, &jobsv1.ListReverseSyncConflictsRequest{})
	require.NoError(t, err)
}

// TestWithoutAPlatform asks a server that does not know the platform.
func TestWithoutAPlatform(t *testing.T) {
	t.Parallel()
	c := api.NewInProcess(api.Config{})
	_, err := c.Integrations.ListIntegrations(t.Context(), &jobsv1.ListIntegrationsRequest{})
	requireError(t, err, connect.CodeUnavailable, jobsv1.ErrorReason_ERROR_REASON_BACKEND_UNAVAILABLE)
	_, err = c.Teardowns.GetTeardown(t.Context(), &jobsv1.GetTeardownRequest{Organization: "demo"})
	requireError(t, err, connect.CodeUnavailable, jobsv1.ErrorReason_ERROR_REASON_BACKEND_UNAVAILABLE)
}
