package influx

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	client "github.com/influxdata/influxdb1-client/v2"
)

// FieldType is the type of a field's values.
type FieldType string

// The types, in the order in which the server prefers them where the shards of a database
// have several for one field.
const (
	FieldFloat   FieldType = "float"
	FieldInteger FieldType = "integer"
	FieldString  FieldType = "string"
	FieldBoolean FieldType = "boolean"
)

// FieldTypes lists them in that order.
func FieldTypes() []FieldType {
	return []FieldType{FieldFloat, FieldInteger, FieldString, FieldBoolean}
}

// Measurements has the types of the fields of measurements, by measurement and field. A
// field has several types if the shards of the database do not agree.
type Measurements map[string]map[string][]FieldType

func (m Measurements) add(measurement, field string, t FieldType) {
	fields := m[measurement]
	if fields == nil {
		fields = map[string][]FieldType{}
		m[measurement] = fields
	}
	if !slices.Contains(fields[field], t) {
		fields[field] = append(fields[field], t)
	}
}

// ErrNoDatabase says that the server has no database of the name.
var ErrNoDatabase = errors.New("database not found")

// Fields reads the measurements of a database, and the types of their fields. Those for
// which keep is false are left out. The error is an [*Error], or wraps [ErrNoDatabase].
func Fields(ctx context.Context, config Config, database string, keep func(measurement string) bool) (Measurements, error) {
	base, err := parseURL(config.URL)
	if err != nil {
		return nil, err
	}
	found := Measurements{}
	// In chunks, since a database may have a hundred thousand measurements.
	query := url.Values{"q": {"SHOW FIELD KEYS"}, "db": {database}, "chunked": {"true"}}
	err = config.ask(ctx, base, query, func(part *client.Response) error { return found.addChunk(part, keep) })
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, config.schemaError(base, database, err)
	}
	return found, nil
}

// addChunk adds a part of the answer to SHOW FIELD KEYS: rows of a field and its type.
func (m Measurements) addChunk(chunk *client.Response, keep func(string) bool) error {
	for _, result := range chunk.Results {
		for _, series := range result.Series {
			if !keep(series.Name) {
				continue
			}
			for _, row := range series.Values {
				field, fieldType, ok := fieldOf(row)
				if !ok {
					return fmt.Errorf("a field of measurement %.100q is %v, not a name and a type", series.Name, row)
				}
				m.add(series.Name, field, fieldType)
			}
		}
	}
	return nil
}

func fieldOf(row []any) (field string, t FieldType, ok bool) {
	if len(row) != 2 {
		return "", "", false
	}
	field, ok = row[0].(string)
	text, isText := row[1].(string)
	if text == "unsigned" { // Only a server that was built for it has them.
		text = string(FieldInteger)
	}
	return field, FieldType(text), ok && isText && slices.Contains(FieldTypes(), FieldType(text))
}

// schemaError tells what a query about a database failed for.
func (c Config) schemaError(base, database string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	kind := KindTransient
	switch {
	case strings.Contains(text, ErrNoDatabase.Error()):
		return fmt.Errorf("influx %s: %w: %s", base, ErrNoDatabase, database)
	case strings.Contains(text, "authoriz"), strings.Contains(text, "authentication"), strings.Contains(text, "expected json response"):
		kind = KindConfig
	}
	return &Error{Kind: kind, Address: base, Text: "database " + database + ": " + c.redact(text)}
}
