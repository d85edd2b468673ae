package platform_test

import (
	"fmt"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

func TestConfigFromEnv(t *testing.T) {
	t.Parallel()
	env := map[string]string{platform.EnvURL: "https://svcs.dendra.science/api/rpc", platform.EnvToken: "t"}
	c, err := platform.ConfigFromEnv(func(name string) string { return env[name] })
	require.NoError(t, err)
	require.Equal(t, platform.Config{URL: "https://svcs.dendra.science/api/rpc", Token: "t"}, c)

	_, err = platform.ConfigFromEnv(func(string) string { return "" })
	require.EqualError(t, err, "DENDRA_PLATFORM_URL is not set: it is the URL of the Platform API\nDENDRA_PLATFORM_TOKEN is not set")

	for _, wrong := range []string{"svcs.dendra.science", "ftp://host", "https://user:secret@host", "https://host?x=1"} {
		_, err = platform.New(platform.Config{URL: wrong, Token: "t"})
		require.EqualError(t, err, "DENDRA_PLATFORM_URL: it is not a URL such as https://svcs.dendra.science/api/rpc")
	}
}

func TestReasonOfAnError(t *testing.T) {
	t.Parallel()
	tooOld := platformv1.ErrorReason_ERROR_REASON_TOO_OLD
	err := platform.Error(connect.CodeOutOfRange, tooOld, "the log begins at %d", 7)
	require.EqualError(t, err, "out_of_range: the log begins at 7")
	require.Equal(t, tooOld, platform.Reason(fmt.Errorf("changes: %w", err)))
	require.Zero(t, platform.Reason(connect.NewError(connect.CodeOutOfRange, "another")))
	require.Zero(t, platform.Reason(fmt.Errorf("another")))
}
