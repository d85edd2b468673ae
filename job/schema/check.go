package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/dendrascience/dendra-jobs/job"
)

// Check lists everything in which a value, decoded from JSON or TOML, does not
// fit the schema, ordered by path. A missing key is a problem of the table it
// is missing from; an unknown key is one of the key itself (AtKey). Numbers in
// a path are positions in a list, from 0.
func (s *Schema) Check(value any) []job.Problem {
	plain, problems := Plain(value)
	refused := map[string]bool{}
	for _, problem := range problems {
		refused[pathKey(problem.Path)] = true
	}
	if err := s.compiled.Validate(plain); err != nil {
		c := checker{schema: s, value: plain}
		if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
			c.flatten(invalid)
		} else {
			c.at(nil, "%s", err)
		}
		for _, problem := range c.problems {
			if !refused[pathKey(problem.Path)] {
				problems = append(problems, problem)
			}
		}
	}
	slices.SortStableFunc(problems, func(a, b job.Problem) int {
		return cmp.Or(slices.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return problems
}

// CheckText is Check for the JSON text of a spec, with paths that start at the
// job: spec, key. No text means an empty object.
func (s *Schema) CheckText(text []byte) []job.Problem {
	one := func(format string, args ...any) []job.Problem {
		return []job.Problem{{Message: fmt.Sprintf(format, args...)}}
	}
	if len(text) == 0 {
		text = []byte("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return one("the spec is not JSON: %s", wrongJSON(err))
	}
	if decoder.More() {
		return one("the spec is not one JSON object: there is more text after it")
	}
	if _, ok := value.(map[string]any); !ok {
		return one("the spec is not a JSON object")
	}
	problems := s.Check(value)
	for i := range problems {
		problems[i].Path = append([]string{"spec"}, problems[i].Path...)
	}
	return problems
}

// CheckSpec lists everything that is wrong with the JSON text of a spec of a job
// type: by the type's schema, or, if that has no objection and the Go type of the
// spec is known here, by its Validate method.
func CheckSpec(t job.Type, schema *Schema, text []byte) []job.Problem {
	if schema != nil {
		if problems := schema.CheckText(text); len(problems) > 0 {
			return problems
		}
	}
	if t.Spec == nil {
		return nil
	}
	if err := job.DecodeSpec(text, reflect.New(t.Spec).Interface()); err != nil {
		return []job.Problem{{Path: []string{"spec"}, Message: err.Error()}}
	}
	return nil
}

// CheckSpecOf is [CheckSpec] by the schema that the type has.
func CheckSpecOf(t job.Type, text []byte) ([]job.Problem, error) {
	whole, _, err := OfType(t)
	if err != nil {
		return nil, err
	}
	return CheckSpec(t, whole, text), nil
}

func pathKey(path []string) string { return strings.Join(path, "\x00") }

// checker turns the tree of errors that validation gives into problems.
type checker struct {
	schema   *Schema
	value    any
	problems []job.Problem
}

func (c *checker) at(path []string, format string, args ...any) {
	if len(path) == 0 {
		path = nil
	}
	c.problems = append(c.problems, job.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// atLeast says that something has too few of what it is made of.
func (c *checker) atLeast(path []string, thing string, got, want int, of string) {
	switch {
	case got == 0 && of == "character":
		c.at(path, "the text is empty")
	case got == 0:
		c.at(path, "%s is empty", thing)
	default:
		c.at(path, "%s has %s, fewer than %d", thing, count(got, of), want)
	}
}

func (c *checker) atKey(path []string, key, format string, args ...any) {
	c.problems = append(c.problems, job.Problem{
		Path:    append(slices.Clip(path), key),
		AtKey:   true,
		Message: fmt.Sprintf(format, args...),
	})
}

func (c *checker) flatten(e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		c.choice(e)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			c.at(e.InstanceLocation, "%s fits more than one of the forms that are allowed", c.show(e))
			return
		}
		c.choice(e)
	case *kind.Contains, *kind.MinContains: // the causes say why each item is not the one
		c.at(e.InstanceLocation, "the list lacks an item that it must contain")
	case *kind.PropertyNames:
		c.atKey(e.InstanceLocation, k.Property, "key %s is not allowed here", quote(k.Property))
	default:
		if len(e.Causes) == 0 {
			c.leaf(e)
		}
		for _, cause := range e.Causes {
			c.flatten(cause)
		}
	}
}

// choice reports a value that fits none of several forms. Forms of another type
// than the value's are left aside: they were not meant.
func (c *checker) choice(e *jsonschema.ValidationError) {
	var meant []*jsonschema.ValidationError
	var types []string
	for _, cause := range e.Causes {
		mismatch, ok := cause.ErrorKind.(*kind.Type)
		if !ok || len(cause.InstanceLocation) > len(e.InstanceLocation) {
			meant = append(meant, cause)
			continue
		}
		types = append(types, mismatch.Want...)
	}
	switch len(meant) {
	case 0:
		c.at(e.InstanceLocation, "%s is not %s", c.show(e), typeNames(types))
	case 1:
		c.flatten(meant[0])
	default:
		var reasons []string
		for _, cause := range meant {
			inner := checker{schema: c.schema, value: c.value}
			inner.flatten(cause)
			for _, problem := range inner.problems {
				reasons = append(reasons, problem.Message)
			}
		}
		c.at(e.InstanceLocation, "none of the forms that are allowed fits: %s", strings.Join(reasons, "; or "))
	}
}

// leaf says in one sentence what one rule found.
func (c *checker) leaf(e *jsonschema.ValidationError) {
	path := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		c.typeMismatch(e, k)
	case *kind.Required:
		for _, key := range k.Missing {
			c.at(path, "key %s is missing", quote(key))
		}
	case *kind.DependentRequired:
		for _, key := range k.Missing {
			c.at(path, "key %s is missing, which %s needs", quote(key), quote(k.Prop))
		}
	case *kind.AdditionalProperties:
		known := propertyNames(c.schema.node(e.SchemaURL))
		for _, key := range k.Properties {
			c.atKey(path, key, "%s", unknownKey(key, known))
		}
	case *kind.FalseSchema:
		c.at(path, "%s is not allowed here", c.show(e))
	case *kind.Enum:
		c.at(path, "%s is not one of %s", c.show(e), join(k.Want))
	case *kind.Const:
		c.at(path, "%s is not %s", c.show(e), show(k.Want))
	case *kind.Format:
		c.format(e, k)
	case *kind.Pattern:
		if k.Want == job.SecretPattern {
			c.at(path, "%s", notASecret)
			return
		}
		c.at(path, "%s does not match the pattern %s", c.show(e), k.Want)
	case *kind.MinLength:
		c.atLeast(path, c.show(e), k.Got, k.Want, "character")
	case *kind.MaxLength:
		c.at(path, "the text has %s, more than %d", count(k.Got, "character"), k.Want)
	case *kind.ContentEncoding:
		c.at(path, "%s is not in %s", c.show(e), k.Want)
	case *kind.Minimum:
		if least, ok := c.schema.node(e.SchemaURL)["formatMinimum"]; ok {
			c.at(path, "%s is shorter than %s", c.show(e), least)
			return
		}
		c.at(path, "%s is less than %s", c.show(e), decimal(k.Want))
	case *kind.Maximum:
		if most, ok := c.schema.node(e.SchemaURL)["formatMaximum"]; ok {
			c.at(path, "%s is longer than %s", c.show(e), most)
			return
		}
		c.at(path, "%s is more than %s", c.show(e), decimal(k.Want))
	case *kind.ExclusiveMinimum:
		c.at(path, "%s is not more than %s", c.show(e), decimal(k.Want))
	case *kind.ExclusiveMaximum:
		c.at(path, "%s is not less than %s", c.show(e), decimal(k.Want))
	case *kind.MultipleOf:
		c.at(path, "%s is not a multiple of %s", c.show(e), decimal(k.Want))
	case *kind.MinItems:
		c.atLeast(path, "the list", k.Got, k.Want, "item")
	case *kind.MaxItems:
		c.at(path, "the list has %s, more than %d", count(k.Got, "item"), k.Want)
	case *kind.UniqueItems:
		c.at(path, "items %d and %d of the list are the same", k.Duplicates[0]+1, k.Duplicates[1]+1)
	case *kind.MinProperties:
		c.atLeast(path, "the table", k.Got, k.Want, "key")
	case *kind.MaxProperties:
		c.at(path, "the table has %s, more than %d", count(k.Got, "key"), k.Want)
	default: // what only schemas from elsewhere use
		c.at(path, "%s does not fit: %s", c.show(e), e.BasicOutput().Error)
	}
}

const notASecret = "a secret is named, never written: secret://NAME"

func (c *checker) typeMismatch(e *jsonschema.ValidationError, k *kind.Type) {
	node := c.schema.node(e.SchemaURL)
	switch {
	case node["format"] == FormatDuration:
		c.at(e.InstanceLocation, "%s is not a duration: %s", c.show(e), job.DurationForms)
	case node["pattern"] == job.SecretPattern:
		c.at(e.InstanceLocation, "%s", notASecret)
	default:
		c.at(e.InstanceLocation, "%s is not %s", c.show(e), typeNames(k.Want))
	}
}

func (c *checker) format(e *jsonschema.ValidationError, k *kind.Format) {
	switch k.Want {
	case FormatDuration, FormatOwner, FormatURL:
		c.at(e.InstanceLocation, "%s", k.Err)
	case formatTime:
		c.at(e.InstanceLocation, "%s is not a date and time with an offset, such as 2026-01-31T12:00:00Z", c.show(e))
	case formatRegex:
		c.at(e.InstanceLocation, "%s is not a regular expression: %s", c.show(e), k.Err)
	default:
		c.at(e.InstanceLocation, "%s is not of the format %s", c.show(e), k.Want)
	}
}

// show writes the value that an error is about.
func (c *checker) show(e *jsonschema.ValidationError) string {
	value := c.value
	for _, key := range e.InstanceLocation {
		switch container := value.(type) {
		case map[string]any:
			value = container[key]
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || index < 0 || index >= len(container) {
				return "the value"
			}
			value = container[index]
		}
	}
	return show(value)
}

func show(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return "a table"
	case []any:
		return "a list"
	case string:
		return quote(value)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "the value"
	}
	return string(text)
}

// quote shows a text of any length in a message.
func quote(text string) string {
	const most = 60
	if utf8.RuneCountInString(text) > most {
		return strconv.Quote(string([]rune(text)[:most]) + "…")
	}
	return strconv.Quote(text)
}

func join(values []any) string {
	texts := make([]string, len(values))
	for i, value := range values {
		if text, ok := value.(string); ok && text != "" {
			texts[i] = text
		} else {
			texts[i] = show(value)
		}
	}
	return strings.Join(texts, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	float, _ := r.Float64()
	return strconv.FormatFloat(float, 'g', -1, 64)
}

func typeNames(types []string) string {
	words := map[string]string{
		"string": "a string", "number": "a number", "integer": "a whole number", "boolean": "true or false",
		"object": "a table", "array": "a list", "null": "null",
	}
	names := make([]string, 0, len(types))
	for _, name := range types {
		if word := words[name]; !slices.Contains(names, word) {
			names = append(names, word)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}

// wrongJSON is what is wrong with a text that is not JSON.
func wrongJSON(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("byte %d is not what is expected there", syntax.Offset)
	}
	return "it ends too early"
}
