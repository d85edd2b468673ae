package extract

import (
	"cmp"
	"fmt"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// PrepareHoboSpec is the spec of PrepareHoboTimeFrame. Its names have the values
// of the extract's spec where the points are to be those of the extract.
type PrepareHoboSpec struct {
	Organization string `json:"organization" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" example:"demo" help:"slug of the organization whose raw messages are prepared"`
	Location     string `json:"location" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" example:"common1" help:"location that the points are stored with"`
	// OperationMode is bulk by default: the extract has published the points of what
	// it reads itself.
	OperationMode     pipeline.Operation `json:"operation_mode,omitempty" enum:"live,test,bulk" default:"bulk" help:"flow that is read and that the points take; live data needs no preparing, since its extract publishes the points too"`
	Database          string             `json:"database,omitempty" pattern:"^[^./\\\\][^/\\\\]*$" maxLength:"255" help:"InfluxDB database of the points; defaults to the name of the location"`
	Loggers           []HoboDestination  `json:"loggers,omitempty" help:"loggers whose points are stored otherwise; all others need no entry"`
	IterationDuration job.Duration       `json:"iteration_duration,omitzero" maximum:"PT12H" default:"PT1M" help:"how long an iteration works before it reports: shorter than run_timeout"`
}

// HoboDestination says where the points of a logger go; what it leaves out is as
// for all loggers.
type HoboDestination struct {
	Serial      string `json:"serial" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,31}$" example:"21234001" help:"serial number of the logger"`
	Location    string `json:"location,omitempty" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" help:"location instead of the spec's"`
	Database    string `json:"database,omitempty" pattern:"^[^./\\\\][^/\\\\]*$" maxLength:"255" help:"database instead of the spec's"`
	Measurement string `json:"measurement,omitempty" help:"InfluxDB measurement; defaults to station_STATION_source_TABLE"`
}

// Validate reports loggers that are listed twice or share a measurement.
func (s *PrepareHoboSpec) Validate() error {
	serials := map[string]bool{}
	taken := map[Destination]string{}
	for _, logger := range s.Loggers {
		if serials[logger.Serial] {
			return fmt.Errorf("loggers: logger %s is listed twice", logger.Serial)
		}
		serials[logger.Serial] = true
		if logger.Measurement == "" {
			continue
		}
		to := s.destination(logger, pipeline.Context{})
		if other, found := taken[to]; found {
			return fmt.Errorf("loggers: loggers %s and %s have the same measurement %s", other, logger.Serial, to.Measurement)
		}
		taken[to] = logger.Serial
	}
	return nil
}

// destination is where the points of a logger go.
func (s *PrepareHoboSpec) destination(logger HoboDestination, context pipeline.Context) Destination {
	location := cmp.Or(logger.Location, s.Location)
	return Destination{
		Operation: s.OperationMode, Location: location,
		Database:    cmp.Or(logger.Database, context.StorageDatabase, s.Database, location),
		Measurement: cmp.Or(logger.Measurement, context.StorageTable, hoboMeasurement(context.Station, context.Table)),
	}
}
