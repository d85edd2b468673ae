package exports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Series is a measurement that is exported.
type Series struct {
	Database    string   `json:"database"`
	Measurement string   `json:"measurement"`
	Station     Station  `json:"station"`
	Table       string   `json:"table"`
	Columns     []Column `json:"columns"`
}

// Station is whose measurement it is.
type Station struct {
	ID        string   `json:"id"`
	Slug      string   `json:"slug"`
	Name      string   `json:"name"`
	Longitude *float64 `json:"longitude,omitempty"`
	Latitude  *float64 `json:"latitude,omitempty"`
	Altitude  *float64 `json:"altitude,omitempty"` // meters above sea level
}

// Column is a field, or an aggregate of it.
type Column struct {
	Field string           `json:"field"`
	Type  influx.FieldType `json:"type"` // of its values in the files
	Units string           `json:"units,omitempty"`
}

// question is what a run exports: the spec, and what platform and server have of it.
type question struct {
	organization *platformv1.Organization
	mirror       influx.Mirror
	config       influx.Config
	series       []Series
	notes        []string
}

// asker makes a question of a spec.
type asker struct {
	Clients
	run  job.Run
	spec Spec

	all []*platformv1.Station // of the platform
	question
}

func (a *asker) ask(ctx context.Context) (_ question, err error) {
	if a.mirror, err = a.Places.MirrorToRead(a.spec.Location, a.spec.Mirror); err != nil {
		return a.question, err
	}
	if a.config, err = a.mirror.Reach(a.run); err != nil {
		return a.question, err
	}
	if err := a.findOrganization(ctx); err != nil {
		return a.question, err
	}
	if a.all, err = a.Platform.Stations(ctx); err != nil {
		return a.question, err
	}
	byDatabase := map[string][]*platformv1.Station{}
	for _, slug := range a.spec.Stations {
		station, err := a.station(slug)
		if err != nil {
			return a.question, err
		}
		database := cmp.Or(a.spec.Database, a.mirror.Database, station.GetDatabase(), a.spec.Location)
		byDatabase[database] = append(byDatabase[database], station)
	}
	for _, database := range slices.Sorted(maps.Keys(byDatabase)) {
		err := a.database(ctx, database, byDatabase[database])
		if errors.Is(err, influx.ErrNoDatabase) {
			return a.question, job.Fail(errclass.ExportRefused, "mirror %s of location %s has no database %s", a.mirror.Name, a.spec.Location, database)
		}
		if err != nil {
			return a.question, a.mirror.Explain(a.spec.Location, err)
		}
	}
	return a.question, a.complete()
}

func (a *asker) findOrganization(ctx context.Context) error {
	var found []*platformv1.Organization
	err := platform.Pages(func(token string) (string, error) {
		page, err := a.Platform.Organizations.ListOrganizations(ctx, &platformv1.ListOrganizationsRequest{PageSize: 200, PageToken: token})
		for _, o := range page.GetOrganizations() {
			if o.GetSlug() == a.spec.Organization {
				found = append(found, o)
			}
		}
		return page.GetNextPageToken(), err
	})
	switch {
	case err != nil:
		return platform.Explain(err)
	case len(found) == 0:
		return job.Fail(errclass.ExportRefused, "organization %s is not on the platform, or is deleted", a.spec.Organization)
	case len(found) > 1:
		return job.Fail(errclass.ExportRefused, "%d organizations have the slug %s", len(found), a.spec.Organization)
	}
	a.organization = found[0]
	return nil
}

// station is a station of the organization.
func (a *asker) station(slug string) (*platformv1.Station, error) {
	var found *platformv1.Station
	for _, s := range a.all {
		if s.GetOrganizationId() != a.organization.GetId() || s.GetSlug() != slug {
			continue
		}
		if found != nil {
			return nil, job.Fail(errclass.ExportRefused, "organization %s has two stations %s", a.spec.Organization, slug)
		}
		found = s
	}
	if found == nil {
		return nil, job.Fail(errclass.ExportRefused, "organization %s has no station %q", a.spec.Organization, slug)
	}
	return found, nil
}

// database adds the series of stations in a database. A measurement is a station's by the
// same rule as its tables are: any station can name any database.
func (a *asker) database(ctx context.Context, database string, stations []*platformv1.Station) error {
	sharing := a.Places.Sharing(database, a.all)
	for _, s := range stations {
		if !slices.Contains(sharing, s) {
			return job.Fail(errclass.ExportRefused, "database %s is not one that has points of station %s: neither its record nor location %s names it",
				database, s.GetSlug(), a.spec.Location)
		}
	}
	names, err := influx.MeasurementNames(ctx, a.config, database)
	if err != nil {
		return err
	}
	owners := influx.OwnersOf(database, sharing).Among(names)
	wanted := map[string]Series{}
	for _, measurement := range names {
		owner, table := owners.Table(measurement)
		if !slices.Contains(stations, owner) || len(a.spec.Tables) > 0 && !slices.Contains(a.spec.Tables, table) {
			a.noteUncertain(database, measurement, owners, stations)
			continue
		}
		wanted[measurement] = Series{Database: database, Measurement: measurement, Table: table, Station: stationOf(owner)}
	}
	found, err := influx.Fields(ctx, a.config, database, func(measurement string) bool { _, is := wanted[measurement]; return is })
	if err != nil {
		return err
	}
	for _, measurement := range slices.Sorted(maps.Keys(wanted)) {
		s := wanted[measurement]
		a.columns(&s, found[measurement])
		if len(s.Columns) > 0 {
			a.series = append(a.series, s)
		}
	}
	return a.units(ctx, stations)
}

