package jobsfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

// FieldKind says how a form asks for a value.
type FieldKind string

// Kinds of fields. What people type is text in all of them but FieldTable.
const (
	FieldText   FieldKind = "text"   // a string, a duration, a time, a secret
	FieldNumber FieldKind = "number" // a number, whole or not
	FieldCheck  FieldKind = "check"  // true or nothing
	FieldChoice FieldKind = "choice" // one of Choices
	FieldLines  FieldKind = "lines"  // a list of single values, one per line
	FieldJSON   FieldKind = "json"   // all else, as JSON
	FieldTable  FieldKind = "table"  // Fields
)

// Field is a key of a table as a form asks for it.
type Field struct {
	// Path leads to it, with dots: spec.bucket. It names the field in the form.
	Path string
	Key  string
	Kind FieldKind
	// Type says which values it takes, and Help what it is for.
	Type, Help string
	// Default and Example are as people type them.
	Default, Example string
	Required         bool
	Choices          []string
	Fields           []Field
	item             FieldKind // of Lines
}

// formDepth is how many tables deep a form has fields of its own. Deeper ones are JSON.
const formDepth = 3

// Form asks for a job of a type and a mode.
type Form struct {
	// Fields are the settings of the mode, the spec, and the options.
	Fields  []Field
	typed   string // the job type
	modeKey string
	mode    job.Mode
	spec    *schema.Schema // nil if nothing is known of it
	reader  *reader
}

// KeyPath is the path of the field of a job's key. No other path begins with a dot.
const KeyPath = ".key"

// NewForm makes the form of the jobs of a type, by the JSON Schema of its spec, that have a
// mode, by the key of its table in a file, such as one_shot.
func NewForm(typeName, modeKey string, specSchema []byte) (*Form, error) {
	c, err := newCatalog(nil)
	if err != nil {
		return nil, err
	}
	settings, ok := c.modes[modeKey]
	if !ok {
		return nil, fmt.Errorf("there is no mode %q", modeKey)
	}
	f := &Form{typed: typeName, modeKey: modeKey, mode: modeOfKey(modeKey)}
	if f.reader, err = newReader(nil, nil); err != nil {
		return nil, err
	}
	spec := object{}
	if len(specSchema) > 0 {
		if f.spec, err = schema.Parse(specSchema); err != nil {
			return nil, fmt.Errorf("the schema of the spec: %w", err)
		}
		if spec, err = parseObject(specSchema); err != nil {
			return nil, fmt.Errorf("the schema of the spec: %w", err)
		}
	}
	standard, err := defaultsOf(f.mode)
	if err != nil {
		return nil, err
	}
	f.Fields = []Field{fieldOf(modeKey, modeKey, settings, 1), fieldOf(keySpec, keySpec, spec, 1)}
	for i := range f.Fields { // One without fields has no keys, or takes any.
		f.Fields[i].Required = f.Fields[i].Kind == FieldTable
	}
	for _, option := range addDefaults(c.options, standard) {
		if of, ok := option.value.(object); ok && job.Inherits(f.mode, option.key) {
			f.Fields = append(f.Fields, fieldOf(option.key, option.key, of, 1))
		}
	}
	return f, nil
}

func modeOfKey(key string) job.Mode {
	for _, m := range modeTables() {
		if m.key == key {
			return m.mode
		}
	}
	return ""
}

func fieldOf(path, key string, of object, depth int) Field {
	f := Field{Path: path, Key: key, Type: typeText(of), Help: of.text("description"), Default: typed(of.get("default"))}
	if examples := of.list("examples"); len(examples) > 0 {
		f.Example = typed(examples[0])
	} else if kindOf(of) == kindDate {
		f.Example = typed(exampleValue(key, of))
	}
	f.Kind = kindOfField(of)
	switch f.Kind {
	case FieldChoice:
		for _, value := range of.list("enum") {
			f.Choices = append(f.Choices, typed(value))
		}
	case FieldLines:
		f.item = kindOfField(of.object("items"))
	case FieldTable:
		if depth >= formDepth {
			f.Kind = FieldJSON
			break
		}
		for _, p := range of.object("properties") {
			if property, ok := p.value.(object); ok {
				below := fieldOf(path+"."+p.key, p.key, property, depth+1)
				below.Required = isRequired(of, p.key)
				f.Fields = append(f.Fields, below)
			}
		}
		slices.SortStableFunc(f.Fields, func(a, b Field) int { // What is required comes first.
			return cmp.Compare(strconv.FormatBool(b.Required), strconv.FormatBool(a.Required))
		})
	}
	return f
}

