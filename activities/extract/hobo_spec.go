package extract

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/hobolink"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// HoboTimeFrameSpec is the spec of ExtractHoboTimeFrame.
type HoboTimeFrameSpec struct {
	// Token is the API token of the LI-COR Cloud account.
	Token job.SecretRef `json:"token" jsonschema:"description=API token of the LI-COR Cloud account: secret://NAME,example=secret://hobolink-demo"`
	// Organization is the slug of the organization that owns the data.
	Organization string `json:"organization" jsonschema:"description=slug of the organization that owns the data,example=demo"`
	// Location is the group of stations whose loader stores the points.
	Location string `json:"location" jsonschema:"description=location that the points are stored with: its live_load_influx_v1 job loads them,example=common1"`
	// Loggers are read one after the other.
	Loggers []HoboLogger `json:"loggers" jsonschema:"description=loggers to read,minItems=1"`
	// BaseURL is the server. Defaults to https://api.licor.cloud.
	BaseURL string `json:"base_url,omitempty" jsonschema:"description=URL of the LI-COR Cloud API,default=https://api.licor.cloud"`
	// OperationMode keeps live data and tests apart. Defaults to live.
	OperationMode pipeline.Operation `json:"operation_mode,omitempty" jsonschema:"description=flow that the data takes,enum=live,enum=test,enum=bulk,default=live"`
	// Database is the InfluxDB database of the points. Defaults to the location's name.
	Database string `json:"database,omitempty" jsonschema:"description=InfluxDB database of the points; defaults to the name of the location"`
	// Start is where a logger without a bookmark begins. Not together with Backfill.
	Start time.Time `json:"start,omitzero" jsonschema:"description=time from which a logger that was never read is read; not together with backfill"`
	// Backfill is how far before now a logger without a bookmark begins. Defaults
	// to 30 days.
	Backfill job.Duration `json:"backfill,omitzero" jsonschema:"description=how far back a logger that was never read is read,default=P30D"`
	// Increment is the length of a window: one request, if the vendor can answer it.
	// Defaults to 30 days; whole hours from one hour to 366 days.
	Increment job.Duration `json:"increment,omitzero" jsonschema:"description=length of the windows that a time frame is read in: whole hours from PT1H to P366D,default=P30D"`
	// Overlap is how far before now a run reads again what it has read before, since
	// loggers deliver late. Defaults to 30 days; at most 366 days.
	Overlap job.Duration `json:"reread,omitzero" jsonschema:"description=how much of the past every run reads again since loggers deliver late: at most P366D,default=P30D"`
	// MaxWindows bounds the windows of a logger in one run. Defaults to 500.
	MaxWindows int `json:"max_windows,omitempty" jsonschema:"description=most windows of a logger in one run,minimum=1,default=500"`
}

// HoboLogger is a logger and the names its data goes by.
type HoboLogger struct {
	// Serial is the logger's serial number.
	Serial string `json:"serial" jsonschema:"description=serial number of the logger,example=21234001"`
	// Station names the station that the logger stands at.
	Station string `json:"station" jsonschema:"description=name of the station that the logger stands at,example=Ridge"`
	// Table names the logger's data within the station. Defaults to the serial number.
	Table string `json:"table,omitempty" jsonschema:"description=name of the data within the station; defaults to the serial number"`
	// Measurement is the InfluxDB measurement. Defaults to
	// station_<station>_source_<table>, both as safe names in lower case.
	Measurement string `json:"measurement,omitempty" jsonschema:"description=InfluxDB measurement; defaults to station_STATION_source_TABLE"`
}

const (
	maxSpan    = job.Duration(366 * 24 * time.Hour)
	maxLoggers = 200
)

var serialPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,31}$`)

// Validate reports everything that is wrong with the spec as a whole.
func (s *HoboTimeFrameSpec) Validate() error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
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
	if !strings.HasPrefix(string(s.Token), "secret://") {
		add("token is not of the form secret://NAME")
	}
	if s.Database != "" {
		check(pipeline.CheckStoreName("database", s.Database))
	}
	if s.BaseURL != "" {
		if base, err := url.Parse(s.BaseURL); err != nil || base.Host == "" || base.User != nil {
			add("base_url is not of the form https://HOST")
		}
	}
	if !s.Start.IsZero() && s.Backfill != 0 {
		add("start and backfill are both set: give one")
	}
	if s.Increment != 0 && (s.Increment < job.Duration(time.Hour) || s.Increment > maxSpan || s.Increment%job.Duration(time.Hour) != 0) {
		add("increment %s is not of whole hours from PT1H to P366D", s.Increment)
	}
	if s.Overlap > maxSpan {
		add("reread %s is longer than P366D", s.Overlap)
	}
	if s.MaxWindows < 0 {
		add("max_windows %d is negative", s.MaxWindows)
	}
	check(s.checkLoggers())
	return errors.Join(problems...)
}

func (s *HoboTimeFrameSpec) checkLoggers() error {
	if len(s.Loggers) == 0 || len(s.Loggers) > maxLoggers {
		return fmt.Errorf("loggers: %d of them, not 1 to %d", len(s.Loggers), maxLoggers)
	}
	serials := map[string]bool{}
	measurements := map[string]string{}
	for _, logger := range s.Loggers {
		if !serialPattern.MatchString(logger.Serial) {
			return fmt.Errorf("loggers: %q is not a serial number of letters, digits and '-'", logger.Serial)
		}
		if logger.Station == "" {
			return fmt.Errorf("loggers: logger %s has no station", logger.Serial)
		}
		if serials[logger.Serial] {
			return fmt.Errorf("loggers: logger %s is listed twice", logger.Serial)
		}
		serials[logger.Serial] = true
		measurement := logger.withDefaults().Measurement
		if other, taken := measurements[measurement]; taken {
			return fmt.Errorf("loggers: loggers %s and %s have the same measurement %s", other, logger.Serial, measurement)
		}
		measurements[measurement] = logger.Serial
	}
	return nil
}

func (s HoboTimeFrameSpec) withDefaults() HoboTimeFrameSpec {
	const month = job.Duration(30 * 24 * time.Hour)
	if s.BaseURL == "" {
		s.BaseURL = hobolink.DefaultBaseURL
	}
	if s.OperationMode == "" {
		s.OperationMode = pipeline.OperationLive
	}
	if s.Database == "" {
		s.Database = s.Location
	}
	if s.Backfill == 0 {
		s.Backfill = month
	}
	if s.Increment == 0 {
		s.Increment = month
	}
	if s.Overlap == 0 {
		s.Overlap = month
	}
	if s.MaxWindows == 0 {
		s.MaxWindows = 500
	}
	loggers := make([]HoboLogger, len(s.Loggers))
	for i, logger := range s.Loggers {
		loggers[i] = logger.withDefaults()
	}
	s.Loggers = loggers
	return s
}

func (l HoboLogger) withDefaults() HoboLogger {
	if l.Table == "" {
		l.Table = l.Serial
	}
	if l.Measurement == "" {
		l.Measurement = hoboMeasurement(l.Station, l.Table)
	}
	return l
}

// hoboMeasurement is the measurement of a logger that is given none.
func hoboMeasurement(station, table string) string {
	safe := func(name string) string { return strings.ToLower(pipeline.SafeName(name)) }
	return "station_" + safe(station) + "_source_" + safe(table)
}
