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
	// InfluxURL is the server that they are written to.
	InfluxURL string `json:"influx_url" jsonschema:"description=URL of the InfluxDB 1.x server: http://HOST:8086,example=http://127.0.0.1:8086"`
	// Username for InfluxDB. Defaults to none.
	Username string `json:"username,omitempty" jsonschema:"description=InfluxDB user"`
	// Password goes with Username.
	Password job.SecretRef `json:"password,omitempty" jsonschema:"description=password of the InfluxDB user: secret://NAME"`
	// Database replaces the database that the messages name. Defaults to theirs.
	Database string `json:"database,omitempty" jsonschema:"description=database to write to instead of the one that messages name"`
	// OperationMode is the flow that is loaded. Defaults to live.
	OperationMode pipeline.Operation `json:"operation_mode,omitempty" jsonschema:"description=flow that is loaded,enum=live,enum=test,enum=bulk,default=live"`
	// BatchPoints is the most points in one write. Defaults to 5,000.
	BatchPoints int `json:"batch_points,omitempty" jsonschema:"description=most points in one write,minimum=1,maximum=50000,default=5000"`
	// BatchBytes is the most bytes in one write. Defaults to 1 MB.
	BatchBytes int `json:"batch_bytes,omitempty" jsonschema:"description=most bytes in one write,minimum=1000,maximum=20000000,default=1000000"`
	// BatchAge is how long a write waits for more points. Defaults to 1 s.
	BatchAge job.Duration `json:"batch_age,omitzero" jsonschema:"description=how long a write waits for more points: at most PT30S,default=PT1S"`
	// Lap is how long an iteration works before it reports. Defaults to a minute.
	Lap job.Duration `json:"lap,omitzero" jsonschema:"description=how long an iteration works before it reports,default=PT1M"`
}

// Validate reports everything that is wrong with the spec as a whole.
func (s *LiveInfluxSpec) Validate() error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if err := pipeline.CheckToken("location", s.Location); err != nil {
		problems = append(problems, err)
	}
	if err := influx.CheckURL(s.InfluxURL); err != nil {
		add("influx_url: %w", err)
	}
	if s.OperationMode != "" {
		if err := s.OperationMode.Check(); err != nil {
			problems = append(problems, err)
		}
	}
	if s.Password != "" && !strings.HasPrefix(string(s.Password), "secret://") {
		add("password is not of the form secret://NAME")
	}
	if (s.Password == "") != (s.Username == "") {
		add("username and password are given together or not at all")
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

func (s LiveInfluxSpec) withDefaults() LiveInfluxSpec {
	if s.OperationMode == "" {
		s.OperationMode = pipeline.OperationLive
	}
	if s.BatchPoints == 0 {
		s.BatchPoints = 5000
	}
	if s.BatchBytes == 0 {
		s.BatchBytes = 1_000_000
	}
	if s.BatchAge == 0 {
		s.BatchAge = job.Duration(time.Second)
	}
	if s.Lap == 0 {
		s.Lap = job.Duration(time.Minute)
	}
	return s
}

// ConsumerName is the durable consumer that loads a location: load-<operation>-<location>.
// The operation is part of it, so that the flows of a location have positions of
// their own.
func ConsumerName(operation pipeline.Operation, location string) string {
	return "load-" + string(operation) + "-" + location
}
