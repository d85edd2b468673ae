package load

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// LiveInfluxSpec is the spec of LiveLoadInfluxV1.
type LiveInfluxSpec struct {
	// Location is the location whose prepared messages are loaded.
	Location string `json:"location" jsonschema:"description=location whose prepared messages are loaded,example=common1"`
	// InfluxURL is the server of the location's only mirror, or of the one named
	// default.
	InfluxURL string `json:"influx_url,omitempty" jsonschema:"description=URL of the InfluxDB 1.x server: http://HOST:8086; the mirror named default,example=http://127.0.0.1:8086"`
	// Username for InfluxURL. Defaults to none.
	Username string `json:"username,omitempty" jsonschema:"description=InfluxDB user at influx_url"`
	// Password goes with Username.
	Password job.SecretRef `json:"password,omitempty" jsonschema:"description=password of the InfluxDB user: secret://NAME"`
	// Database replaces the database that the messages name, in mirrors that have
	// none of their own. Defaults to theirs.
	Database string `json:"database,omitempty" jsonschema:"description=database to write to instead of the one that messages name"`
	// Mirrors are further servers, each of which gets all points at its own pace.
	Mirrors []InfluxMirror `json:"mirrors,omitempty" jsonschema:"description=servers that get all points each at its own pace; besides influx_url or instead of it,maxItems=8"`
	// Gzip is when writes are compressed. Defaults to auto.
	Gzip Gzip `json:"gzip,omitempty" jsonschema:"description=compress writes; auto: unless every address of the server is a loopback or private one,enum=auto,enum=always,enum=never,default=auto"`
	// OperationMode is the flow that is loaded. Defaults to live.
	OperationMode pipeline.Operation `json:"operation_mode,omitempty" jsonschema:"description=flow that is loaded,enum=live,enum=test,enum=bulk,default=live"`
	// BatchPoints is the most points in one write. Defaults to 10,000.
	BatchPoints int `json:"batch_points,omitempty" jsonschema:"description=most points in one write,minimum=1,maximum=50000,default=10000"`
	// BatchBytes is the most bytes in one write. Defaults to 2 MB.
	BatchBytes int `json:"batch_bytes,omitempty" jsonschema:"description=most bytes in one write,minimum=1000,maximum=20000000,default=2000000"`
	// BatchAge is how long a write waits for more points. Defaults to 1 s.
	BatchAge job.Duration `json:"batch_age,omitzero" jsonschema:"description=how long a write waits for more points: at most PT30S,default=PT1S"`
	// IterationDuration is how long an iteration works before it reports. Defaults to a minute.
	IterationDuration job.Duration `json:"iteration_duration,omitzero" jsonschema:"description=how long an iteration works before it reports,default=PT1M"`
}

// InfluxMirror is a server that gets all points of a location.
type InfluxMirror struct {
	// Name tells the mirrors of a location apart. Its position in the stream goes by
	// it: another name starts anew.
	Name string `json:"name" jsonschema:"description=name of the mirror; its place in the stream goes by it,example=west"`
	// InfluxURL is the server.
	InfluxURL string `json:"influx_url" jsonschema:"description=URL of the InfluxDB 1.x server: http://HOST:8086,example=http://127.0.0.1:8086"`
	// Username for InfluxDB. Defaults to none.
	Username string `json:"username,omitempty" jsonschema:"description=InfluxDB user"`
	// Password goes with Username.
	Password job.SecretRef `json:"password,omitempty" jsonschema:"description=password of the InfluxDB user: secret://NAME"`
	// Database replaces the database that the messages name. Defaults to that of the
	// job, then to theirs.
	Database string `json:"database,omitempty" jsonschema:"description=database to write to instead of the job's or the one that messages name"`
	// Gzip is when writes are compressed. Defaults to that of the job.
	Gzip Gzip `json:"gzip,omitempty" jsonschema:"description=compress writes; defaults to gzip of the job,enum=auto,enum=always,enum=never"`
}

// Gzip says when writes are compressed.
type Gzip string

// The choices. GzipAuto compresses unless every address of the server is a
// loopback, private or link-local one; see [influx.Local].
const (
	GzipAuto   Gzip = "auto"
	GzipAlways Gzip = "always"
	GzipNever  Gzip = "never"
)

func (g Gzip) check() error {
	switch g {
	case "", GzipAuto, GzipAlways, GzipNever:
		return nil
	}
	return fmt.Errorf("gzip %q is not one of auto, always, never", string(g))
}

