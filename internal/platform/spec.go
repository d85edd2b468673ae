package platform

import (
	"errors"
	"net/url"

	"github.com/dendrascience/dendra-jobs/job"
)

// Spec is the part of a spec that says where the Platform API is.
type Spec struct {
	PlatformURL string        `json:"platform_url" example:"http://127.0.0.1:8100" help:"URL of the Platform API: http://HOST:PORT"`
	Token       job.SecretRef `json:"token,omitempty" help:"bearer token for the Platform API: secret://NAME"`
}

// Validate reports what the schema cannot say.
func (s *Spec) Validate() error { return checkURL(s.PlatformURL) }

// Open makes the client that a spec describes.
func Open(spec Spec, secret func(job.SecretRef) (string, error)) (*Client, error) {
	config := Config{URL: spec.PlatformURL}
	if spec.Token != "" {
		var err error
		if config.Token, err = secret(spec.Token); err != nil {
			return nil, err
		}
	}
	return New(config)
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return errors.New("platform_url is not of the form http://HOST:PORT or https://HOST")
	}
	return nil
}
