package orchestrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// checkStation says why the points of a registration cannot go by the slug of its station,
// nil if they can. Config is the one that it is of, others are those whose jobs it may be
// part of.
func (w *work) checkStation(r *Registration, config Config, others ...Config) *Problem {
	var station *platformv1.Station
	for _, s := range w.in.Stations[r.GetStationId()] {
		if r.GetStationId() == s.GetId() {
			station = s
		}
	}
	if problem := checkNames(r, station); problem != nil {
		return problem
	}
	if station == nil {
		return nil
	}
	for _, other := range w.in.Stations[station.GetId()] {
		if other.GetId() != station.GetId() && takes(other, station, config, others) {
			return &Problem{ReasonSlugTaken, fmt.Sprintf(
				"measurements of station %s (%s) would have the names of those of station %s (%s of organization %s) in the same database: give it another slug",
				station.GetSlug(), station.GetId(), other.GetSlug(), other.GetId(), other.GetOrganizationId())}
		}
	}
	return nil
}

// checkNames says which name in the lists of a spec is not that of the config's station:
// points go by it.
func checkNames(r *Registration, station *platformv1.Station) *Problem {
	for _, key := range slices.Sorted(maps.Keys(r.GetSpec().GetFields())) {
		for _, element := range r.GetSpec().GetFields()[key].GetListValue().GetValues() {
			name := element.GetStructValue().GetFields()["station"].GetStringValue()
			switch {
			case name == "":
			case station != nil && name != station.GetSlug():
				return &Problem{ReasonInvalid, fmt.Sprintf("%s: %s name station %s, and the slug of the config's station is %s: points go by the slug, ${station_slug}",
					r.GetJobType(), key, name, station.GetSlug())}
			case r.GetStationId() == "" && key != "rules": // which read nothing
				return &Problem{ReasonInvalid, fmt.Sprintf("%s: %s name station %s, and the config belongs to no station of the platform: its type needs the scope of a station",
					r.GetJobType(), key, name)}
			}
		}
	}
	return nil
}

// takes reports whether the measurements of a station have names that are another's already: of
// two in one database the one that was there first has them. One whose record names
// another database than its points go to has none.
func takes(other, station *platformv1.Station, config Config, others []Config) bool {
	database := ""
	for _, c := range append([]Config{config}, others...) {
		for _, r := range c.Registrations {
			names := measurementsOf(r.GetSpec(), c.ID == config.ID)
			if slices.ContainsFunc(names, func(name string) bool { return differ(name, station, other) }) {
				return false
			}
			database = cmp.Or(database, databaseOf(r.GetSpec()))
		}
	}
	of := func(s *platformv1.Station) string { return cmp.Or(s.GetDatabase(), database) }
	switch {
	case of(other) == "" || of(other) != of(station) && of(other) != database:
		return false
	case database != "" && of(station) != database:
		return true
	}
	first := cmp.Or(
		other.GetModification().GetCreateTime().AsTime().Compare(station.GetModification().GetCreateTime().AsTime()),
		cmp.Compare(other.GetId(), station.GetId()))
	return first < 0
}

// databaseOf is where a spec has points stored, "" if it does not say so.
func databaseOf(spec *structpb.Struct) string {
	database := spec.GetFields()["database"].GetStringValue()
	if strings.Contains(database, "{") {
		database = ""
	}
	return cmp.Or(database, spec.GetFields()["location"].GetStringValue())
}

// measurementsOf are the names that a spec has for measurements, and those in its lists if
// they are wanted too.
func measurementsOf(spec *structpb.Struct, lists bool) []string {
	names := []string{spec.GetFields()["measurement"].GetStringValue()}
	for _, value := range spec.GetFields() {
		for _, element := range value.GetListValue().GetValues() {
			if lists {
				names = append(names, element.GetStructValue().GetFields()["measurement"].GetStringValue())
			}
		}
	}
	return names
}

// differ reports whether a name for measurements keeps two stations apart whose slugs do not.
func differ(name string, a, b *platformv1.Station) bool {
	return name != "" && !strings.Contains(name, "{station}") ||
		strings.Contains(name, "{organization}") && a.GetOrganizationId() != b.GetOrganizationId()
}

// stationIDs are those of the stations that configs belong to.
func stationIDs(configs ...Config) []string {
	ids := map[string]bool{}
	for _, c := range configs {
		for _, r := range c.Registrations {
			if r.GetStationId() != "" {
				ids[r.GetStationId()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}
