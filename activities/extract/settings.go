package extract

import (
	"net/http"
	"time"
)

// Option changes what a job type works with.
type Option func(*settings)

// settings are what the options of the job types change.
type settings struct {
	http *http.Client
	now  func() time.Time
}

// WithNow sets the clock. Defaults to time.Now.
func WithNow(now func() time.Time) Option { return func(s *settings) { s.now = now } }

// WithHTTPClient sets what requests to the vendor are made with.
func WithHTTPClient(client *http.Client) Option { return func(s *settings) { s.http = client } }

func newSettings(options []Option) settings {
	s := settings{now: time.Now}
	for _, option := range options {
		option(&s)
	}
	return s
}
