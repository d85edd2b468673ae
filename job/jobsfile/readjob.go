package jobsfile

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

// places are the tables that define a job, from its own to the most general.
type places struct{ own, kind, defaults *node }

// locate finds a value in the first table that has it.
func (p places) locate(path []string, atKey bool) int {
	if len(path) > 0 {
		for _, at := range []*node{p.own, p.kind, p.defaults} {
			if at.entry(path[0]) == nil {
				continue
			}
			// A spec is merged key by key, so its keys are looked for one by one.
			if path[0] == keySpec && len(path) > 1 && at.entry(keySpec).entry(path[1]) == nil && p.inKind(path) {
				continue
			}
			return at.locate(path, atKey)
		}
	}
	return p.own.value
}

func (p places) inKind(path []string) bool {
	return p.kind.entry(keySpec).entry(path[1]) != nil
}

// jobReader reads one job.
type jobReader struct {
	*reader
	places places

	kind   typeSchema
	id     string
	key    string
	table  map[string]any
	levels []level // what the job inherits, the most general first

	meantMode bool // an unknown key looks like the name of a mode
}

func (r *reader) readJob(j jobReader) {
	if err := job.CheckKey("job key", j.key); err != nil {
		r.report(j.places.own.key, "%s", err)
	}
	options, modes, spec := j.split()
	j.levels = append(slices.Clip(j.levels), r.readLevel(options, j.places.own))

	definition := job.Job{
		// The key has been checked; a bad one is not to be reported again.
		ID:       job.ID(j.kind.Name, "key"),
		Type:     j.kind.Name,
		Worker:   j.kind.Worker,
		Provider: job.ProviderTOML,
	}
	j.readModes(modes, &definition.Trigger)
	definition.Options = r.mergeOptions(definition.Mode(), j.levels)
	definition.Spec = j.readSpec(spec)
	for _, problem := range definition.Validate() {
		if len(problem.Path) == 0 && j.meantMode || len(problem.Path) > 0 && r.isMode(problem.Path[0]) {
			continue // reported with the mode
		}
		r.reportProblem(j.places.locate(problem.Path, problem.AtKey), problem)
	}
	definition.ID = j.id
	r.jobs = append(r.jobs, definition)
	r.places[j.id] = j.places
}

// split sorts the keys of a job into options, modes and its spec.
func (j *jobReader) split() (options map[string]any, modes []string, spec any) {
	options = map[string]any{}
	for key, value := range j.table {
		switch {
		case j.isMode(key):
			modes = append(modes, key)
		case key == keySpec:
			spec = value
		case j.isOption(key):
			options[key] = value
		default:
			j.unknownOption(key, value)
		}
	}
	slices.SortFunc(modes, func(a, b string) int {
		return cmp.Compare(j.places.own.entry(a).key, j.places.own.entry(b).key)
	})
	return options, modes, spec
}

func (j *jobReader) unknownOption(key string, value any) {
	at := j.places.own.entry(key).key
	table, isTable := value.(map[string]any)
	closest, found := schema.Closest(key, j.reserved())
	j.meantMode = j.meantMode || j.isMode(closest) || len(j.modesIn(table)) > 0
	if isTable && !found {
		j.report(at, "unknown option %q; a job key that contains a dot is quoted: %q", key, j.key+"."+key)
		return
	}
	j.report(at, "%s", schema.Unknown("option", key, j.reserved()))
}

// readModes checks every mode that is set, and takes the first.
func (j *jobReader) readModes(modes []string, into *job.Trigger) {
	for i, key := range modes {
		at := j.places.own.entry(key)
		schedule := j.readMode(key, at)
		if i > 0 {
			j.report(at.key, "a second mode, %q: the job has %q already, and a job has exactly one", key, modes[0])
			continue
		}
		*into = schedule
		if err := j.kind.CheckAllows(schedule.Mode()); err != nil {
			j.report(at.key, "%s", err)
		}
	}
}

// readMode checks one mode and decodes of it what is right.
func (j *jobReader) readMode(key string, at *node) job.Trigger {
	var schedule job.Trigger
	settings, isTable := j.table[key].(map[string]any)
	if !isTable {
		j.report(at.value, "mode %q is not a table", key)
	}
	good := map[string]any{}
	maps.Copy(good, settings)
	whole := isTable // the schema has no objection
	if isTable {
		for _, problem := range j.modes[key].Check(settings) {
			whole = false
			j.reportProblem(at.locate(problem.Path, problem.AtKey), problem, key)
			if len(problem.Path) > 0 {
				delete(good, problem.Path[0])
			}
		}
	}
	if err := decodeInto(key, good, &schedule); err != nil {
		j.report(at.value, "%s: %s", key, err)
		return schedule
	}
	probe := probe()
	probe.Trigger = schedule
	for _, problem := range probe.Validate() {
		// Of a setting that is missing or wrong the schema has spoken.
		if len(problem.Path) == 1 && whole || len(problem.Path) == 2 && good[problem.Path[1]] != nil {
			j.reportProblem(at.locate(problem.Path[1:], problem.AtKey), problem)
		}
	}
	return schedule
}

// readSpec merges the job's spec over that of its type, checks and encodes it.
// It returns nil if that is impossible, which has been reported.
func (j *jobReader) readSpec(own any) json.RawMessage {
	table, ok := own.(map[string]any)
	if own != nil && !ok {
		j.report(j.places.own.entry(keySpec).value, "a spec is a table")
		return nil
	}
	merged := map[string]any{}
	for _, l := range j.levels {
		maps.Copy(merged, l.spec)
	}
	maps.Copy(merged, table)

	plain, problems := schema.Plain(merged)
	if j.kind.whole != nil {
		problems = j.kind.whole.Check(merged)
	}
	for _, problem := range problems {
		j.reportProblem(j.specPlace(problem.Path, problem.AtKey), problem, keySpec)
	}
	if len(problems) > 0 {
		return nil
	}
	text, err := json.Marshal(plain)
	if err == nil && j.kind.Spec != nil {
		err = job.DecodeSpec(text, reflect.New(j.kind.Spec).Interface())
	}
	if err != nil {
		j.report(j.specPlace(nil, false), "%s: %s", keySpec, err)
		return nil
	}
	return text
}

// specPlace finds a value of the merged spec; what is missing from it is
// missing from the job's own spec, or from the job.
func (j *jobReader) specPlace(path []string, atKey bool) int {
	if len(path) > 0 {
		return j.places.locate(append([]string{keySpec}, path...), atKey)
	}
	if at := j.places.own.entry(keySpec); at != nil {
		return at.value
	}
	return j.places.own.value
}
