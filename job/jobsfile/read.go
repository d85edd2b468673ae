package jobsfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

// Names of tables that are not those of options or modes.
const (
	tableDefaults = "defaults"
	tableJobs     = "jobs"
	keySpec       = "spec"
)

// Read reads the text of a file whose name is used in problems only. Types are
// the job types that its jobs may have. It reports all problems, ordered by
// position; if there is any, the File is nil. An empty text is a file of no jobs.
// Messages quote keys, and values that are no secrets, but nothing of a text
// without a table of jobs or defaults.
func Read(name string, text []byte, types []job.Type) (*File, []Problem) {
	source := newSource(name, text)
	if problems := source.checkText(); len(problems) > 0 {
		return nil, problems
	}
	values, root, problems := decode(source)
	if values == nil {
		return nil, source.notJobs(arrange(problems))
	}
	r, err := newReader(source, types)
	if err != nil {
		return nil, []Problem{source.problem(0, "%s", err)}
	}
	r.problems = problems
	r.file(values, root)
	if len(r.problems) > 0 {
		return nil, source.notJobs(arrange(r.problems))
	}
	slices.SortFunc(r.jobs, func(a, b job.Job) int { return cmp.Compare(a.ID, b.ID) })
	return &File{Jobs: r.jobs, source: source, places: r.places}, nil
}

// reader turns the values of a file into jobs.
type reader struct {
	source  *source
	types   map[string]typeSchema
	options *schema.Schema
	modes   map[string]*schema.Schema

	defaults level
	jobs     []job.Job
	places   map[string]places
	problems []Problem
}

// typeSchema is a job type with the schemas of its spec; they are nil if nothing
// is known of it here.
type typeSchema struct {
	job.Type
	whole   *schema.Schema
	partial *schema.Schema
}

func newReader(source *source, types []job.Type) (*reader, error) {
	r := &reader{
		source: source,
		types:  map[string]typeSchema{},
		modes:  map[string]*schema.Schema{},
		places: map[string]places{},
	}
	var err error
	if r.options, err = schema.ForPartial(reflect.TypeFor[job.Options]()); err != nil {
		return nil, fmt.Errorf("options of jobs: %w", err)
	}
	for _, m := range modeTables() {
		if r.modes[m.key], err = schema.For(m.settings); err != nil {
			return nil, fmt.Errorf("mode %s: %w", m.key, err)
		}
	}
	for _, t := range types {
		entry := typeSchema{Type: t}
		if entry.whole, entry.partial, err = schema.OfType(t); err != nil {
			return nil, err
		}
		r.types[job.SnakeCase(t.Name)] = entry
	}
	return r, nil
}

func (r *reader) report(offset int, format string, args ...any) {
	r.problems = append(r.problems, r.source.problem(offset, format, args...))
}

// reportProblem names the value at fault by its path, which starts with the
// prefix; an unknown key is named by the message.
func (r *reader) reportProblem(offset int, p job.Problem, prefix ...string) {
	if path := append(prefix, p.Path...); len(path) > 0 && !p.AtKey {
		r.report(offset, "%s: %s", strings.Join(path, "."), p.Message)
		return
	}
	r.report(offset, "%s", p.Message)
}

// file reads the top level.
func (r *reader) file(values map[string]any, root *node) {
	for key, value := range values {
		at := root.entry(key)
		table, isTable := value.(map[string]any)
		switch {
		case key != tableDefaults && key != tableJobs:
			r.unknownTable(key, at)
		case !isTable:
			r.report(at.value, "%q is not a table", key)
		case key == tableDefaults:
			r.readDefaults(table, at)
		}
	}
	// After the defaults, which every job inherits.
	types, _ := values[tableJobs].(map[string]any)
	for key, value := range types {
		at := root.entry(tableJobs).entry(key)
		t, known := r.types[key]
		table, isTable := value.(map[string]any)
		switch {
		case !known:
			r.report(at.key, "%s", schema.Unknown("job type", key, slices.Collect(maps.Keys(r.types))))
			r.problems[len(r.problems)-1].UnknownType = key
		case !isTable:
			r.report(at.value, "job type %q is not a table of jobs", key)
		default:
			r.readType(t, table, at)
		}
	}
}

func (r *reader) unknownTable(key string, at *node) {
	if _, ok := r.types[key]; ok {
		r.report(at.key, "unknown table %q; did you mean %q?", key, tableJobs+"."+key)
		return
	}
	r.report(at.key, "%s", schema.Unknown("table", key, []string{tableDefaults, tableJobs}))
}

// readDefaults reads the options that every job inherits.
func (r *reader) readDefaults(table map[string]any, at *node) {
	options := map[string]any{}
	for key, value := range table {
		switch {
		case r.isMode(key):
			r.report(at.entry(key).key, "%q is a mode, which each job sets for itself, not [%s]", key, tableDefaults)
		case key == keySpec:
			r.report(at.entry(key).key, "a spec belongs to a job type or to a job, not to [%s]", tableDefaults)
		case !r.isOption(key):
			r.report(at.entry(key).key, "%s", schema.Unknown("option", key, r.options.Keys()))
		default:
			options[key] = value
		}
	}
	r.defaults = r.readLevel(options, at)
}

