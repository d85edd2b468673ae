package location

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

// OwnersOf are the owners in a database of these stations.
func OwnersOf(database string, stations []*platformv1.Station) Owners {
	o := Owners{bySlug: map[string][]*platformv1.Station{}}
	for _, s := range stations {
		slug := strings.ToLower(pipeline.SafeName(s.GetSlug()))
		o.bySlug[slug] = append(o.bySlug[slug], s)
	}
	if len(stations) == 1 && stations[0].GetDatabase() == database {
		o.only = stations[0]
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

// Table gives the station and the table of a measurement. The station is nil if it is
// that of none, or of several with the same safe slug.
//
//	station_ridge_source_tenmin     table tenmin of station ridge
//	station_ridge_imported_notes    its table imported_notes
//	source_tenmin, tenmin           table tenmin of the only station of its database
func (o Owners) Table(measurement string) (*platformv1.Station, string) {
	if !strings.HasPrefix(measurement, stationPart) {
		return o.only, strings.TrimPrefix(measurement, sourcePart)
	}
	if stations, table := o.Named(measurement); len(stations) == 1 {
		return stations[0], table
	}
	return nil, ""
}

// Named gives the stations that a measurement names, and its table: several if their
// slugs are the same as safe names, none if it names no station.
func (o Owners) Named(measurement string) (stations []*platformv1.Station, table string) {
	rest, named := strings.CutPrefix(measurement, stationPart)
	if !named {
		return nil, ""
	}
	// A slug may hold the words that follow it: the longest that is one counts.
	for end := len(rest); ; {
		at := max(strings.LastIndex(rest[:end], "_"+sourcePart), strings.LastIndex(rest[:end], "_"+importPart))
		if at < 0 {
			return nil, ""
		}
		end = at + 1 // What is before may end with this underscore.
		if at > maxSlug {
			continue
		}
		table := strings.TrimPrefix(rest[at+1:], sourcePart)
		if found := o.bySlug[strings.ToLower(rest[:at])]; found != nil && table != "" && table != importPart {
			return found, table
		}
	}
}