func kindOfField(of object) FieldKind {
	if len(of.list("enum")) > 0 {
		return FieldChoice
	}
	switch kind := kindOf(of); kind {
	case "string", kindDate, kindDuration, kindOwner, kindRegex, kindSecret, kindURL:
		return FieldText
	case "integer", "number":
		return FieldNumber
	case "boolean":
		return FieldCheck
	case "array":
		switch kindOfField(of.object("items")) {
		case FieldText, FieldNumber, FieldChoice:
			return FieldLines
		}
	case "object":
		if len(of.object("properties")) > 0 {
			return FieldTable
		}
	}
	return FieldJSON
}

// typed is a value as people type it.
func typed(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// Read makes a job of what was typed, by the paths of the fields. What is empty is left out.
// The paths of the problems are those of fields, or lead to a table or into a value of one.
func (f *Form) Read(typed func(path string) string) (job.Job, []job.Problem) {
	key := strings.TrimSpace(typed(KeyPath))
	table, problems := readTable(f.Fields, typed)
	if key == "" {
		problems = append(problems, job.Problem{Path: []string{KeyPath}, Message: "it is missing"})
	} else if err := job.CheckKey("key", key); err != nil {
		problems = append(problems, job.Problem{Path: []string{KeyPath}, Message: err.Error()})
	}
	j, more := f.job(key, table)
	found := map[string]bool{}
	for _, p := range problems {
		found[p.Path[0]] = true
	}
	for _, p := range more { // Of a part that is not read yet there is no more to say.
		if len(p.Path) == 0 || !found[p.Path[0]] {
			problems = append(problems, p)
		}
	}
	return j, problems
}

// Place is the path of the field that a problem is about, which may lie within its value. It
// is "" if there is none.
func (f *Form) Place(path []string) string { return place(f.Fields, strings.Join(path, ".")+".") }

func place(fields []Field, path string) string {
	for _, f := range fields {
		if strings.HasPrefix(path, f.Path+".") {
			return cmp.Or(place(f.Fields, path), f.Path)
		}
	}
	return ""
}

// readTable makes a table of what was typed, as a file would have it. The problems are those
// of what cannot be read and of what is missing.
func readTable(fields []Field, typed func(path string) string) (map[string]any, []job.Problem) {
	table, problems := map[string]any{}, []job.Problem(nil)
	for _, f := range fields {
		value, wrong := f.read(typed)
		if problems = append(problems, wrong...); value != nil {
			table[f.Key] = value
		} else if f.Required && len(wrong) == 0 {
			problems = append(problems, f.problem("it is missing"))
		}
	}
	return table, problems
}

// job makes a job of a table, and checks it as far as that is possible without the handler.
func (f *Form) job(key string, table map[string]any) (job.Job, []job.Problem) {
	j := job.Job{ID: IDOf(f.typed, key), Type: f.typed, Options: job.DefaultOptions(f.mode)}
	options, settings, spec := maps.Clone(table), tableAt(table, f.modeKey), tableAt(table, keySpec)
	delete(options, f.modeKey)
	delete(options, keySpec)
	problems := f.reader.options.Check(options)
	below := func(key string, s *schema.Schema, value map[string]any) {
		for _, p := range s.Check(value) {
			p.Path = append([]string{key}, p.Path...)
			problems = append(problems, p)
		}
	}
	below(f.modeKey, f.reader.modes[f.modeKey], settings)
	if f.spec != nil {
		below(keySpec, f.spec, spec)
	}
	wrong := map[string]bool{}
	for _, p := range problems {
		wrong[p.Path[0]] = true
	}
	for key, value := range options {
		if !wrong[key] {
			problems = append(problems, decoded(key, value, &j.Options)...)
		}
	}
	if !wrong[f.modeKey] {
		problems = append(problems, decoded(f.modeKey, settings, &j.Trigger)...)
	}
	problems = append(problems, decoded(keySpec, spec, &j)...)
	for _, p := range j.Validate() {
		if len(p.Path) > 0 && !wrong[p.Path[0]] && j.Mode() != "" {
			problems = append(problems, p)
		}
	}
	return j, problems
}

// tableAt is the table under a key, which may be empty.
func tableAt(table map[string]any, key string) map[string]any {
	if below, ok := table[key].(map[string]any); ok {
		return below
	}
	return map[string]any{}
}

func decoded(key string, value, into any) []job.Problem {
	if err := decodeInto(key, value, into); err != nil {
		return []job.Problem{{Path: []string{key}, Message: err.Error()}}
	}
	return nil
}

func (f Field) problem(format string, args ...any) job.Problem {
	return job.Problem{Path: strings.Split(f.Path, "."), Message: fmt.Sprintf(format, args...)}
}

func (f Field) read(typed func(path string) string) (value any, problems []job.Problem) {
	text := typed(f.Path)
	switch f.Kind {
	case FieldTable:
		if !f.Required && f.untouched(typed) {
			return nil, nil
		}
		return readTable(f.Fields, typed)
	case FieldCheck:
		if text == "" && !f.Required {
			return nil, nil
		}
		return text != "", nil
	case FieldLines:
		var list []any
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				list = append(list, single(f.item, line))
			}
		}
		if list == nil {
			return nil, nil
		}
		return list, nil
	case FieldJSON:
		if strings.TrimSpace(text) == "" {
			return nil, nil
		}
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil || decoder.More() {
			return nil, []job.Problem{f.problem("it is not JSON, such as %s", f.sample())}
		}
		return value, nil
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	return single(f.Kind, text), nil
}

