package influx

import (
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Owners tells whose table a measurement of a database is.
type Owners struct {
	bySlug map[string][]*platformv1.Station // by safe slug
	only   *platformv1.Station              // whose record names the database, if no other station has it
}

// OwnersOf are the owners in a database that these stations have: all of the platform
// whose points may be in it, whatever their organization.
func OwnersOf(database string, stations []*platformv1.Station) Owners {
	o := Owners{bySlug: map[string][]*platformv1.Station{}}
	for _, s := range stations {
		slug := safeSlug(s)
		o.bySlug[slug] = append(o.bySlug[slug], s)
	}
	if len(stations) == 1 && stations[0].GetDatabase() == database {
		o.only = stations[0]
	}
	return o
}

func safeSlug(s *platformv1.Station) string { return strings.ToLower(pipeline.SafeName(s.GetSlug())) }

// SameSlug reports whether the measurements of two stations have the same names.
func SameSlug(a, b *platformv1.Station) bool { return safeSlug(a) == safeSlug(b) }

// Among are the owners in a database that has these measurements. If one of them cannot be
// explained, something else writes there: a measurement that names no station is then
// nobody's.
func (o Owners) Among(measurements []string) Owners {
	for _, name := range measurements {
		if named, _ := o.Named(name); len(named) == 0 && !isTable(name) {
			o.only = nil
		}
	}
	return o
}

// Parts of the names of measurements. Those of imported files have imported in the place
// of source.
const (
	stationPart = "station_"
	sourcePart  = "source_"
	importPart  = "imported_"
)

// maxSlug is what the platform takes.
const maxSlug = 64

// Table gives the station and the table of a measurement. The station is nil if it is not
// certain: if the measurement is that of none, or may be that of several.
//
//	station_ridge_source_tenmin     table tenmin of station ridge
//	station_ridge_imported_notes    its table imported_notes
//	source_tenmin, imported_notes   tables tenmin and imported_notes of the only station of its database
func (o Owners) Table(measurement string) (*platformv1.Station, string) {
	if isTable(measurement) {
		return o.only, strings.TrimPrefix(measurement, sourcePart)
	}
	if stations, table := o.Named(measurement); len(stations) == 1 {
		return stations[0], table
	}
	return nil, ""
}

// isTable reports whether a measurement has the name of a table, without a station.
func isTable(measurement string) bool {
	for _, part := range []string{sourcePart, importPart} {
		if table, ok := strings.CutPrefix(measurement, part); ok && table != "" {
			return true
		}
	}
	return false
}

// Named gives the stations that a measurement names, and its table: several if their
// slugs are the same as safe names, or if the name can be read in several ways, none if it
// names no station.
//
//	station_ridge_source_x_source_y   of stations ridge and ridge_source_x, if both are there
func (o Owners) Named(measurement string) (stations []*platformv1.Station, table string) {
	rest, named := strings.CutPrefix(measurement, stationPart)
	if !named {
		return nil, ""
	}
	for end := len(rest); ; {
		at := max(strings.LastIndex(rest[:end], "_"+sourcePart), strings.LastIndex(rest[:end], "_"+importPart))
		if at < 0 {
			return stations, table
		}
		end = at + 1 // What is before may end with this underscore.
		if at > maxSlug {
			continue
		}
		name := strings.TrimPrefix(rest[at+1:], sourcePart)
		if found := o.bySlug[strings.ToLower(rest[:at])]; found != nil && name != "" && name != importPart {
			stations, table = append(stations, found...), name
		}
	}
}
