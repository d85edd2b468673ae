package influx

import (
	"errors"
	"fmt"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Servers says which servers are those of a location. It is part of specs.
type Servers struct {
	Location string `json:"location" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" example:"common1" help:"location whose data it is"`
	// InfluxURL is the server of the location's only mirror, or of the one named
	// default.
	InfluxURL string        `json:"influx_url,omitempty" format:"dendra-url" example:"http://127.0.0.1:8086" help:"URL of the InfluxDB 1.x server: http://HOST:8086; the mirror named default"`
	Username  string        `json:"username,omitempty" help:"InfluxDB user at influx_url; goes with password"`
	Password  job.SecretRef `json:"password,omitempty" help:"password of the InfluxDB user: secret://NAME"`
	// Database is for mirrors that have none of their own.
	Database string `json:"database,omitempty" pattern:"^[^./\\\\][^/\\\\]*$" maxLength:"255" help:"database of all data, instead of the one that messages or stations name"`
	// Mirrors each get all points.
	Mirrors []Mirror `json:"mirrors,omitempty" maxItems:"8" help:"servers that each have all points; besides influx_url or instead of it"`
}

// Mirror is a server that has all points of a location.
type Mirror struct {
	// Name tells the mirrors of a location apart. Its position in the stream goes by
	// it: another name starts anew.
	Name      string        `json:"name" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" example:"west" help:"name of the mirror; its place in the stream goes by it"`
	InfluxURL string        `json:"influx_url" format:"dendra-url" example:"http://127.0.0.1:8086" help:"URL of the InfluxDB 1.x server: http://HOST:8086"`
	Username  string        `json:"username,omitempty" help:"InfluxDB user; goes with password"`
	Password  job.SecretRef `json:"password,omitempty" help:"password of the InfluxDB user: secret://NAME"`
	Database  string        `json:"database,omitempty" pattern:"^[^./\\\\][^/\\\\]*$" maxLength:"255" help:"database on this server instead of database of the job"`
	Gzip      Gzip          `json:"gzip,omitempty" enum:"auto,always,never" help:"compress what is written; defaults to gzip of the job"`
}

// Reach is how to reach the mirror. The run resolves the password.
func (m Mirror) Reach(run job.Run) (Config, error) {
	config := Config{URL: m.InfluxURL, Username: m.Username}
	if m.Password == "" {
		return config, nil
	}
	var err error
	config.Password, err = run.Secret(m.Password, m.InfluxURL)
	return config, err
}

// Explain gives an [*Error] of the mirror its class, and says which mirror it is.
func (m Mirror) Explain(location string, err error) error {
	failed := (*Error)(nil)
	if !errors.As(err, &failed) {
		return err
	}
	class := errclass.InfluxUnreachable
	if failed.Kind == KindConfig {
		class = errclass.InfluxConfig
	}
	return job.Retryable(class, 0, "mirror %s of location %s: %w", m.Name, location, err)
}

// Gzip says when writes are compressed.
type Gzip string

// The choices. GzipAuto compresses unless every address of the server is a
// loopback, private or link-local one.
const (
	GzipAuto   Gzip = "auto"
	GzipAlways Gzip = "always"
	GzipNever  Gzip = "never"
)

// Validate reports mirrors of one name, and keys that do not go together.
func (s *Servers) Validate() error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if s.InfluxURL == "" && len(s.Mirrors) == 0 {
		add("neither influx_url nor mirrors is set")
	}
	if s.InfluxURL == "" && (s.Username != "" || s.Password != "") {
		add("username and password go with influx_url; a mirror has its own")
	}
	seen := map[string]bool{}
	for _, m := range s.Mirrors {
		switch {
		case m.Name == pipeline.DefaultMirror:
			add("mirror %q: default is the name of the mirror at influx_url", m.Name)
		case seen[m.Name]:
			add("mirror %q: another mirror has this name", m.Name)
		}
		seen[m.Name] = true
	}
	for _, m := range s.All() {
		if (m.Password == "") != (m.Username == "") {
			add("mirror %q: username and password are given together or not at all", m.Name)
		}
	}
	return errors.Join(problems...)
}

// All are all mirrors, that of the short form first.
func (s *Servers) All() []Mirror {
	var mirrors []Mirror
	if s.InfluxURL != "" {
		mirrors = append(mirrors, Mirror{
			Name: pipeline.DefaultMirror, InfluxURL: s.InfluxURL, Username: s.Username, Password: s.Password,
		})
	}
	mirrors = append(mirrors, s.Mirrors...)
	for i := range mirrors {
		if mirrors[i].Database == "" {
			mirrors[i].Database = s.Database
		}
	}
	return mirrors
}
