package imports

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/plaincsv"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// FileSpec is the spec of ImportFile.
type FileSpec struct {
	Bucket       string `json:"bucket,omitempty" minLength:"3" default:"uploads" help:"bucket of the uploaded file: one of the worker's upload buckets"`
	Key          string `json:"key" minLength:"1" pattern:"^[^\\x00\\r\\n]*$" example:"TenMin.dat" help:"key of the uploaded file"`
	ETag         string `json:"etag,omitempty" help:"ETag of the file, without quotes: a file that was written anew is not imported; defaults to the present one"`
	Organization string `json:"organization" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" example:"demo" help:"slug of the organization that owns the data"`
	Station      string `json:"station" pattern:"^[^-{}\\[\\]\"';\\\\$\\s][^{}\\[\\]\"';\\\\$\\s]*$" example:"angelo" help:"slug of the station: its points go by it"`
	Table        string `json:"table,omitempty" pattern:"^[^-{}\\[\\]\"';\\\\$\\s][^{}\\[\\]\"';\\\\$\\s]*$" help:"name of the table; defaults to the one that the file names, the serial number of a HOBO logger; required with csv"`
	TimeZone     string `json:"time_zone,omitempty" example:"-08:00" help:"zone of the file's clock: +HH:MM or -HH:MM, or a name such as Europe/Zurich; HOBOware writes its own into a file, which wins"`
	Folder       string `json:"folder,omitempty" help:"folder of a zip whose files are imported; defaults to all"`
	Encoding     string `json:"encoding,omitempty" enum:"utf-8,windows-1252,iso-8859-1,utf-16" default:"utf-8" help:"encoding of files of text"`
	DateOrder    string `json:"date_order,omitempty" enum:"mdy,dmy,ymd" default:"mdy" help:"order of day, month and year in HOBO files"`
	// CSV says that the file is plain CSV. Without it the file's first line tells its format.
	CSV        *CSV     `json:"csv,omitempty" help:"how to read plain CSV; without it the file is TOA5, TOB1, TOB3 or of HOBOware or HOBOlink, as its first line says"`
	Columns    []Column `json:"columns,omitempty" maxItems:"1000" help:"the columns to import, and their names; without it, all by their names in the file"`
	MaxRefused int64    `json:"max_refused,omitempty" minimum:"1" default:"1000" help:"most lines that may be refused before the run fails"`
	DryRun     bool     `json:"dry_run,omitempty" help:"tells what is in the file and how it differs from what is stored, and publishes nothing"`
}

// CSV is the mapping of a plain CSV file.
type CSV struct {
	Delimiter   string   `json:"delimiter,omitempty" enum:"comma,semicolon,tab,pipe" default:"comma" help:"what is between cells"`
	SkipLines   int      `json:"skip_lines,omitempty" minimum:"0" maximum:"1000" help:"lines, empty ones not counted, before the headings or the first record"`
	NoHeadings  bool     `json:"no_headings,omitempty" help:"no line names the columns: their names are 1, 2, 3 and so on"`
	Time        []string `json:"time" minItems:"1" maxItems:"8" help:"columns that make the time, joined by a space"`
	TimeFormat  string   `json:"time_format,omitempty" minLength:"2" default:"%Y-%m-%d %H:%M:%S" help:"as in strftime: %Y %y %m %d %j %b %H %I %p %M %S %z %s; seconds may have a fraction"`
	Missing     []string `json:"missing,omitempty" maxItems:"100" help:"texts that stand for no value: -9999"`
	DecimalSign string   `json:"decimal_sign,omitempty" enum:"point,comma" default:"point" help:"what is before the decimals of a number"`
}

// Column is a column to import.
type Column struct {
	Column string `json:"column" minLength:"1" help:"name of the column in the file"`
	Name   string `json:"name,omitempty" help:"name of the field instead"`
	Units  string `json:"units,omitempty" help:"units instead of the file's"`
	Type   string `json:"type,omitempty" enum:"number,string" help:"type of its values; without it, that of the file, or a number where the text is one"`
}

// Validate reports a time zone and a mapping that cannot be, and columns that are listed
// twice.
func (s *FileSpec) Validate() error {
	var problems []error
	zone, err := zoneOf(s.TimeZone)
	if err != nil {
		problems = append(problems, fmt.Errorf("time_zone: %w", err))
	}
	if s.CSV != nil {
		if err := plaincsv.CheckTime(s.CSV.TimeFormat, zone != nil); err != nil {
			problems = append(problems, fmt.Errorf("csv.time_format: %w", err))
		}
		if s.Table == "" {
			problems = append(problems, errors.New("table is missing: a plain CSV file names none"))
		}
	}
	for i, column := range s.Columns {
		if slices.ContainsFunc(s.Columns[:i], func(other Column) bool { return other.Column == column.Column }) {
			problems = append(problems, fmt.Errorf("columns.%d: column %q is listed twice", i, column.Column))
		}
	}
	return errors.Join(problems...)
}

// zoneOf is the zone of an offset or a name; nil of "".
func zoneOf(text string) (*time.Location, error) {
	offset := pipeline.UTCOffset(text)
	switch {
	case text == "":
		return nil, nil //nolint:nilnil // Documented: there is none.
	case offset.Check() == nil:
		return time.FixedZone(text, int(offset.Std()/time.Second)), nil
	case text == "Local":
		return nil, errors.New("Local is another zone on each worker")
	}
	zone, err := time.LoadLocation(text)
	if err != nil {
		return nil, fmt.Errorf("%q is neither an offset such as -08:00 nor the name of a zone such as Europe/Zurich", text)
	}
	return zone, nil
}
