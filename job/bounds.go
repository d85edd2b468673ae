package job

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// bounds reports the values of a table that are outside of the bounds in the tags of
// their fields: enum, minimum and maximum. The schema of a jobs file is made of the same
// tags. A field with omitempty or omitzero that is zero is not set.
func (v *validator) bounds(table any, path ...string) {
	values := reflect.ValueOf(table)
	for i := range values.NumField() {
		field, value := values.Type().Field(i), reflect.Indirect(values.Field(i))
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.HasPrefix(options, "omit") && values.Field(i).IsZero() {
			continue
		}
		at := append(slices.Clone(path), name)
		switch value := value.Interface().(type) {
		case Duration:
			v.duration(at, value, field.Tag)
		case int:
			v.number(at, float64(value), field.Tag)
		case float64:
			v.number(at, value, field.Tag)
		case Backoff:
			v.bounds(value, at...)
		default:
			v.enum(at, reflect.ValueOf(value).String(), field.Tag.Get("enum"))
		}
	}
}

func (v *validator) duration(path []string, d Duration, tag reflect.StructTag) {
	least, _ := ParseDuration(tag.Get("minimum")) // Zero without the tag.
	most, err := ParseDuration(tag.Get("maximum"))
	switch {
	case d < least:
		v.at(path, "%s is shorter than %s", d, least)
	case err == nil && d > most:
		v.at(path, "%s is longer than %s", d, most)
	}
}

func (v *validator) number(path []string, n float64, tag reflect.StructTag) {
	text := strconv.FormatFloat(n, 'f', -1, 64)
	if least, err := strconv.ParseFloat(tag.Get("minimum"), 64); err == nil && !(n >= least) { // NaN, too
		v.at(path, "%s is less than %s", text, tag.Get("minimum"))
	}
	if most, err := strconv.ParseFloat(tag.Get("maximum"), 64); err == nil && n > most {
		v.at(path, "%s is more than %s", text, tag.Get("maximum"))
	}
}

func (v *validator) enum(path []string, text, enum string) {
	if words := strings.Split(enum, ","); enum != "" && !slices.Contains(words, text) {
		v.at(path, "%.80q is not one of %s", text, strings.Join(words, ", "))
	}
}
