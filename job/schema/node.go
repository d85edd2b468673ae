package schema

import (
	"bytes"
	"encoding/json"
)

// dialect is the draft of JSON Schema that schemas are written in.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// node is a schema in the making. Its fields are the keywords in use.
type node struct {
	Dialect              string      `json:"$schema,omitempty"`
	Type                 any         `json:"type,omitempty"` // a string, or several
	Format               string      `json:"format,omitempty"`
	Enum                 []any       `json:"enum,omitempty"`
	Pattern              string      `json:"pattern,omitempty"`
	MinLength            json.Number `json:"minLength,omitempty"`
	MaxLength            json.Number `json:"maxLength,omitempty"`
	Minimum              json.Number `json:"minimum,omitempty"`
	ExclusiveMinimum     json.Number `json:"exclusiveMinimum,omitempty"`
	Maximum              json.Number `json:"maximum,omitempty"`
	FormatMinimum        string      `json:"formatMinimum,omitempty"`
	FormatMaximum        string      `json:"formatMaximum,omitempty"`
	MinItems             json.Number `json:"minItems,omitempty"`
	MaxItems             json.Number `json:"maxItems,omitempty"`
	UniqueItems          bool        `json:"uniqueItems,omitempty"`
	Items                *node       `json:"items,omitempty"`
	Properties           properties  `json:"properties,omitempty"`
	AdditionalProperties any         `json:"additionalProperties,omitempty"` // false, or a *node
	Required             []string    `json:"required,omitempty"`
	Default              any         `json:"default,omitempty"`
	Examples             []any       `json:"examples,omitempty"`
	Description          string      `json:"description,omitempty"`
}

// properties are the keys of a table in the order of the fields.
type properties []property

type property struct {
	name   string
	schema *node
}

// MarshalJSON writes an object with its keys in order.
func (p properties) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	separator := byte('{')
	for _, property := range p {
		name, err := json.Marshal(property.name)
		if err != nil {
			return nil, err
		}
		schema, err := json.Marshal(property.schema)
		if err != nil {
			return nil, err
		}
		text.WriteByte(separator)
		text.Write(name)
		text.WriteByte(':')
		text.Write(schema)
		separator = ','
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}
