package extract

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// PrepareHoboSpec is the spec of PrepareHoboTimeFrame. Its names have the values
// of the extract's spec where the points are to be those of the extract.
type PrepareHoboSpec struct {
	// Organization is the slug of the organization whose raw messages are prepared.
	Organization string `json:"organization" jsonschema:"example=demo" jsonschema_description:"slug of the organization whose raw messages are prepared"`
	// Location is the group of stations whose loader stores the points.
	Location string `json:"location" jsonschema:"example=common1" jsonschema_description:"location that the points are stored with: its live_load_influx_v1 job loads them"`
	// OperationMode is the flow that is read and that the points take. Defaults to
	// bulk: the extract has published the points of what it reads itself.
	OperationMode pipeline.Operation `json:"operation_mode,omitempty" jsonschema:"enum=live,enum=test,enum=bulk,default=bulk" jsonschema_description:"flow that is read and that the points take; live data needs no preparing, since its extract publishes the points too"`
	// Database is the InfluxDB database of the points. Defaults to the location's name.
	Database string `json:"database,omitempty" jsonschema_description:"InfluxDB database of the points; defaults to the name of the location"`
	// Loggers lists the loggers whose points go elsewhere than the spec says.
	Loggers []HoboDestination `json:"loggers,omitempty" jsonschema_description:"loggers whose points are stored otherwise; all others need no entry"`
	// IterationDuration is how long an iteration works before it reports. Defaults to a minute.
	IterationDuration job.Duration `json:"iteration_duration,omitzero" jsonschema:"default=PT1M" jsonschema_description:"how long an iteration works before it reports: at most PT12H, and shorter than run_timeout"`
}

// HoboDestination says where the points of a logger go; what it leaves out is as
// for all loggers.
type HoboDestination struct {
	Serial      string `json:"serial" jsonschema:"example=21234001" jsonschema_description:"serial number of the logger"`
	Location    string `json:"location,omitempty" jsonschema_description:"location instead of the spec's"`
	Database    string `json:"database,omitempty" jsonschema_description:"database instead of the spec's"`
	Measurement string `json:"measurement,omitempty" jsonschema_description:"InfluxDB measurement; defaults to station_STATION_source_TABLE"`
}

// Validate reports everything that is wrong with the spec as a whole.
func (s *PrepareHoboSpec) Validate() error {
	var problems []error
	check := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	check(pipeline.CheckToken("organization", s.Organization))
	check(pipeline.CheckToken("location", s.Location))
	if s.OperationMode != "" {
		check(s.OperationMode.Check())
	}
	if s.Database != "" {
		check(pipeline.CheckStoreName("database", s.Database))
	}
	check(s.checkLoggers())
	if s.IterationDuration > maxIterationDuration {
		check(fmt.Errorf("iteration_duration %s is longer than %s", s.IterationDuration, maxIterationDuration))
	}
	return errors.Join(problems...)
}

func (s *PrepareHoboSpec) checkLoggers() error {
	serials := map[string]bool{}
	taken := map[destination]string{}
	for _, logger := range s.Loggers {
		if !serialPattern.MatchString(logger.Serial) {
			return fmt.Errorf("loggers: %q is not a serial number of letters, digits and '-'", logger.Serial)
		}
		if serials[logger.Serial] {
			return fmt.Errorf("loggers: logger %s is listed twice", logger.Serial)
		}
		serials[logger.Serial] = true
		if logger.Location != "" {
			if err := pipeline.CheckToken("location", logger.Location); err != nil {
				return fmt.Errorf("loggers: logger %s: %w", logger.Serial, err)
			}
		}
		if logger.Database != "" {
			if err := pipeline.CheckStoreName("database", logger.Database); err != nil {
				return fmt.Errorf("loggers: logger %s: %w", logger.Serial, err)
			}
		}
		if logger.Measurement == "" {
			continue
		}
		to := s.destination(logger, pipeline.Context{})
		if other, found := taken[to]; found {
			return fmt.Errorf("loggers: loggers %s and %s have the same measurement %s", other, logger.Serial, to.measurement)
		}
		taken[to] = logger.Serial
	}
	return nil
}

// destination is where the points of a logger go.
func (s *PrepareHoboSpec) destination(logger HoboDestination, context pipeline.Context) destination {
	location := cmp.Or(logger.Location, s.Location)
	return destination{
		operation: s.OperationMode, location: location,
		database:    cmp.Or(logger.Database, s.Database, location),
		measurement: cmp.Or(logger.Measurement, hoboMeasurement(context.Station, context.Table)),
	}
}

func (s PrepareHoboSpec) withDefaults() PrepareHoboSpec {
	if s.OperationMode == "" {
		s.OperationMode = pipeline.OperationBulk
	}
	if s.IterationDuration == 0 {
		s.IterationDuration = job.Duration(time.Minute)
	}
	return s
}
