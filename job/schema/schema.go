// Package schema checks values against the schema of a Go type: the spec of
// a job type, or the options of a job.
//
// A schema is JSON Schema, draft 2020-12, made from a struct's fields and their
// tags. It can be written as JSON, sent elsewhere, and used there in the same way
// with [Parse].
//
// The tag json names a key; a field without omitempty or omitzero is required.
// The other tags are keywords of JSON Schema, and all are optional:
//
//	help                               one phrase for people: the description
//	default, example                   a value: a string as it is, all else as JSON
//	enum                               the values that are allowed: a,b,c
//	format                             regex, or dendra-url: the URL of a server
//	pattern, minLength, maxLength      bounds of a string
//	minimum, maximum, exclusiveMinimum bounds of a number; the first two also of a
//	                                   job.Duration: maximum:"PT12H"
//	minItems, maxItems, uniqueItems    bounds of a list
//
// Bounds of a single value are those of each item if the field is a list. Any other
// tag is an error, so that none is misspelt. [job.DecodeSpec] fills in defaults.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dendrascience/dendra-jobs/job"
)

// Formats of strings that job types use beyond those of JSON Schema.
const (
	FormatDuration = "dendra-duration" // what job.ParseDuration reads, or a number of seconds
	FormatOwner    = "dendra-owner"    // what job.ParseOwner reads
	FormatURL      = "dendra-url"      // http://HOST:PORT or https://, without credentials and query

	formatRegex = "regex"
	formatTime  = "date-time"
)

// Schema is a compiled JSON schema. It is safe for concurrent use.
type Schema struct {
	text     []byte
	document any // text, decoded: what the messages quote from
	compiled *jsonschema.Schema
}

// location is the address that a schema has while it is compiled.
const location = "schema:///spec"

// For makes the schema of a struct type, or of a pointer to one. Every key is
// required that has neither omitempty nor omitzero, and no key is allowed that
// is not a field. Fields of type time.Duration, recursive types, and exported
// fields without a name in their json tag are errors.
func For(t reflect.Type) (*Schema, error) { return forType(t, false) }

// ForPartial is For without required keys, at any depth: the schema of
// settings that are completed from elsewhere.
func ForPartial(t reflect.Type) (*Schema, error) { return forType(t, true) }

func forType(t reflect.Type, partial bool) (*Schema, error) {
	one, _ := made.LoadOrStore(madeFor{t, partial}, sync.OnceValues(func() (*Schema, error) { return reflectSchema(t, partial) }))
	return one.(func() (*Schema, error))()
}

// made are the schemas of Go types, each made by who asks for it first: it takes a millisecond.
var made sync.Map // of func() (*Schema, error), by madeFor

type madeFor struct {
	reflect.Type
	partial bool
}

func reflectSchema(t reflect.Type, partial bool) (*Schema, error) {
	reflected, err := reflectType(t, partial)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(reflected)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	schema, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	return schema, nil
}

// OfType makes the schemas of the spec of a job type: of a whole one, and of a
// part of one. They come from the Go type of the spec, or from the schema that
// the type was announced with. They are nil if it has neither, and of a spec that
// is a map, which takes everything.
func OfType(t job.Type) (whole, partial *Schema, err error) {
	switch {
	case t.Spec != nil && t.Spec.Kind() == reflect.Map:
	case t.Spec != nil:
		if whole, err = For(t.Spec); err == nil {
			partial, err = ForPartial(t.Spec)
		}
	case len(t.SpecSchema) > 0:
		if whole, err = Parse(t.SpecSchema); err == nil {
			partial, err = whole.partial()
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("job type %s: %w", t.Name, err)
	}
	return whole, partial, nil
}

// partial is the schema without required keys, at any depth.
func (s *Schema) partial() (*Schema, error) {
	text, err := json.Marshal(withoutRequired(s.document))
	if err != nil {
		return nil, fmt.Errorf("schema of a part: %w", err)
	}
	return Parse(text)
}

func withoutRequired(schema any) any {
	object, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	relaxed := make(map[string]any, len(object))
	for keyword, value := range object {
		switch keyword {
		case "required":
		case "properties", "patternProperties", "$defs":
			named, _ := value.(map[string]any)
			parts := make(map[string]any, len(named))
			for name, part := range named {
				parts[name] = withoutRequired(part)
			}
			relaxed[keyword] = parts
		case "items", "additionalProperties":
			relaxed[keyword] = withoutRequired(value)
		case "oneOf", "anyOf", "allOf":
			list, _ := value.([]any)
			parts := make([]any, len(list))
			for i, part := range list {
				parts[i] = withoutRequired(part)
			}
			relaxed[keyword] = parts
		default:
			relaxed[keyword] = value
		}
	}
	return relaxed
}

// Parse reads a JSON schema. One that refers to another document is refused.
func Parse(text []byte) (*Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.RegisterVocabulary(durationBounds())
	compiler.AssertVocabs()
	compiler.UseLoader(noLoader{})
	compiler.RegisterFormat(&jsonschema.Format{Name: FormatDuration, Validate: checkDuration})
	compiler.RegisterFormat(&jsonschema.Format{Name: FormatOwner, Validate: checkOwner})
	compiler.RegisterFormat(&jsonschema.Format{Name: FormatURL, Validate: checkURL})
	if err := compiler.AddResource(location, document); err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", err)
	}
	compiled, err := compiler.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", oneLine(err))
	}
	return &Schema{text: text, document: document, compiled: compiled}, nil
}

// JSON is the text of the schema: the same for the same type, keys in the order
// of the fields.
func (s *Schema) JSON() []byte { return bytes.Clone(s.text) }

// Keys lists the keys that the schema names at its top level, in no order.
func (s *Schema) Keys() []string { return propertyNames(s.document) }

// Type is the JSON type of a top-level key: string, integer, number, boolean,
// object or array; "" when the schema does not say, or allows several.
func (s *Schema) Type(key string) string {
	root, _ := s.document.(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	property, _ := properties[key].(map[string]any)
	name, _ := property["type"].(string)
	return name
}

func propertyNames(node any) []string {
	object, _ := node.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	return names
}

// node finds the part of the document that an error points to, or nil.
func (s *Schema) node(schemaURL string) map[string]any {
	pointer, found := strings.CutPrefix(schemaURL, location+"#")
	if !found {
		return nil
	}
	node := s.document
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if token == "" {
			continue
		}
		token, err := url.PathUnescape(token)
		if err != nil {
			return nil
		}
		object, ok := node.(map[string]any)
		if !ok {
			return nil
		}
		node = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
	}
	object, _ := node.(map[string]any)
	return object
}

// noLoader keeps a schema from naming files or addresses to be read.
type noLoader struct{}

func (noLoader) Load(address string) (any, error) {
	return nil, fmt.Errorf("it refers to another document, %s", address)
}

func checkOwner(value any) error {
	if text, ok := value.(string); ok {
		_, err := job.ParseOwner(text)
		return err
	}
	return nil
}

// checkURL does not quote the URL, which may hold a password.
func checkURL(value any) error {
	text, ok := value.(string)
	if !ok {
		return nil
	}
	parsed, err := url.Parse(text)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" {
		return errors.New("this is not a URL of the form http://HOST:PORT, without credentials and query")
	}
	return nil
}

// oneLine shortens the report of the schema compiler to its last line, which
// names the cause.
func oneLine(err error) error {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return errors.New(strings.TrimLeft(lines[len(lines)-1], " -"))
}
