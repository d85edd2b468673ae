package release2

import (
	"net/http"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/platform"
)

// Config says how to reach the metadata API.
type Config struct {
	// HTTPClient makes the requests. Defaults to one that follows no redirects.
	HTTPClient *http.Client
	// Timeout is the longest that one request may take, answer included. Defaults to
	// 30 s.
	Timeout time.Duration
	// Token is the bearer token of the service account. Required.
	Token string
	// URL is that of the API, to which the names of services are added. Required.
	URL string
}

// Names of the environment variables that [ConfigFromEnv] reads.
const (
	EnvToken = "DENDRA_RELEASE2_TOKEN"
	EnvURL   = "DENDRA_RELEASE2_URL"
)

// ConfigFromEnv reads the configuration through a function like os.Getenv. It lists
// every variable that is missing or wrong.
func ConfigFromEnv(getenv func(string) string) (Config, error) {
	c := Config{Token: getenv(EnvToken), URL: getenv(EnvURL)}
	return c, c.check()
}

func (c Config) check() error {
	return platform.CheckSettings(
		platform.Setting{Name: EnvURL, Value: c.URL, Meaning: "the URL of the metadata API of Release 2", Example: "https://api.example.org/v2"},
		platform.Setting{Name: EnvToken, Value: c.Token, Meaning: "the token of the service account of reverse sync"},
	)
}
