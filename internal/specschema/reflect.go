package specschema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/dendrascience/dendra-jobs/job"
)

var (
	durationType        = reflect.TypeFor[job.Duration]()
	ownerType           = reflect.TypeFor[job.Owner]()
	secretType          = reflect.TypeFor[job.SecretRef]()
	stdDurationType     = reflect.TypeFor[time.Duration]()
	timeType            = reflect.TypeFor[time.Time]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
)

func reflectType(t reflect.Type, partial bool) (*jsonschema.Schema, error) {
	if t == nil {
		return nil, fmt.Errorf("schema of a job type without a spec type")
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || isLeaf(t) {
		return nil, fmt.Errorf("schema of %s: it is not a struct", t)
	}
	if err := checkType(t, nil); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	reflector := jsonschema.Reflector{Anonymous: true, DoNotReference: true, Mapper: mapType}
	schema := reflector.ReflectFromType(t)
	finish(schema, partial)
	return schema, nil
}

// isLeaf says whether a type reads itself from JSON, whatever its fields.
func isLeaf(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(textUnmarshalerType) || pointer.Implements(unmarshalerType)
}

// checkType refuses what a schema cannot say, and what a spec should not have.
// Above holds the structs on the way to t.
func checkType(t reflect.Type, above []reflect.Type) error {
	switch {
	case t == stdDurationType:
		return fmt.Errorf("a time.Duration is a count of nanoseconds in JSON: use job.Duration")
	case isLeaf(t):
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return checkType(t.Elem(), above)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return fmt.Errorf("a map has keys of type %s, not strings", t.Key())
		}
		return checkType(t.Elem(), above)
	case reflect.Struct:
		return checkFields(t, above)
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.Uintptr, reflect.UnsafePointer:
		return fmt.Errorf("JSON has nothing for a %s", t.Kind())
	}
	return nil
}

func checkFields(t reflect.Type, above []reflect.Type) error {
	if slices.Contains(above, t) {
		return fmt.Errorf("type %s contains itself", t)
	}
	above = append(slices.Clip(above), t)
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		if name == "" && !field.Anonymous {
			return fmt.Errorf("field %s has no name in a json tag", field.Name)
		}
		if err := checkType(field.Type, above); err != nil {
			return fmt.Errorf("field %s: %w", field.Name, err)
		}
	}
	return nil
}

// mapType gives the schemas of types that are not what their Go kind says. Each
// call makes a new one, since tags of the field are written into it.
func mapType(t reflect.Type) *jsonschema.Schema {
	switch {
	case t == timeType:
		return nil
	case t == durationType:
		return &jsonschema.Schema{Type: "string", Format: FormatDuration}
	case t == ownerType:
		return &jsonschema.Schema{Type: "string", Format: FormatOwner}
	case t == secretType:
		return &jsonschema.Schema{Type: "string", Pattern: job.SecretPattern}
	case reflect.PointerTo(t).Implements(textUnmarshalerType):
		return &jsonschema.Schema{Type: "string"}
	case reflect.PointerTo(t).Implements(unmarshalerType):
		return &jsonschema.Schema{}
	}
	return integerRange(t.Kind())
}

// integerRange bounds the kinds of integers, so that a number out of range is
// found before it is decoded.
func integerRange(kind reflect.Kind) *jsonschema.Schema {
	between := func(least int64, most uint64) *jsonschema.Schema {
		return &jsonschema.Schema{
			Type:    "integer",
			Minimum: json.Number(strconv.FormatInt(least, 10)),
			Maximum: json.Number(strconv.FormatUint(most, 10)),
		}
	}
	switch kind {
	case reflect.Int8:
		return between(math.MinInt8, math.MaxInt8)
	case reflect.Int16:
		return between(math.MinInt16, math.MaxInt16)
	case reflect.Int32:
		return between(math.MinInt32, math.MaxInt32)
	case reflect.Uint8:
		return between(0, math.MaxUint8)
	case reflect.Uint16:
		return between(0, math.MaxUint16)
	case reflect.Uint32:
		return between(0, math.MaxUint32)
	case reflect.Int, reflect.Int64:
		return between(math.MinInt64, math.MaxInt64)
	case reflect.Uint, reflect.Uint64:
		return between(0, math.MaxUint64)
	}
	return nil
}

// finish does what the reflector has no setting for.
func finish(s *jsonschema.Schema, partial bool) {
	if s == nil || s == jsonschema.FalseSchema || s == jsonschema.TrueSchema {
		return // Those two are the library's own, for everyone at once.
	}
	if s.Format == FormatDuration {
		// The reflector's Schema has room for one type only.
		s.Type = ""
		s.Extras = map[string]any{"type": []string{"string", "number"}}
	}
	if partial {
		s.Required = nil
	}
	for property := s.Properties.Oldest(); property != nil; property = property.Next() {
		finish(property.Value, partial)
	}
	for _, part := range s.PatternProperties {
		finish(part, partial)
	}
	for _, part := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
		finish(part, partial)
	}
	finish(s.Items, partial)
	finish(s.AdditionalProperties, partial)
}
