package release2

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed schemas.json
var schemas []byte

// service is a kind of documents, with what its writes may hold.
type service struct {
	name     string
	defaults document
	create   *jsonschema.Schema // also of an update
	patch    *jsonschema.Schema
}

// described is a service in schemas.json.
type described struct {
	ID         any            `json:"id"`
	Properties map[string]any `json:"properties"`
	Required   []string       `json:"required"`
	NotPatched []string       `json:"notPatched"`
	Defaults   document       `json:"defaults"`
}

// readServices makes the services of schemas.json.
func readServices() (map[string]*service, error) {
	var file struct {
		Definitions map[string]any       `json:"definitions"`
		Services    map[string]described `json:"services"`
	}
	if err := json.Unmarshal(schemas, &file); err != nil {
		return nil, err
	}
	services := make(map[string]*service, len(file.Services))
	for name, d := range file.Services {
		s := &service{name: name, defaults: d.Defaults}
		var err error
		if s.create, err = compile(name+".create.json", d.created(), file.Definitions); err != nil {
			return nil, err
		}
		if s.patch, err = compile(name+".patch.json", d.patched(), file.Definitions); err != nil {
			return nil, err
		}
		services[name] = s
	}
	return services, nil
}

func (d described) created() map[string]any {
	properties := maps.Clone(d.Properties)
	properties["_id"] = d.ID
	schema := object(properties)
	schema["required"] = d.Required
	return schema
}

// patched is the schema of a patch: what is required cannot be unset.
func (d described) patched() map[string]any {
	set, unset := map[string]any{}, map[string]any{}
	for name, schema := range d.Properties {
		if slices.Contains(d.NotPatched, name) {
			continue
		}
		set[name] = schema
		if !slices.Contains(d.Required, name) {
			unset[name] = map[string]any{"const": ""}
		}
	}
	return object(map[string]any{"$set": object(set), "$unset": object(unset)})
}

func object(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func compile(name string, schema, definitions map[string]any) (*jsonschema.Schema, error) {
	schema["definitions"] = definitions
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, parsed); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	return compiler.Compile(name)
}
