package jobsfile

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

// What a value is, as far as the reference distinguishes it.
const (
	kindDate     = "date and time"
	kindDuration = "duration"
	kindOwner    = "owner"
	kindRegex    = "regular expression"
	kindSecret   = "secret"
	kindURL      = "URL"
)

// kindOf names what a value is: one of the above, or its type in JSON; "" is any.
func kindOf(value object) string {
	switch {
	case value.text("format") == schema.FormatDuration:
		return kindDuration
	case value.text("format") == schema.FormatOwner:
		return kindOwner
	case value.text("format") == schema.FormatURL:
		return kindURL
	case value.text("format") == "regex":
		return kindRegex
	case value.text("format") == "date-time":
		return kindDate
	case value.text("pattern") == job.SecretPattern:
		return kindSecret
	}
	return value.text("type")
}

// typeText says what values a schema takes.
func typeText(schema object) string {
	if values := schema.list("enum"); len(values) > 0 {
		var names []string
		for _, value := range values {
			names = append(names, code(valueText(value)))
		}
		return "one of " + strings.Join(names, ", ")
	}
	kind := kindOf(schema)
	switch kind {
	case "":
		return "any value"
	case kindDuration:
		return kind + bounds(schema, "formatMinimum", "formatMaximum", "", "")
	case "string":
		text := kind + bounds(schema, "minLength", "maxLength", "character", "characters")
		if pattern := schema.text("pattern"); pattern != "" {
			text += ", matching " + code(pattern)
		}
		return text
	case "integer":
		return "whole number" + bounds(schema, "minimum", "maximum", "", "")
	case "number":
		return kind + bounds(schema, "minimum", "maximum", "", "")
	case "boolean":
		return "`true` or `false`"
	case "array":
		return "list, each a " + typeText(schema.object("items")) + bounds(schema, "minItems", "maxItems", "item", "items")
	case "object":
		if values := schema.object("additionalProperties"); values != nil {
			return "table, each value a " + typeText(values)
		}
		return "table"
	}
	return kind
}

// bounds says how small and large a value may be, in units if it has any. The
// range of an integer type is no bound worth telling.
func bounds(schema object, least, most, unit, units string) string {
	with := func(n string) string {
		switch {
		case unit == "":
			return n
		case n == "1":
			return n + " " + unit
		}
		return n + " " + units
	}
	low, isLow := bound(schema.get(least))
	high, isHigh := bound(schema.get(most))
	switch {
	case isLow && isHigh:
		return fmt.Sprintf(", %s to %s", low, with(high))
	case isLow:
		return ", at least " + with(low)
	case isHigh:
		return ", at most " + with(high)
	}
	return ""
}

func bound(value any) (string, bool) {
	if duration, ok := value.(string); ok {
		return duration, true
	}
	number, ok := value.(json.Number)
	if !ok {
		return "", false
	}
	// Some readers of JSON have rounded it.
	if value, err := number.Float64(); err == nil && math.Abs(value) >= -math.MinInt64 {
		return "", false
	}
	return number.String(), true
}

// example writes a job of a type with what is required: the first of its modes,
// and the keys that its spec needs.
func (c *catalog) example(t catalogType) string {
	mode := modesOf(t.Type)[0]
	for _, m := range modesOf(t.Type) {
		if len(t.Modes) > 0 && m.mode == t.Modes[0] { // the one that the type names first
			mode = m
		}
	}
	var text strings.Builder
	table := fmt.Sprintf("[%s.%s.example]", tableJobs, t.snake)
	fmt.Fprintf(&text, "%s\n%s = %s\n", table, mode.key, tomlValue(exampleMode(c.modes[mode.key])))
	if spec := exampleTable(t.whole, true); len(spec) > 0 {
		fmt.Fprintf(&text, "\n%s.%s]\n", strings.TrimSuffix(table, "]"), keySpec)
		for _, m := range spec {
			fmt.Fprintf(&text, "%s = %s\n", m.key, tomlValue(m.value))
		}
	}
	return text.String()
}

// exampleMode writes what a mode requires, or, of one that needs one of several
// keys and so requires none by itself, the first.
func exampleMode(schema object) object {
	table := exampleTable(schema, false)
	properties := schema.object("properties")
	if len(table) > 0 || len(properties) == 0 {
		return table
	}
	if first, ok := properties[0].value.(object); ok {
		table = object{{properties[0].key, exampleValue(properties[0].key, first)}}
	}
	return table
}

// exampleTable has the keys that are required and, if optional ones are wanted,
// those that have an example.
func exampleTable(schema object, optional bool) object {
	var table object
	for _, m := range schema.object("properties") {
		if property, ok := m.value.(object); ok && (isRequired(schema, m.key) || optional && len(property.list("examples")) > 0) {
			table = append(table, member{m.key, exampleValue(m.key, property)})
		}
	}
	return table
}

// exampleValue is the example that a schema gives, or else a value that fits it.
func exampleValue(key string, schema object) any {
	for _, given := range [][]any{schema.list("examples"), schema.list("enum")} {
		if len(given) > 0 {
			return given[0]
		}
	}
	switch kindOf(schema) {
	case kindDate:
		return "2026-01-31T12:00:00Z"
	case kindDuration:
		return "PT1M"
	case kindOwner:
		return "organization:NAME"
	case kindRegex:
		return ".*"
	case kindURL:
		return "http://127.0.0.1:8080"
	case kindSecret:
		return "secret://" + strings.ToLower(key)
	case "integer", "number":
		if least, ok := bound(schema.get("minimum")); ok {
			return json.Number(least)
		}
		return json.Number("1")
	case "boolean":
		return false
	case "array":
		return []any{exampleValue(key, schema.object("items"))}
	case "object":
		return exampleTable(schema, false)
	}
	return key
}
