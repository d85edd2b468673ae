package jobsfile

import (
	"fmt"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
)

// Reference is a page in Markdown of what jobs of the given types take: of each
// type its worker, modes, spec and an example, and the modes and options of all.
// It comes from what [Schema] comes from, and is the same for the same types.
//
// The examples hold the keys that are required, and those that the tag example
// gives a value, with that value.
func Reference(types []job.Type) ([]byte, error) {
	c, err := newCatalog(types)
	if err != nil {
		return nil, err
	}
	var p page
	p.line("# Job reference")
	p.line("")
	p.line("What the jobs of `jobs.toml` take. `starter schema --markdown` writes this page from the job types;")
	p.line("[jobs-toml.md](jobs-toml.md) describes the file, and [how durations, dates and secrets are written](jobs-toml.md#values).")
	p.typeList(c.types)
	for _, t := range c.types {
		p.jobType(c, t)
	}
	p.modes(c)
	if err := p.options(c); err != nil {
		return nil, err
	}
	return []byte(p.text.String()), nil
}

// page is a Markdown text being written.
type page struct{ text strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// row writes a row of a table; an empty cell is a dash.
func (p *page) row(cells ...string) {
	for _, cell := range cells {
		if cell == "" {
			cell = "–"
		}
		p.text.WriteString("| " + strings.NewReplacer("|", `\|`, "\n", " ").Replace(cell) + " ")
	}
	p.text.WriteString("|\n")
}

func (p *page) header(cells ...string) {
	p.line("")
	p.row(cells...)
	p.line("%s|", strings.Repeat("|---", len(cells)))
}

func (p *page) typeList(types []catalogType) {
	p.header("job type", "what it does")
	for _, t := range types {
		p.row(fmt.Sprintf("[`%s`](#%s)", t.snake, t.snake), t.Description)
	}
	p.line("")
	p.line("Every job also has [one mode](#modes), and may have [options](#options).")
}

func (p *page) jobType(c *catalog, t catalogType) {
	p.line("\n## %s", t.snake)
	p.line("\nJob type `%s`, worker `%s`, modes %s.", t.Name, t.Worker, modeNames(t.Type))
	if len(t.whole.object("properties")) > 0 {
		p.header("key of `spec`", "type", "default", "meaning")
		p.keys("", t.whole, func(_ string, schema object) string { return defaultText(schema) })
	}
	p.line("\n```toml\n%s```", c.example(t))
}

// keys writes a row for each key of a table, and for those of tables in it.
func (p *page) keys(prefix string, table object, defaultOf func(path string, schema object) string) {
	for _, m := range table.object("properties") {
		schema, _ := m.value.(object)
		path := prefix + m.key
		standard := defaultOf(path, schema)
		if isRequired(table, m.key) {
			standard = "required"
		}
		p.row(code(path), typeText(schema), standard, schema.text("description"))
		p.keys(path+".", schema, defaultOf)
		p.keys(path+"[].", schema.object("items"), defaultOf)
	}
}

func (p *page) modes(c *catalog) {
	p.line("\n## Modes")
	p.line("\nExactly one of these tables stands in every job.")
	p.header("key", "type", "default", "meaning")
	for _, m := range modeTables() {
		p.row(code(m.key), "table", "", m.description)
		p.keys(m.key+".", c.modes[m.key], func(_ string, schema object) string { return defaultText(schema) })
	}
}

func (p *page) options(c *catalog) error {
	p.line("\n## Options")
	p.line("\nThey stand in a job, in `[%s.TYPE]` for the jobs of a type, or in `[%s]` for all.", tableJobs, tableDefaults)
	p.header("key", "type", "default", "meaning")
	continuous, err := defaultsOf(job.ModeContinuous)
	if err != nil {
		return err
	}
	p.keys("", object{{"properties", c.options}}, func(path string, schema object) string {
		text := defaultText(schema)
		if other := continuous.get(path); other != nil && schema.get("default") != nil && other != schema.get("default") {
			text += ", in continuous mode " + code(valueText(other))
		}
		return text
	})
	return nil
}

func isRequired(table object, key string) bool {
	for _, required := range table.list("required") {
		if required == key {
			return true
		}
	}
	return false
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func modeNames(t job.Type) string {
	var names []string
	for _, m := range modesOf(t) {
		names = append(names, code(m.key))
	}
	return strings.Join(names, ", ")
}

func defaultText(schema object) string {
	if value := schema.get("default"); value != nil {
		return code(valueText(value))
	}
	return ""
}

// valueText writes a value as TOML does, but strings without quotes.
func valueText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	return tomlValue(value)
}
