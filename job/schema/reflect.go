package schema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

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

// reflector makes the schema of a Go type.
type reflector struct {
	partial bool           // without required keys
	above   []reflect.Type // the structs on the way to the type
}

func reflectType(t reflect.Type, partial bool) (*node, error) {
	if t == nil {
		return nil, errors.New("schema of a job type without a spec type")
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || leaf(t) != nil {
		return nil, fmt.Errorf("schema of %s: it is not a struct", t)
	}
	r := &reflector{partial: partial}
	schema, err := r.schema(t)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	schema.Dialect = dialect
	return schema, nil
}

// leaf is the schema of a type that reads itself from JSON, whatever its fields;
// nil for all others.
func leaf(t reflect.Type) *node {
	pointer := reflect.PointerTo(t)
	switch {
	case t == timeType:
		return &node{Type: "string", Format: formatTime}
	case t == durationType:
		return &node{Type: []string{"string", "number"}, Format: FormatDuration}
	case t == ownerType:
		return &node{Type: "string", Format: FormatOwner}
	case t == secretType:
		return &node{Type: "string", Pattern: job.SecretPattern}
	case pointer.Implements(textUnmarshalerType):
		return &node{Type: "string"}
	case pointer.Implements(unmarshalerType):
		return &node{}
	}
	return nil
}

func (r *reflector) schema(t reflect.Type) (*node, error) {
	if t == stdDurationType {
		return nil, errors.New("a time.Duration is a count of nanoseconds in JSON: use job.Duration")
	}
	if n := leaf(t); n != nil {
		return n, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return r.schema(t.Elem())
	case reflect.Interface:
		return &node{}, nil
	case reflect.String:
		return &node{Type: "string"}, nil
	case reflect.Bool:
		return &node{Type: "boolean"}, nil
	case reflect.Float32, reflect.Float64:
		return &node{Type: "number"}, nil
	case reflect.Slice, reflect.Array:
		items, err := r.schema(t.Elem())
		return &node{Type: "array", Items: items}, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("a map has keys of type %s, not strings", t.Key())
		}
		values, err := r.schema(t.Elem())
		return &node{Type: "object", AdditionalProperties: values}, err
	case reflect.Struct:
		table := &node{Type: "object", AdditionalProperties: false}
		return table, r.fields(t, table)
	}
	if n := integer(t.Kind()); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("JSON has nothing for a %s", t.Kind())
}

// fields adds a property for each field of a struct, and for those of the structs
// that it embeds.
func (r *reflector) fields(t reflect.Type, table *node) error {
	if slices.Contains(r.above, t) {
		return fmt.Errorf("type %s contains itself", t)
	}
	r.above = append(r.above, t)
	defer func() { r.above = r.above[:len(r.above)-1] }()
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		if err := r.field(table, field, name, options); err != nil {
			return fmt.Errorf("field %s: %w", field.Name, err)
		}
	}
	return nil
}

func (r *reflector) field(table *node, field reflect.StructField, name, options string) error {
	if name == "" {
		embedded := field.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		if !field.Anonymous || embedded.Kind() != reflect.Struct {
			return errors.New("it has no name in a json tag")
		}
		return r.fields(embedded, table)
	}
	schema, err := r.schema(field.Type)
	if err != nil {
		return err
	}
	if err := schema.declare(field.Tag); err != nil {
		return err
	}
	table.Properties = append(table.Properties, property{name, schema})
	optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
	switch {
	case optional || r.partial:
	case schema.Default != nil:
		return errors.New("it has a default and is required: give its json tag omitempty or omitzero")
	default:
		table.Required = append(table.Required, name)
	}
	return nil
}

// integer bounds the kinds of integers, so that a number out of range is found
// before it is decoded; nil for other kinds.
func integer(kind reflect.Kind) *node {
	between := func(least int64, most uint64) *node {
		return &node{
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