// untouched reports whether nothing was typed into a table.
func (f Field) untouched(typed func(path string) string) bool {
	return !slices.ContainsFunc(f.Fields, func(below Field) bool { return typed(below.Path) != "" || !below.untouched(typed) })
}

// sample is JSON that a field may hold.
func (f Field) sample() string {
	switch {
	case f.Example != "":
		return f.Example
	case strings.HasPrefix(f.Type, "list"):
		return "[]"
	}
	return "{}"
}

// single is a single value. A number that is none stays text, so that whoever checks it shows
// what was typed.
func single(kind FieldKind, text string) any {
	if kind == FieldNumber && json.Valid([]byte(text)) && strings.ContainsAny(text[:1], "-0123456789") {
		return json.Number(text)
	}
	return text
}

// Write is what people would have typed for a job, by the paths of the fields. Settings of
// another mode have no fields.
func (f *Form) Write(j job.Job) (map[string]string, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	declared, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	standard, err := defaultsOf(j.Mode())
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, f := range f.Fields {
		value := declared.get(f.Key)
		if value == nil {
			value = declared.object("options").get(f.Key)
			if tomlValue(value) == tomlValue(standard.get(f.Key)) {
				continue // What has its default is left out.
			}
		}
		f.write(value, all)
	}
	return all, nil
}

func (f Field) write(value any, into map[string]string) {
	if value == nil {
		return
	}
	switch f.Kind {
	case FieldTable:
		table, _ := value.(object)
		for _, below := range f.Fields {
			below.write(table.get(below.Key), into)
		}
	case FieldCheck:
		if value == true {
			into[f.Path] = "true"
		}
	case FieldLines:
		list, _ := value.([]any)
		var lines []string
		for _, item := range list {
			lines = append(lines, typed(item))
		}
		into[f.Path] = strings.Join(lines, "\n")
	case FieldJSON:
		text, err := json.Marshal(value)
		if err != nil {
			return
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, text, "", "  "); err == nil {
			into[f.Path] = indented.String()
		}
	default:
		into[f.Path] = typed(value)
	}
}

// IDOf is the id of a job of a type.
func IDOf(typeName, key string) string { return job.SnakeCase(typeName) + "." + key }
