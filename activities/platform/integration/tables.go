package integration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// source is what a mirror has of a database; found is nil if it has no such database.
type source struct {
	mirror string
	found  influx.Measurements
}

// tableOf describes a measurement by what all mirrors have of it. Where the types of a
// field differ, it is the one that the server would prefer. Disputes says in words where
// the mirrors do not agree.
func tableOf(measurement string, sources []source) (fields []*platformv1.TableField, disputes []string) {
	names := map[string]bool{}
	for _, s := range sources {
		if s.found[measurement] == nil {
			disputes = append(disputes, fmt.Sprintf("mirror %s does not have it", s.mirror))
		}
		for name := range s.found[measurement] {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		types, dispute := typesOf(measurement, name, sources)
		if dispute != "" {
			disputes = append(disputes, dispute)
		}
		fields = append(fields, &platformv1.TableField{Name: name, Type: fieldTypes[types[0]]})
	}
	return fields, disputes
}

var fieldTypes = map[influx.FieldType]platformv1.TableFieldType{
	influx.FieldFloat:   platformv1.TableFieldType_TABLE_FIELD_TYPE_FLOAT,
	influx.FieldInteger: platformv1.TableFieldType_TABLE_FIELD_TYPE_INTEGER,
	influx.FieldString:  platformv1.TableFieldType_TABLE_FIELD_TYPE_STRING,
	influx.FieldBoolean: platformv1.TableFieldType_TABLE_FIELD_TYPE_BOOLEAN,
}

// typesOf are all types that a field has somewhere, the preferred one first.
func typesOf(measurement, field string, sources []source) (types []influx.FieldType, dispute string) {
	var said []string
	same := true
	for _, s := range sources {
		fields, has := s.found[measurement]
		if !has {
			continue // That is said of the measurement.
		}
		of := slices.Clone(fields[field])
		slices.SortFunc(of, comparePreference)
		text := "missing"
		if len(of) > 0 {
			text = joined(of, " and ")
		}
		said = append(said, fmt.Sprintf("%s on mirror %s", text, s.mirror))
		same = same && len(of) == 1 && (len(types) == 0 || of[0] == types[0])
		types = append(types, of...)
	}
	slices.SortFunc(types, comparePreference)
	if !same {
		dispute = fmt.Sprintf("field %s is %s", field, strings.Join(said, ", "))
	}
	return slices.Compact(types), dispute
}

func comparePreference(a, b influx.FieldType) int {
	return cmp.Compare(slices.Index(influx.FieldTypes(), a), slices.Index(influx.FieldTypes(), b))
}

func joined[S ~string](list []S, separator string) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return strings.Join(texts, separator)
}

// difference is what has changed about a table.
type difference struct {
	added, removed []string // fields
	retyped        []string // fields, with what they were and are
	moved          bool     // to another database or measurement
}

// compareTables gives the difference between a table as it was told and as it is, nil if
// there is none.
func compareTables(was, is *platformv1.TableInfo) *difference {
	d := difference{moved: was.GetDatabase() != is.GetDatabase() || was.GetMeasurement() != is.GetMeasurement()}
	before := map[string]platformv1.TableFieldType{}
	for _, f := range was.GetFields() {
		before[f.GetName()] = f.GetType()
	}
	for _, f := range is.GetFields() {
		old, had := before[f.GetName()]
		switch {
		case !had:
			d.added = append(d.added, f.GetName())
		case old != f.GetType():
			d.retyped = append(d.retyped, fmt.Sprintf("%s from %s to %s", f.GetName(), typeName(old), typeName(f.GetType())))
		}
		delete(before, f.GetName())
	}
	d.removed = slices.Sorted(maps.Keys(before))
	if !d.moved && len(d.added)+len(d.removed)+len(d.retyped) == 0 {
		return nil
	}
	return &d
}

func typeName(t platformv1.TableFieldType) string {
	return strings.ToLower(strings.TrimPrefix(t.String(), "TABLE_FIELD_TYPE_"))
}

// text is the difference in words.
func (d *difference) text() string {
	var parts []string
	add := func(what string, fields []string) {
		if len(fields) > 0 {
			parts = append(parts, what+" "+strings.Join(fields, ", "))
		}
	}
	add("types changed:", d.retyped)
	add("fields gone:", d.removed)
	add("fields added:", d.added)
	if d.moved {
		parts = append(parts, "it is in another database or measurement")
	}
	return strings.Join(parts, "; ")
}
