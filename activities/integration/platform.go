package integration

import (
	"errors"
	"net/url"

	"github.com/dendrascience/dendra-jobs/internal/reconcile"
	"github.com/dendrascience/dendra-jobs/job"
)

// PlatformSpec is the part of a spec that says where the Platform API is.
type PlatformSpec struct {
	PlatformURL string        `json:"platform_url" example:"http://127.0.0.1:8100" help:"URL of the Platform API: http://HOST:PORT"`
	Token       job.SecretRef `json:"token,omitempty" help:"bearer token for the Platform API: secret://NAME"`
}

// Validate reports what the schema cannot say.
func (s *PlatformSpec) Validate() error {
	u, err := url.Parse(s.PlatformURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("platform_url is not of the form http://HOST:PORT or https://HOST")
	}
	return nil
}

// Connect makes the client of the Platform API for a run.
type Connect func(run job.Run, spec PlatformSpec) (reconcile.Source, error)
