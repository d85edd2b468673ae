package activities_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

// table is a JSON schema of a table, as far as these tests read it.
type table struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

type property struct {
	table
	Type          any       `json:"type"`
	Format        string    `json:"format"`
	Description   string    `json:"description"`
	Default       any       `json:"default"`
	Examples      []any     `json:"examples"`
	Enum          []any     `json:"enum"`
	Pattern       string    `json:"pattern"`
	MinLength     *int      `json:"minLength"`
	MaxLength     *int      `json:"maxLength"`
	Minimum       *float64  `json:"minimum"`
	Maximum       *float64  `json:"maximum"`
	FormatMinimum string    `json:"formatMinimum"`
	FormatMaximum string    `json:"formatMaximum"`
	MinItems      *int      `json:"minItems"`
	MaxItems      *int      `json:"maxItems"`
	Items         *property `json:"items"`
}

func schemaOf(t *testing.T, typ job.Type) (table, *schema.Schema) {
	t.Helper()
	schema, _, err := schema.OfType(typ)
	require.NoError(t, err)
	var root table
	require.NoError(t, json.Unmarshal(schema.JSON(), &root))
	return root, schema
}

// example is a value that fits a property.
func example(name string, p property) any {
	switch {
	case len(p.Examples) > 0:
		return p.Examples[0]
	case len(p.Enum) > 0:
		return p.Enum[0]
	case p.Default != nil:
		return p.Default
	case p.Format == schema.FormatDuration:
		return "PT1M"
	case p.Format == "date-time":
		return "2026-01-31T12:00:00Z"
	case p.Pattern == job.SecretPattern:
		return "secret://name"
	case p.Type == "integer":
		return 1
	case p.Type == "array":
		return []any{example(name, *p.Items)}
	case p.Type == "object":
		return required(p.table)
	}
	return name
}

// required is a table with the keys that it needs.
func required(of table) map[string]any {
	values := map[string]any{}
	for _, name := range of.Required {
		values[name] = example(name, of.Properties[name])
	}
	return values
}

// minimal is the least spec of a type that has nothing to refuse.
func minimal(typ job.Type, of table) map[string]any {
	spec := required(of)
	if _, found := of.Properties["influx_url"]; found {
		spec["influx_url"], spec["username"], spec["password"] = "http://127.0.0.1:8086", "name", "secret://name"
	}
	return spec
}

// outside lists values that a property refuses by a bound of its own.
func outside(p property) []any {
	var values []any
	if len(p.Enum) > 0 {
		values = append(values, "none of them")
	}
	if p.Pattern != "" {
		values = append(values, "\n/\n")
	}
	if p.Format == schema.FormatURL {
		values = append(values, "ftp://127.0.0.1", "http://user:word@127.0.0.1")
	}
	if p.MinLength != nil {
		values = append(values, strings.Repeat("x", *p.MinLength-1))
	}
	if p.MaxLength != nil {
		values = append(values, strings.Repeat("x", *p.MaxLength+1))
	}
	if p.Minimum != nil && p.Format == "" && *p.Minimum > -1e15 {
		values = append(values, int64(*p.Minimum)-1)
	}
	if p.Maximum != nil && *p.Maximum < 1e15 {
		values = append(values, int64(*p.Maximum)+1)
	}
	if p.FormatMinimum != "" {
		values = append(values, "PT0S")
	}
	if p.FormatMaximum != "" {
		values = append(values, "P9999D")
	}
	if p.MinItems != nil {
		values = append(values, []any{})
	}
	if p.MaxItems != nil {
		values = append(values, slices.Repeat([]any{example("x", *p.Items)}, *p.MaxItems+1))
	}
	return values
}

// TestEveryFieldHasHelp fails for a field of a spec without a tag help.
func TestEveryFieldHasHelp(t *testing.T) {
	t.Parallel()
	for _, typ := range activities.Types() {
		var walk func(path string, of table)
		walk = func(path string, of table) {
			for name, p := range of.Properties {
				require.NotEmpty(t, p.Description, "%s%s.%s: a tag help", typ.Name, path, name)
				require.NotContains(t, p.Description, "at most PT", "%s%s.%s: a bound is a tag of its own", typ.Name, path, name)
				walk(path+"."+name, p.table)
				if p.Items != nil {
					walk(path+"."+name+"[]", p.Items.table)
				}
			}
		}
		root, _ := schemaOf(t, typ)
		walk("", root)
	}
}

// TestDefaultsOfSpecs decodes the least spec of each type: what is filled in is what
// the schema says, and the schema takes it.
func TestDefaultsOfSpecs(t *testing.T) {
	t.Parallel()
	for _, typ := range activities.Types() {
		root, schema := schemaOf(t, typ)
		spec := reflect.New(typ.Spec).Interface()
		require.NoError(t, job.DecodeSpec(job.EncodeJSON(minimal(typ, root)), spec), typ.Name)
		filled := map[string]any{}
		require.NoError(t, json.Unmarshal(job.EncodeJSON(spec), &filled))
		for name, p := range root.Properties {
			if p.Default != nil {
				require.Equal(t, p.Default, filled[name], "%s.%s", typ.Name, name)
			}
		}
		require.Empty(t, schema.Check(filled), typ.Name)
	}
}

// TestEachBoundStandsInOnePlace gives every field of every spec values outside of
// its bounds. The schema refuses each in one sentence that names the field, and
// Validate, which sees it without the schema, has nothing to say of it.
func TestEachBoundStandsInOnePlace(t *testing.T) {
	t.Parallel()
	bounds := 0
	for _, typ := range activities.Types() {
		root, schema := schemaOf(t, typ)
		for _, name := range slices.Sorted(maps.Keys(root.Properties)) {
			for _, value := range outside(root.Properties[name]) {
				bounds++
				spec := minimal(typ, root)
				spec[name] = value
				problems := schema.Check(spec)
				require.NotEmpty(t, problems, "%s.%s = %v", typ.Name, name, value)
				for _, problem := range problems {
					require.Equal(t, name, problem.Path[0])
					require.NotContains(t, problem.Message, "\n")
				}
				if _, list := value.([]any); list {
					continue // Of equal items, which other rules refuse.
				}
				err := job.DecodeSpec(job.EncodeJSON(spec), reflect.New(typ.Spec).Interface())
				if err != nil {
					require.NotContains(t, err.Error(), name, "%s: Validate repeats a bound of %s", typ.Name, name)
				}
			}
		}
	}
	require.Greater(t, bounds, 50)
}

// TestNamesInSubjects: names that become parts of subjects have neither dots nor
// wildcards nor spaces. Organizations of Release 2 have capitals.
func TestNamesInSubjects(t *testing.T) {
	t.Parallel()
	found := 0
	for _, typ := range activities.Types() {
		root, schema := schemaOf(t, typ)
		for _, name := range []string{"organization", "location", "source"} {
			if _, ok := root.Properties[name]; !ok {
				continue
			}
			found++
			for _, value := range []string{"", "a.b", "*", ">", "a b", "A", "-a", strings.Repeat("a", 65)} {
				spec := minimal(typ, root)
				spec[name] = value
				require.Equal(t, name == "organization" && value == "A", len(schema.Check(spec)) == 0, "%s.%s = %q", typ.Name, name, value)
			}
		}
	}
	require.Equal(t, 14, found)
}
