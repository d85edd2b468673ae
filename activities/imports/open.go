package imports

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/hobo"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/plaincsv"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/toa5"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/tob"
)

// lookedAt is how much of a file tells its format.
const lookedAt = 16 << 10

var delimiters = map[string]byte{"comma": ',', "semicolon": ';', "tab": '\t', "pipe": '|'}

// open opens a file by its mapping, or by the format that its first line tells.
func (s *FileSpec) open(r io.Reader) (loggerfiles.Reader, error) {
	zone, err := zoneOf(s.TimeZone)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReaderSize(r, lookedAt)
	begin, err := buffered.Peek(lookedAt)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	// Binary files are no text, and have no encoding.
	switch begins := bytes.TrimPrefix(begin, []byte(`"`)); {
	case s.CSV != nil:
	case bytes.HasPrefix(begins, []byte("TOB1")), bytes.HasPrefix(begins, []byte("TOB3")):
		if zone == nil {
			return nil, noZone("tob")
		}
		return tob.Open(buffered, zone)
	}
	text, err := loggerfiles.Decode(buffered, s.Encoding)
	if err != nil {
		return nil, err
	}
	if s.CSV != nil {
		return plaincsv.Open(text, s.CSV.mapping(zone))
	}
	decoded := bufio.NewReaderSize(text, lookedAt)
	if begin, err = decoded.Peek(lookedAt); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	begin = bytes.TrimPrefix(begin, []byte("\ufeff"))
	switch {
	case bytes.HasPrefix(bytes.TrimPrefix(begin, []byte(`"`)), []byte("TOA5")):
		if zone == nil {
			return nil, noZone("toa5")
		}
		return toa5.Open(decoded, zone)
	case hobo.Looks(begin):
		return hobo.Open(decoded, zone, s.DateOrder)
	}
	first, _, _ := bytes.Cut(begin, []byte("\n"))
	return nil, loggerfiles.BadFormat("logger", "its first line is neither that of TOA5, TOB1, TOB3 nor of a HOBO export, and the spec has no csv: %.60q", first)
}

func noZone(format string) error {
	return loggerfiles.BadFormat(format, "its clock has no zone: the spec has to name time_zone")
}

func (c *CSV) mapping(zone *time.Location) plaincsv.Mapping {
	return plaincsv.Mapping{
		Delimiter: delimiters[c.Delimiter], Skip: c.SkipLines, Headings: !c.NoHeadings, Time: c.Time, TimeFormat: c.TimeFormat,
		Zone: zone, Missing: c.Missing, DecimalComma: c.DecimalSign == "comma",
	}
}