// maxMirrors bounds the mirrors of a job.
const maxMirrors = 8

// Validate reports everything that is wrong with the spec as a whole.
func (s *LiveInfluxSpec) Validate() error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if err := pipeline.CheckToken("location", s.Location); err != nil {
		problems = append(problems, err)
	}
	if s.OperationMode != "" {
		if err := s.OperationMode.Check(); err != nil {
			problems = append(problems, err)
		}
	}
	if s.InfluxURL == "" && len(s.Mirrors) == 0 {
		add("neither influx_url nor mirrors say where to write to")
	}
	if s.InfluxURL == "" && (s.Username != "" || s.Password != "") {
		add("username and password go with influx_url; a mirror has its own")
	}
	if len(s.Mirrors) > maxMirrors {
		add("%d mirrors are more than %d", len(s.Mirrors), maxMirrors)
	}
	if err := s.Gzip.check(); err != nil {
		problems = append(problems, err)
	}
	if s.Database != "" {
		if err := pipeline.CheckStoreName("database", s.Database); err != nil {
			problems = append(problems, err)
		}
	}
	for _, m := range s.Mirrors {
		if m.Database != "" {
			if err := pipeline.CheckStoreName("database", m.Database); err != nil {
				add("mirror %q: %w", m.Name, err)
			}
		}
	}
	seen := map[string]bool{}
	for i, m := range s.mirrors() {
		where := ""
		if i > 0 || s.InfluxURL == "" {
			where = fmt.Sprintf("mirror %q: ", m.Name)
			switch {
			case m.Name == pipeline.DefaultMirror:
				add("%sdefault is the name of the mirror at influx_url", where)
			case seen[m.Name]:
				add("%stwo have this name", where)
			}
			if err := pipeline.CheckToken("mirror", m.Name); err != nil {
				problems = append(problems, err)
			}
		}
		seen[m.Name] = true
		problems = append(problems, m.problems(where)...)
	}
	if s.BatchPoints != 0 && (s.BatchPoints < 1 || s.BatchPoints > 50_000) {
		add("batch_points %d is not from 1 to 50000", s.BatchPoints)
	}
	if s.BatchBytes != 0 && (s.BatchBytes < 1000 || s.BatchBytes > 20_000_000) {
		add("batch_bytes %d is not from 1000 to 20000000", s.BatchBytes)
	}
	if s.BatchAge > job.Duration(30*time.Second) {
		add("batch_age %s is longer than PT30S", s.BatchAge)
	}
	return errors.Join(problems...)
}

func (m InfluxMirror) problems(where string) []error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(where+format, args...)) }
	if err := influx.CheckURL(m.InfluxURL); err != nil {
		add("influx_url: %w", err)
	}
	if m.Password != "" && !strings.HasPrefix(string(m.Password), "secret://") {
		add("password is not of the form secret://NAME")
	}
	if (m.Password == "") != (m.Username == "") {
		add("username and password are given together or not at all")
	}
	if err := m.Gzip.check(); err != nil {
		add("%w", err)
	}
	return problems
}

// mirrors are all mirrors, that of the short form first.
func (s *LiveInfluxSpec) mirrors() []InfluxMirror {
	var mirrors []InfluxMirror
	if s.InfluxURL != "" {
		mirrors = append(mirrors, InfluxMirror{
			Name: pipeline.DefaultMirror, InfluxURL: s.InfluxURL, Username: s.Username, Password: s.Password,
		})
	}
	mirrors = append(mirrors, s.Mirrors...)
	for i := range mirrors {
		if mirrors[i].Database == "" {
			mirrors[i].Database = s.Database
		}
		if mirrors[i].Gzip == "" {
			mirrors[i].Gzip = s.Gzip
		}
	}
	return mirrors
}

func (s LiveInfluxSpec) withDefaults() LiveInfluxSpec {
	if s.OperationMode == "" {
		s.OperationMode = pipeline.OperationLive
	}
	if s.BatchPoints == 0 {
		s.BatchPoints = 10_000
	}
	if s.BatchBytes == 0 {
		s.BatchBytes = 2_000_000
	}
	if s.BatchAge == 0 {
		s.BatchAge = job.Duration(time.Second)
	}
	if s.IterationDuration == 0 {
		s.IterationDuration = job.Duration(time.Minute)
	}
	return s
}
