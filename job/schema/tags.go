package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
)

// tagNames are the tags that a field may have.
var tagNames = []string{
	"json", "help", "default", "example", "enum", "format", "pattern", "minLength", "maxLength",
	"minimum", "exclusiveMinimum", "maximum", "minItems", "maxItems", "uniqueItems",
}

// tagFormats are the values of the tag format.
var tagFormats = []string{formatRegex, FormatURL}

// declare takes what the tags of a field say about its values.
func (n *node) declare(tag reflect.StructTag) error {
	for _, pair := range tagPairs(tag) {
		if err := n.keyword(pair.name, pair.value); err != nil {
			return fmt.Errorf("tag %s: %w", pair.name, err)
		}
	}
	return nil
}

type tagPair struct{ name, value string }

var tagPattern = regexp.MustCompile(`([^\s:"]+):("(?:[^"\\]|\\.)*")`)

func tagPairs(tag reflect.StructTag) []tagPair {
	var pairs []tagPair
	for _, found := range tagPattern.FindAllStringSubmatch(string(tag), -1) {
		value, err := strconv.Unquote(found[2])
		if err != nil {
			value = found[2]
		}
		pairs = append(pairs, tagPair{found[1], value})
	}
	return pairs
}

func (n *node) keyword(name, text string) (err error) {
	switch name {
	case "json":
	case "help":
		n.Description = text
	case "default":
		n.Default, err = n.parse(text)
		if n.Default == true {
			err = errors.New("a boolean that is left out is false")
		}
	case "example":
		var example any
		example, err = n.parse(text)
		n.Examples = []any{example}
	case "uniqueItems":
		n.UniqueItems = text == "true"
		err = n.wants("array")
	case "minItems":
		n.MinItems, err = number(text), n.wants("array")
	case "maxItems":
		n.MaxItems, err = number(text), n.wants("array")
	default:
		err = n.value().bound(name, text)
	}
	return err
}

// bound sets a bound of a single value.
func (n *node) bound(name, text string) (err error) {
	switch name {
	case "enum":
		for part := range strings.SplitSeq(text, ",") {
			n.Enum = append(n.Enum, part)
		}
		err = n.wants("string")
	case "format":
		if n.Format, err = text, n.wants("string"); err == nil && !slices.Contains(tagFormats, text) {
			err = errors.New(Unknown("format", text, tagFormats))
		}
	case "pattern":
		n.Pattern, err = text, n.wants("string")
	case "minLength":
		n.MinLength, err = number(text), n.wants("string")
	case "maxLength":
		n.MaxLength, err = number(text), n.wants("string")
	case "minimum", "maximum", "exclusiveMinimum":
		err = n.limit(name, text)
	default:
		err = errors.New(Unknown("tag", name, tagNames))
	}
	return err
}

// limit bounds a number or a duration.
func (n *node) limit(name, text string) error {
	if n.Format == FormatDuration {
		_, err := job.ParseDuration(text)
		switch name {
		case "minimum":
			n.FormatMinimum = text
		case "maximum":
			n.FormatMaximum = text
		default:
			err = errors.New("a duration has a minimum and a maximum")
		}
		return err
	}
	switch name {
	case "minimum":
		n.Minimum = number(text)
	case "maximum":
		n.Maximum = number(text)
	default:
		n.ExclusiveMinimum = number(text)
	}
	return n.wants("integer", "number")
}

func number(text string) json.Number { return json.Number(text) }

// value is the schema of a single value: of the items if n is a list.
func (n *node) value() *node {
	for n.Items != nil {
		n = n.Items
	}
	return n
}

func (n *node) wants(types ...string) error {
	if name, _ := n.Type.(string); !slices.Contains(types, name) {
		return fmt.Errorf("it is for a value of type %s", strings.Join(types, " or "))
	}
	return nil
}

// parse reads a value from a tag: a string as it is, all else as JSON.
func (n *node) parse(text string) (any, error) {
	if n.Type == "string" || n.Format == FormatDuration {
		return text, nil
	}
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("%q is not JSON: %w", text, err)
	}
	return value, nil
}
