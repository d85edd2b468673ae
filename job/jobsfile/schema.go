package jobsfile

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

// draft is the dialect of [Schema]: the newest that editors of TOML have in
// common. The schemas that it is composed of use nothing newer.
const draft = "http://json-schema.org/draft-07/schema#"

// Schema is a JSON schema (draft 07) of a jobs file with jobs of the given
// types, for editors: Taplo uses the one that a comment on the first line of a
// file names, "#:schema ./jobs.schema.json". It is composed of the schemas that
// [Read] checks with, and the same for the same types.
//
// It accepts every file that Read accepts. It cannot say what spans several
// keys or tables (a spec's Validate, the bounds of durations), and editors take
// every string for a duration or an owner.
func Schema(types []job.Type) ([]byte, error) {
	c, err := newCatalog(types)
	if err != nil {
		return nil, err
	}
	jobs := object{}
	for _, t := range c.types {
		jobs = append(jobs, member{t.snake, c.typeTable(t)})
	}
	schema := object{
		{"$schema", draft},
		{"title", "jobs.toml"},
		{"description", "Jobs of Dendra Jobs"},
		{"type", "object"},
		{"properties", object{
			{tableDefaults, object{
				{"description", "Options that every job inherits"},
				{"type", "object"},
				{"properties", c.options},
				{"additionalProperties", false},
			}},
			{tableJobs, object{
				{"description", "Jobs by the snake case names of their types"},
				{"type", "object"},
				{"properties", jobs},
				{"additionalProperties", false},
			}},
		}},
		{"additionalProperties", false},
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		return nil, fmt.Errorf("schema of jobs files: %w", err)
	}
	return text.Bytes(), nil
}

// catalog is what can stand in a jobs file, as the reader checks it.
type catalog struct {
	options object // the schema of each, with its default
	modes   map[string]object
	types   []catalogType
}

// catalogType is a job type with the schemas of its spec: of a whole one, and
// of the part of one that its jobs share.
type catalogType struct {
	job.Type
	snake   string
	whole   object
	partial object
}

func newCatalog(types []job.Type) (*catalog, error) {
	r, err := newReader(nil, types)
	if err != nil {
		return nil, err
	}
	c := &catalog{modes: map[string]object{}}
	options, err := plainSchema(r.options)
	if err != nil {
		return nil, err
	}
	if c.options, err = withDefaults(options.object("properties")); err != nil {
		return nil, err
	}
	for _, m := range modeTables() {
		settings, err := plainSchema(r.modes[m.key])
		if err != nil {
			return nil, err
		}
		c.modes[m.key] = append(object{{"description", m.description}}, settings...)
	}
	for _, t := range types {
		entry := catalogType{Type: t, snake: job.SnakeCase(t.Name)}
		if entry.whole, err = plainSchema(r.types[entry.snake].whole); err != nil {
			return nil, err
		}
		if entry.partial, err = plainSchema(r.types[entry.snake].partial); err != nil {
			return nil, err
		}
		c.types = append(c.types, entry)
	}
	return c, nil
}

// plainSchema is a schema to be part of another; any table if there is none.
func plainSchema(s *schema.Schema) (object, error) {
	if s == nil {
		return object{{"type", "object"}}, nil
	}
	parsed, err := parseObject(s.JSON())
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return parsed.without("$schema"), nil
}

// withDefaults adds the defaults of options to their schemas.
func withDefaults(options object) (object, error) {
	values, err := defaultsOf(job.ModeOneShot)
	if err != nil {
		return nil, err
	}
	return addDefaults(options, values), nil
}

func defaultsOf(mode job.Mode) (object, error) {
	text, err := json.Marshal(job.DefaultOptions(mode))
	if err != nil {
		return nil, fmt.Errorf("default options: %w", err)
	}
	return parseObject(text)
}

func addDefaults(properties, values object) object {
	var done object
	for _, p := range properties {
		schema, _ := p.value.(object)
		switch value := values.get(p.key).(type) {
		case object:
			schema = schema.with("properties", addDefaults(schema.object("properties"), value))
		case nil:
			if schema.text("type") == "boolean" { // false is left out of the JSON
				schema = schema.with("default", false)
			}
		default:
			schema = schema.with("default", value)
		}
		done = append(done, member{p.key, schema})
	}
	return done
}

// optionReferences points to the options of the defaults, which every table
// has that can hold options.
func (c *catalog) optionReferences() object {
	var references object
	for _, option := range c.options {
		references = append(references, member{option.key, object{
			{"$ref", "#/properties/" + tableDefaults + "/properties/" + option.key},
		}})
	}
	return references
}

// typeTable is the schema of [jobs.TYPE].
func (c *catalog) typeTable(t catalogType) object {
	shared := append(object{{"description", "The part of the spec that the jobs share; a key in a job's spec replaces that key here"}},
		t.partial...)
	properties := append(c.optionReferences(), member{keySpec, shared})
	modes := []any{}
	for _, m := range modeTables() {
		modes = append(modes, m.key)
	}
	table := object{
		{"title", t.Name},
		{"description", t.Description},
		{"type", "object"},
		{"properties", properties},
		{"propertyNames", object{{"pattern", job.KeyPattern}, {"not", object{{"enum", modes}}}}},
		{"additionalProperties", c.jobTable(t)},
	}
	if required := requiredKeys(t, properties); len(required) > 0 {
		table = append(table, member{"allOf", required})
	}
	return table
}

// requiredKeys says of each key that a spec needs: unless the jobs share it,
// every job has it. A job is what is not one of the type's own properties.
func requiredKeys(t catalogType, properties object) []any {
	var own object
	for _, p := range properties {
		own = append(own, member{p.key, object{}})
	}
	var rules []any
	for _, key := range t.whole.list("required") {
		has := object{
			{"required", []any{keySpec}},
			{"properties", object{{keySpec, object{{"required", []any{key}}}}}},
		}
		rules = append(rules, object{
			{"if", has},
			{"else", object{{"properties", own}, {"additionalProperties", has}}},
		})
	}
	return rules
}

// jobTable is the schema of [jobs.TYPE.KEY].
func (c *catalog) jobTable(t catalogType) object {
	var properties object
	var oneOf []any
	for _, m := range modesOf(t.Type) {
		properties = append(properties, member{m.key, c.modes[m.key]})
		oneOf = append(oneOf, object{{"required", []any{m.key}}})
	}
	spec := append(object{{"description", "What " + t.Name + " is to do"}}, t.whole.without("required")...)
	properties = append(append(properties, member{keySpec, spec}), c.optionReferences()...)
	return object{
		{"title", "Job of type " + t.Name},
		{"description", t.Description},
		{"type", "object"},
		{"properties", properties},
		{"additionalProperties", false},
		{"oneOf", oneOf},
	}
}
