package seed_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	reference "github.com/dendrascience/dendra-jobs/devstack/internal/platform"
	"github.com/dendrascience/dendra-jobs/devstack/internal/seed"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

func TestSeedFillsAnEmptyPlatformOnce(t *testing.T) {
	t.Parallel()
	server, err := reference.Start(t.Context(), reference.Options{Folder: t.TempDir(), Failed: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	located := strings.NewReplacer("127.0.0.1:8090", "127.0.0.1:18090", "127.0.0.1:1024", "127.0.0.1:11024").Replace
	config := platform.Config{URL: server.URL(), Token: reference.Token}
	api, err := platform.New(config)
	require.NoError(t, err)
	configs := func() []*platformv1.IntegrationConfig {
		listed, err := api.Integrations.ListIntegrationConfigs(t.Context(), &platformv1.ListIntegrationConfigsRequest{})
		require.NoError(t, err)
		return listed.GetIntegrationConfigs()
	}

	require.NoError(t, seed.Fill(t.Context(), config, located))
	seeded := configs()
	require.Len(t, seeded, 6)
	for _, c := range seeded {
		checked, err := api.Integrations.CheckIntegrationConfig(t.Context(), &platformv1.CheckIntegrationConfigRequest{IntegrationConfig: c})
		require.NoError(t, err)
		require.Empty(t, checked.GetFindings(), c.GetId())
		require.NotEmpty(t, checked.GetRegistrations(), c.GetId())
		switch c.GetId() {
		case "demo-hobolink":
			require.Equal(t, "http://127.0.0.1:18090", c.GetValues()["base_url"].GetStringValue())
			require.Equal(t, "secret://hobolink-demo", checked.GetRegistrations()[0].GetSpec().AsMap()["token"])
		case "demo-ldmp":
			require.Equal(t, "127.0.0.1:11024", c.GetValues()["server"].GetStringValue())
		}
	}

	// What users do stays.
	require.NoError(t, platformtest.Delete(t.Context(), config, "integration_config", "demo-creek"))
	seeded[0].Enabled = false
	_, err = platformtest.Put(t.Context(), config, &platformv1.Resource{Resource: &platformv1.Resource_IntegrationConfig{IntegrationConfig: seeded[0]}}, "")
	require.NoError(t, err)
	before := configs()
	require.NoError(t, seed.Fill(t.Context(), config, located))
	after := configs()
	require.Len(t, after, 5)
	for i := range after {
		require.Equal(t, before[i].GetEtag(), after[i].GetEtag())
	}
}