// readType reads what the jobs of a type share, and the jobs.
func (r *reader) readType(t typeSchema, table map[string]any, at *node) {
	options, jobs := map[string]any{}, map[string]map[string]any{}
	var shared map[string]any
	snake := job.SnakeCase(t.Name)
	for key, value := range table {
		here := at.entry(key)
		entry, isTable := value.(map[string]any)
		switch {
		case r.isMode(key):
			r.report(here.key, "%q is a mode, which each job sets for itself, as in [%s.%s.KEY.%s]; no job can be called so",
				key, tableJobs, snake, key)
		case isTable && r.isReserved(key) && r.meansJob(t, key, entry):
			r.report(here.key, "%q is the name of an option, so no job can be called so", key)
		case key == keySpec:
			shared = r.sharedSpec(t, value, here)
		case r.isOption(key):
			options[key] = value
		case isTable:
			jobs[key] = entry
		case isTableArray(value):
			r.report(here.value, "job %q is a list of tables: write [%s.%s.%s], not [[…]]", key, tableJobs, snake, key)
		default:
			r.report(here.key, "%s", schema.Unknown("option", key, r.reserved()))
		}
	}
	common := r.readLevel(options, at)
	common.spec = shared
	for key, entry := range jobs {
		r.readJob(jobReader{
			reader: r,
			kind:   t,
			id:     snake + "." + key,
			key:    key,
			table:  entry,
			places: places{own: at.entry(key), kind: at, defaults: r.defaults.at},
			levels: []level{r.defaults, common},
		})
	}
}

// sharedSpec checks the part of a spec that the jobs of a type have in common.
func (r *reader) sharedSpec(t typeSchema, value any, at *node) map[string]any {
	table, ok := value.(map[string]any)
	if !ok {
		r.report(at.value, "a spec is a table")
		return nil
	}
	if t.partial != nil {
		for _, problem := range t.partial.Check(table) {
			r.reportProblem(at.locate(problem.Path, problem.AtKey), problem, keySpec)
		}
	}
	return table
}

func (r *reader) isMode(key string) bool { return r.modes[key] != nil }

func (r *reader) isOption(key string) bool { return slices.Contains(r.options.Keys(), key) }

func (r *reader) isReserved(key string) bool { return key == keySpec || r.isOption(key) }

// reserved lists every name that is not that of a job.
func (r *reader) reserved() []string {
	return slices.Concat(r.options.Keys(), slices.Collect(maps.Keys(r.modes)), []string{keySpec})
}

// meansJob reports whether a table under a reserved name was meant as a job: the
// option is no table, or a mode stands in it.
func (r *reader) meansJob(t typeSchema, key string, table map[string]any) bool {
	if key != keySpec && r.options.Type(key) != "object" {
		return true
	}
	if key == keySpec && t.whole == nil {
		return false
	}
	for _, mode := range r.modesIn(table) {
		if key != keySpec || !slices.Contains(t.whole.Keys(), mode) {
			return true
		}
	}
	return false
}

// modesIn lists the modes that stand in a table as tables.
func (r *reader) modesIn(table map[string]any) []string {
	var found []string
	for mode := range r.modes {
		if _, isTable := table[mode].(map[string]any); isTable {
			found = append(found, mode)
		}
	}
	return found
}

func isTableArray(value any) bool {
	list, _ := value.([]any)
	if len(list) == 0 {
		return false
	}
	_, ok := list[0].(map[string]any)
	return ok
}

// level holds the options of the defaults, of a job type or of a job.
type level struct {
	at      *node
	options map[string]any // of [job.Options], without those that are wrong
	spec    map[string]any
}

// readLevel checks options where they stand: every problem that does not
// depend on the rest of a job is found here, whether a job inherits it or not.
func (r *reader) readLevel(options map[string]any, at *node) level {
	good := maps.Clone(options)
	for _, problem := range r.options.Check(options) {
		r.reportProblem(at.locate(problem.Path, problem.AtKey), problem)
		if len(problem.Path) > 0 {
			delete(good, problem.Path[0])
		}
	}
	l := level{at: at, options: good}
	probe := probe()
	probe.Trigger = job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second)}} // A mode that takes every option.
	probe.Options = r.mergeOptions(job.ModeOneShot, []level{l})
	for _, problem := range probe.Validate() {
		r.reportProblem(at.locate(problem.Path, problem.AtKey), problem)
	}
	return l
}

// probe is a valid job, to check a part of another in its place.
func probe() job.Job {
	return job.Job{
		ID:      "probe.x",
		Type:    "Probe",
		Trigger: job.Trigger{OneShot: &job.OneShot{}},
		Options: job.DefaultOptions(job.ModeOneShot),
	}
}

// mergeOptions lets each level replace options of those before it, whole, on
// top of the defaults of the mode.
func (r *reader) mergeOptions(mode job.Mode, levels []level) job.Options {
	options := job.DefaultOptions(mode)
	set := map[string]level{}
	for i, l := range levels {
		for key := range l.options {
			if i == len(levels)-1 || job.Inherits(mode, key) {
				set[key] = l
			}
		}
	}
	for key, l := range set {
		if err := decodeInto(key, l.options[key], &options); err != nil {
			r.report(l.at.locate([]string{key}, false), "option %q: %s", key, err)
		}
	}
	return options
}

// decodeInto sets the field of a struct that a key names.
func decodeInto(key string, value any, into any) error {
	plain, _ := schema.Plain(value)
	text, err := json.Marshal(map[string]any{key: plain})
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
