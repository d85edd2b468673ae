package platform_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/platform"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	set := platform.Setting{Name: "API_URL", Value: "https://host/path", Meaning: "the URL of the API", Example: "https://api.example.org"}
	unset, wrong := set, set
	unset.Value, wrong.Value = "", "host"
	require.NoError(t, platform.CheckSettings(set))
	require.EqualError(t, platform.CheckSettings(unset, wrong, platform.Setting{Name: "API_TOKEN"}),
		"API_URL is not set: it is the URL of the API\nAPI_URL is not a URL such as https://api.example.org\nAPI_TOKEN is not set")
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/elsewhere", http.StatusFound))
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	require.NoError(t, err)
	response, err := platform.HTTPClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusFound, response.StatusCode)
}
