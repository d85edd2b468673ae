package platform_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
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
		require.EqualError(t, err, "DENDRA_PLATFORM_URL is not a URL such as https://svcs.dendra.science/api/rpc")
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

// TestErrorsDoNotHaveTheToken: a server may say what it was sent, and a proxy has pages of
// its own.
func TestErrorsDoNotHaveTheToken(t *testing.T) {
	t.Parallel()
	answer := http.StatusNotFound
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer)
		_, _ = fmt.Fprintf(w, `{"code":"not_found","message":"nothing for %s"}`, r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	c, err := platform.New(platform.Config{URL: server.URL, Token: "s3cret"})
	require.NoError(t, err)
	_, err = c.Metadata.GetStation(t.Context(), &platformv1.GetStationRequest{Id: "1"})
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	require.EqualError(t, platform.Explain(err), "the Platform API answers: not_found: nothing for Bearer [redacted]")
	stream, err := c.Changes.StreamChanges(t.Context(), &platformv1.StreamChangesRequest{})
	if err == nil {
		_, err = stream.Receive()
		require.NoError(t, stream.Close())
	}
	require.Error(t, err)
	require.NotContains(t, err.Error(), "s3cret")

	answer = http.StatusFound
	_, err = c.Metadata.GetStation(t.Context(), &platformv1.GetStationRequest{Id: "1"})
	failure := jobtest.FailureOf(t, platform.Explain(err))
	require.NotEmpty(t, failure.Class)
}