// noteUncertain notes a measurement that names a station of these, and one of others.
func (a *asker) noteUncertain(database, measurement string, owners influx.Owners, stations []*platformv1.Station) {
	named, _ := owners.Named(measurement)
	if len(named) > 1 && slices.ContainsFunc(named, func(s *platformv1.Station) bool { return slices.Contains(stations, s) }) {
		a.note("measurement %s of database %s is left out: it may be that of several stations", job.Cut(measurement, 200), database)
	}
}

const maxNotes = 50

func (a *asker) note(format string, args ...any) {
	if len(a.notes) < maxNotes {
		a.notes = append(a.notes, fmt.Sprintf(format, args...))
	}
}

func stationOf(s *platformv1.Station) Station {
	of := Station{ID: s.GetId(), Slug: s.GetSlug(), Name: s.GetName()}
	if s.GetGeo() != nil && !s.GetIsGeoProtected() {
		of.Longitude, of.Latitude, of.Altitude = &s.Geo.Longitude, &s.Geo.Latitude, s.Geo.Altitude
	}
	return of
}

// columns fills in the columns of a series.
func (a *asker) columns(s *Series, fields map[string][]influx.FieldType) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		types := fields[name]
		if len(a.spec.Fields) > 0 && !slices.Contains(a.spec.Fields, name) {
			continue
		}
		slices.SortFunc(types, func(x, y influx.FieldType) int {
			return slices.Index(influx.FieldTypes(), x) - slices.Index(influx.FieldTypes(), y)
		})
		of := types[0]
		if len(types) > 1 {
			a.note("field %s of measurement %s has values of several types: InfluxDB gives those that fit type %s", job.Cut(name, 200), job.Cut(s.Measurement, 200), of)
		}
		switch number := of == influx.FieldFloat || of == influx.FieldInteger; {
		case a.spec.Aggregate == AggregateCount:
			of = influx.FieldInteger
		case a.spec.Aggregate != "" && !number:
			a.note("field %s of measurement %s is left out: it is a %s, and has no %s", job.Cut(name, 200), job.Cut(s.Measurement, 200), of, a.spec.Aggregate)
			continue
		case a.spec.Aggregate == "mean":
			of = influx.FieldFloat
		}
		s.Columns = append(s.Columns, Column{Field: name, Type: of})
	}
}

// complete refuses a question that asks for what is not there.
func (a *asker) complete() error {
	for _, slug := range a.spec.Stations {
		if !a.has(func(s Series) bool { return s.Station.Slug == slug }) {
			return job.Fail(errclass.ExportRefused, "station %s has nothing of what is asked for in the databases of location %s%s",
				slug, a.spec.Location, a.because())
		}
	}
	for _, table := range a.spec.Tables {
		if !a.has(func(s Series) bool { return s.Table == table }) {
			return job.Fail(errclass.ExportRefused, "no station of the spec has a table %q with these fields%s", table, a.because())
		}
	}
	for _, field := range a.spec.Fields {
		if !a.has(func(s Series) bool {
			return slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Field == field })
		}) {
			return job.Fail(errclass.ExportRefused, "no table has a field %q to export%s", field, a.because())
		}
	}
	return nil
}

func (a *asker) has(one func(Series) bool) bool { return slices.ContainsFunc(a.series, one) }

// because adds the first notes to a refusal.
func (a *asker) because() string {
	if len(a.notes) == 0 {
		return ""
	}
	return ": " + strings.Join(a.notes[:min(len(a.notes), 3)], "; ")
}

// units fills in the units that the platform's datastreams name for fields of stations.
func (a *asker) units(ctx context.Context, stations []*platformv1.Station) error {
	for _, station := range stations {
		err := platform.Pages(func(token string) (string, error) {
			page, err := a.Platform.Metadata.ListDatastreams(ctx, &platformv1.ListDatastreamsRequest{StationId: station.GetId(), PageSize: 200, PageToken: token})
			for _, d := range page.GetDatastreams() {
				a.unitsOf(station, d)
			}
			return page.GetNextPageToken(), err
		})
		if err != nil {
			return platform.Explain(err)
		}
	}
	return nil
}

// unitsOf looks for the fields that a datastream reads: its last config counts.
func (a *asker) unitsOf(station *platformv1.Station, d *platformv1.Datastream) {
	units := d.GetTerms()["dt"].GetLabels()["Unit"]
	if units == "" || a.spec.Aggregate == AggregateCount {
		return
	}
	for _, config := range d.GetDatapointsConfig() {
		if config.GetEvaluate() != "" {
			continue // They are those of another number.
		}
		query := config.GetParams().GetFields()["query"].GetStructValue().GetFields()
		measurement, selected := query["fc"].GetStringValue(), query["sc"].GetStringValue()
		for i := range a.series {
			s := &a.series[i]
			if s.Station.ID != station.GetId() || s.Measurement != measurement {
				continue
			}
			for j := range s.Columns {
				if selects(selected, s.Columns[j].Field) {
					s.Columns[j].Units = units
				}
			}
		}
	}
}

// selects reports whether a select list has a field alone, perhaps under another name:
// "AT_C_Avg" AS v.
func selects(list, field string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(list), " ")
	return strings.Trim(name, `"`) == field
}
