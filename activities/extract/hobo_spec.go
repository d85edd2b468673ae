package extract

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// HoboTimeFrameSpec is the spec of ExtractHoboTimeFrame.
type HoboTimeFrameSpec struct {
	Token         job.SecretRef      `json:"token" example:"secret://hobolink-demo" help:"API token of the LI-COR Cloud account: secret://NAME"`
	Organization  string             `json:"organization" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" example:"demo" help:"slug of the organization that owns the data"`
	Location      string             `json:"location" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" example:"common1" help:"location that the points are stored with"`
	Loggers       []HoboLogger       `json:"loggers" minItems:"1" maxItems:"200" help:"loggers to read, one after the other"`
	BaseURL       string             `json:"base_url,omitempty" format:"dendra-url" default:"https://api.licor.cloud" help:"URL of the LI-COR Cloud API"`
	OperationMode pipeline.Operation `json:"operation_mode,omitempty" enum:"live,test,bulk" default:"live" help:"flow that the data takes"`
	Database      string             `json:"database,omitempty" pattern:"^[^./\\\\][^/\\\\]*$" maxLength:"255" help:"InfluxDB database of the points; defaults to the name of the location"`
	Start         time.Time          `json:"start,omitzero" help:"time from which a logger that was never read is read; not together with backfill"`
	Backfill      job.Duration       `json:"backfill,omitzero" help:"how far back a logger that was never read is read; P30D without start"`
	// Increment is the length of a window: one request, if the vendor can answer it.
	Increment job.Duration `json:"increment,omitzero" minimum:"PT1H" maximum:"P366D" default:"P30D" help:"length of the windows that a time frame is read in: whole hours"`
	// Overlap makes up for loggers that deliver late.
	Overlap    job.Duration `json:"overlap,omitzero" maximum:"P366D" default:"P30D" help:"how much of the past every run reads again since loggers deliver late"`
	MaxWindows int          `json:"max_windows,omitempty" minimum:"1" default:"500" help:"most windows of a logger in one run"`
}

// HoboLogger is a logger and the names its data goes by.
type HoboLogger struct {
	Serial  string `json:"serial" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,31}$" example:"21234001" help:"serial number of the logger"`
	Station string `json:"station" minLength:"1" example:"Ridge" help:"name of the station that the logger stands at"`
	Table   string `json:"table,omitempty" help:"name of the data within the station; defaults to the serial number"`
	// Measurement has safe names in lower case if it is left out.
	Measurement string `json:"measurement,omitempty" help:"InfluxDB measurement; defaults to station_STATION_source_TABLE"`
}

// defaultHoboBackfill is how far back a logger that was never read is read if
// neither start nor backfill is given.
const defaultHoboBackfill = job.Duration(30 * 24 * time.Hour)

// Validate reports an increment of parts of an hour, loggers that are listed twice, and
// keys that do not go together.
func (s *HoboTimeFrameSpec) Validate() error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if !s.Start.IsZero() && s.Backfill != 0 {
		add("start and backfill are both set: give one")
	}
	if s.Increment%job.Duration(time.Hour) != 0 {
		add("increment %s is not of whole hours", s.Increment)
	}
	problems = append(problems, s.checkLoggers())
	return errors.Join(problems...)
}

func (s *HoboTimeFrameSpec) checkLoggers() error {
	serials := map[string]bool{}
	measurements := map[string]string{}
	for _, logger := range s.Loggers {
		if serials[logger.Serial] {
			return fmt.Errorf("loggers: logger %s is listed twice", logger.Serial)
		}
		serials[logger.Serial] = true
		measurement := logger.named().Measurement
		if other, taken := measurements[measurement]; taken {
			return fmt.Errorf("loggers: loggers %s and %s have the same measurement %s", other, logger.Serial, measurement)
		}
		measurements[measurement] = logger.Serial
	}
	return nil
}

// named fills in what follows from other keys of the spec.
func (s HoboTimeFrameSpec) named() HoboTimeFrameSpec {
	s.Database = cmp.Or(s.Database, s.Location)
	s.Backfill = cmp.Or(s.Backfill, defaultHoboBackfill)
	loggers := make([]HoboLogger, len(s.Loggers))
	for i, logger := range s.Loggers {
		loggers[i] = logger.named()
	}
	s.Loggers = loggers
	return s
}

// named fills in the names that follow from others.
func (l HoboLogger) named() HoboLogger {
	l.Table = cmp.Or(l.Table, l.Serial)
	l.Measurement = cmp.Or(l.Measurement, hoboMeasurement(l.Station, l.Table))
	return l
}

// hoboMeasurement is the measurement of a logger that is given none.
func hoboMeasurement(station, table string) string {
	safe := func(name string) string { return strings.ToLower(pipeline.SafeName(name)) }
	return "station_" + safe(station) + "_source_" + safe(table)
}
