package platform

import (
	"errors"
	"fmt"
	"net/url"
)

// Config says how to reach the Platform API.
type Config struct {
	// Token is the bearer token of the service account. Required.
	Token string
	// URL is that of the API, to which the paths of procedures are added:
	// https://svcs.dendra.science/api/rpc. Required.
	URL string
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
	var problems []error
	switch u, err := url.Parse(c.URL); {
	case c.URL == "":
		problems = append(problems, fmt.Errorf("%s is not set: it is the URL of the Platform API", EnvURL))
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https", u.RawQuery != "", u.Fragment != "", u.User != nil:
		problems = append(problems, fmt.Errorf("%s: it is not a URL such as https://svcs.dendra.science/api/rpc", EnvURL))
	}
	if c.Token == "" {
		problems = append(problems, fmt.Errorf("%s is not set", EnvToken))
	}
	return errors.Join(problems...)
}
