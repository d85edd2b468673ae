package hobo

import (
	"bytes"
	"regexp"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
)

// headerLines is within how many lines the line with the names of the columns is.
const headerLines = 10

var (
	// timeHeading is the heading of a column of times: "Date Time, GMT-07:00", "Time,
	// GMT-07:00", "Date Time - GMT -0700", "Date".
	timeHeading = regexp.MustCompile(`^(Date Time|Date|Time)(?:\s*[,(-]?\s*(?:GMT|UTC)\s*([+-]\d{2}):?(\d{2})\)?)?$`)
	// numberHeading is that of the column that counts lines.
	numberHeading = regexp.MustCompile(`^(#|Line ?#?|)$`)
	loggerSerial  = regexp.MustCompile(`LGR S/N: ?([A-Za-z0-9-]+)|\)  ?#([0-9]{5,})$`)
	sensorSerial  = regexp.MustCompile(`SEN S/N: ?([A-Za-z0-9-]+)`)
	// hobolinkDevice is the part of a HOBOlink heading with model, logger and sensor:
	// "(S-THB 10564073:10518723-1)".
	hobolinkDevice = regexp.MustCompile(`\(([^()]*) ([0-9]+):([0-9]+-[A-Za-z0-9]+)\)`)
	// classicUnit is the unit in a heading without commas: "Temp (°C)".
	classicUnit = regexp.MustCompile(`^(.*?)\s*\(([^()]*)\)`)
)

// layout says where the cells of a line are.
type layout struct {
	delimiter byte
	times     []int // places of the columns that make a time: one, or date and time
	number    int   // place of the count of lines, -1 for none
	values    []int // places of the columns
	zone      *time.Location
	table     loggerfiles.Table
}

// layoutOf reads a line with headings. It reports false for another line.
func layoutOf(line []byte) (l layout, ok bool) {
	var headings []string
	for _, delimiter := range []byte{',', ';', '\t'} {
		cells, wrong := loggerfiles.Split(line, delimiter, nil)
		if wrong == "" && len(cells) > len(headings) {
			headings, l.delimiter = cells, delimiter
		}
	}
	l.table.Format = format
	l.number = -1
	for i, heading := range headings {
		heading = strings.TrimSpace(heading)
		match := timeHeading.FindStringSubmatch(heading)
		switch {
		case match != nil && len(l.times) < 2:
			l.times = append(l.times, i)
			if match[2] != "" {
				l.zone = zoneOf(match[2], match[3])
			}
		case i == 0 && numberHeading.MatchString(heading):
			l.number = i
		default:
			l.values = append(l.values, i)
			l.table.Columns = append(l.table.Columns, l.columnOf(heading))
		}
	}
	return l, len(l.times) > 0 && len(l.values) > 0
}

// zoneOf makes the zone of hours, with a sign, and minutes.
func zoneOf(hours, minutes string) *time.Location {
	digits := func(text string) int { return int(text[0]-'0')*10 + int(text[1]-'0') }
	seconds := digits(hours[1:])*3600 + digits(minutes)*60
	if hours[0] == '-' {
		seconds = -seconds
	}
	return time.FixedZone("", seconds)
}

// columnOf reads a heading. The name of a column is what is measured, with the serial
// number of the sensor if the heading has it.
func (l *layout) columnOf(heading string) loggerfiles.Column {
	var sensor, what string
	if match := hobolinkDevice.FindStringSubmatchIndex(heading); match != nil {
		l.table.Name = heading[match[4]:match[5]]
		sensor = heading[match[6]:match[7]]
		what = strings.TrimSpace(heading[:match[0]]) + heading[match[1]:]
	} else {
		if match := loggerSerial.FindStringSubmatch(heading); match != nil {
			l.table.Name = match[1] + match[2]
		}
		if match := sensorSerial.FindStringSubmatch(heading); match != nil {
			sensor = match[1]
		}
		what, _, _ = strings.Cut(heading, "(LGR S/N")
	}
	column := loggerfiles.Column{}
	parts := strings.SplitN(what, ",", 3)
	column.Name = strings.TrimSpace(parts[0])
	if len(parts) > 1 {
		column.Units = strings.TrimSpace(parts[1])
	} else if match := classicUnit.FindStringSubmatch(what); match != nil {
		column.Name, column.Units = match[1], match[2]
	}
	if sensor != "" {
		column.Name += "_" + sensor
	}
	return column
}

// isTitle reports whether a line is before the headings of the columns: a title.
func isTitle(line []byte) bool { return bytes.Contains(line, []byte("Plot Title")) }
