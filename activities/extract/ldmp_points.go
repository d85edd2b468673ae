package extract

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// ldmpRoute says where the points of a record go and what they are called.
type ldmpRoute struct {
	operation   pipeline.Operation
	location    string
	database    string // of a rule, if one has it
	measurement string // of a rule, if one has it
	field       string
	offset      pipeline.UTCOffset
	skip        bool
}

// route applies the rules that fit a record, in their order: a later one wins.
func (s *PrepareLdmpSpec) route(context pipeline.Context, clock time.Time) ldmpRoute {
	r := ldmpRoute{
		operation: s.OperationMode, location: s.Location, field: s.Field, offset: context.UTCOffset,
	}
	at := ldmp.At(clock, r.offset.Std())
	for _, rule := range s.Rules {
		if !rule.fits(context, at) {
			continue
		}
		r.skip = rule.Skip
		for _, override := range []struct {
			to   *string
			with string
		}{
			{(*string)(&r.operation), string(rule.OperationMode)}, {&r.location, rule.Location}, {&r.database, rule.Database},
			{&r.measurement, rule.Measurement}, {&r.field, rule.Field}, {(*string)(&r.offset), string(rule.UTCOffset)},
		} {
			if override.with != "" {
				*override.to = override.with
			}
		}
		if rule.OddTimeDatabase != "" && !at.Equal(at.Truncate(time.Minute)) {
			r.database = rule.OddTimeDatabase
		}
	}
	return r
}

func (r *LdmpRule) fits(context pipeline.Context, at time.Time) bool {
	switch {
	case r.Station != "" && r.Station != context.Station,
		r.Table != "" && r.Table != context.Table,
		!r.BeginsAt.IsZero() && at.Before(r.BeginsAt),
		!r.EndsBefore.IsZero() && !at.Before(r.EndsBefore):
		return false
	}
	return true
}

// fill puts values into a template, whose braces have one of their names each.
func fill(template string, values ...named) string {
	var filled strings.Builder
	for {
		text, rest, more := strings.Cut(template, "{")
		filled.WriteString(text)
		if !more {
			return filled.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		for _, v := range values {
			if v.name == name {
				filled.WriteString(v.value)
			}
		}
		template = after
	}
}

type named struct{ name, value string }

// reservedFields are names that the store keeps for itself.
var reservedFields = map[string]bool{"time": true, "_field": true, "_measurement": true}

// fieldName is the name that a value is stored under.
func (r *ldmpRoute) fieldName(field ldmp.Field) string {
	name := pipeline.SafeName(fill(r.field, named{"name", field.Name}, named{"process", field.Process}, named{"units", field.Units}))
	if reservedFields[name] {
		name += "_"
	}
	return name
}

// values makes the fields of a point, and lists what could not be made one.
func (p *ldmpPreparation) values(r *ldmpRoute, fields []ldmp.Field) (values map[string]any, missing int64, bad []string) {
	values = make(map[string]any, len(fields))
	from := make(map[string]string, len(fields))
	for _, field := range fields {
		name := r.fieldName(field)
		if other, taken := from[name]; taken {
			bad = append(bad, fmt.Sprintf("fields %q and %q would both be %s", other, field.Name, name))
			continue
		}
		from[name] = field.Name
		value, err := p.value(field)
		switch {
		case err != nil:
			bad = append(bad, fmt.Sprintf("field %q: %v", field.Name, err))
		case value == nil:
			missing++
		default:
			values[name] = value
		}
	}
	return values, missing, bad
}

// value reads a field by its type: a float64, a string, a bool, or nil for none.
func (p *ldmpPreparation) value(field ldmp.Field) (any, error) {
	if field.Value == "" {
		return nil, nil
	}
	for _, pattern := range p.stringFields {
		if pattern.MatchString(field.Name) {
			return field.Value, nil
		}
	}
	if field.Number {
		// Release 2 made numbers of all values, whatever their type, and stored these.
		return number(field.Value)
	}
	_, name, _ := strings.Cut(field.Type, ":")
	if name == "" {
		name = field.Type
	}
	switch strings.ToLower(name) {
	case "float", "double", "decimal", "integer", "int", "long", "short", "byte", "unsignedint", "unsignedlong",
		"unsignedshort", "unsignedbyte", "nonnegativeinteger", "positiveinteger", "nonpositiveinteger", "negativeinteger":
		return number(field.Value)
	case "boolean":
		switch strings.TrimSpace(field.Value) {
		case "true", "1":
			return true, nil
		case "false", "0":
			return false, nil
		}
		return nil, fmt.Errorf("%.60q is neither true nor false", field.Value)
	case "":
		if value, err := number(field.Value); err == nil {
			return value, nil
		}
	}
	return field.Value, nil
}

// number reads a number, or nil where a logger says that it has none.
func number(text string) (any, error) {
	text = strings.TrimSpace(text)
	switch strings.ToUpper(strings.TrimLeft(text, "+-")) {
	case "NAN", "INF", "INFINITY":
		return nil, nil
	}
	// ParseFloat also takes hexadecimal numbers, which no logger sends.
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.ContainsAny(text, "xX_") {
		return nil, fmt.Errorf("%.60q is no number", text)
	}
	return value, nil
}
