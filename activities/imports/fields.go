package imports

import (
	"cmp"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// field is a field of a message, without its value, and the place of its column.
type field struct {
	ldmp.Field

	place int
}

// types are the XML schema types of the types that a spec names.
var types = map[string]string{"number": "xsd:double", "string": "xsd:string"}

// fields are those that the columns of a table become, in their order. It fails if a
// column of the spec is not in the file.
func (s *FileSpec) fields(table *loggerfiles.Table) ([]field, error) {
	all := make([]field, len(table.Columns))
	for i, column := range table.Columns {
		all[i] = field{place: i, Field: ldmp.Field{Name: column.Name, Process: column.Process, Units: column.Units, Type: column.Type}}
	}
	if s.tableName(table) == "" {
		return nil, loggerfiles.BadFormat(table.Format, "it names no table: the spec has to")
	}
	if len(s.Columns) == 0 {
		return all, nil
	}
	var wanted []field
	for _, column := range s.Columns {
		place := slices.IndexFunc(table.Columns, func(c loggerfiles.Column) bool { return c.Name == column.Column })
		if place < 0 {
			return nil, loggerfiles.BadFormat(table.Format, "it has no column %q, which the spec names", column.Column)
		}
		f := all[place]
		f.Name, f.Units, f.Type = cmp.Or(column.Name, f.Name), cmp.Or(column.Units, f.Units), cmp.Or(types[column.Type], f.Type)
		wanted = append(wanted, f)
	}
	return wanted, nil
}

// tableName is the name of a table: the spec's, or the file's.
func (s *FileSpec) tableName(table *loggerfiles.Table) string { return cmp.Or(s.Table, table.Name) }

// clockOf is what a clock showed at a moment, and how far it was ahead of UTC. Before zones
// had whole minutes, it is UTC.
func clockOf(at time.Time) (time.Time, pipeline.UTCOffset) {
	offset := pipeline.UTCOffset(at.Format("-07:00"))
	if _, seconds := at.Zone(); seconds%60 != 0 || offset.Check() != nil {
		return at.UTC(), "+00:00"
	}
	return at, offset
}
