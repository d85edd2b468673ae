package platform

import "net/http"

// Config says how to reach the Platform API.
type Config struct {
	// Token is the bearer token of the service account. Required.
	Token string
	// URL is that of the API, to which the paths of procedures are added:
	// https://svcs.dendra.science/api/rpc. Required.
	URL string
	// HTTPClient makes the requests. Defaults to [HTTPClient].
	HTTPClient *http.Client
}

// Names of the environment variables that [ConfigFromEnv] reads.
const (
	EnvToken = "DENDRA_PLATFORM_TOKEN"
	EnvURL   = "DENDRA_PLATFORM_URL"
)

// ConfigFromEnv reads the configuration through a function like os.Getenv. It lists
// every variable that is missing or wrong.
func ConfigFromEnv(getenv func(string) string) (Config, error) {
	c := Config{Token: getenv(EnvToken), URL: getenv(EnvURL)}
	return c, c.check()
}

func (c Config) check() error {
	return CheckSettings(
		Setting{Name: EnvURL, Value: c.URL, Meaning: "the URL of the Platform API", Example: "https://svcs.dendra.science/api/rpc"},
		Setting{Name: EnvToken, Value: c.Token},
	)
}
