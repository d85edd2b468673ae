package schedules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dendrascience/dendra-jobs/job"
)

// diff lists the values in which two definitions of a job differ, by path.
func diff(old, wanted job.Job) ([]Field, error) {
	before, err := flatten(old)
	if err != nil {
		return nil, err
	}
	after, err := flatten(wanted)
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	for path := range before {
		paths[path] = true
	}
	for path := range after {
		paths[path] = true
	}
	var fields []Field
	for path := range paths {
		if before[path] != after[path] {
			fields = append(fields, Field{Path: path, Old: before[path], New: after[path]})
		}
	}
	slices.SortFunc(fields, func(a, b Field) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	return fields, nil
}

// flatten maps the path of every value of a definition to its JSON text. The
// options are at the top, as in jobs.toml.
func flatten(j job.Job) (map[string]string, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", j.ID, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("job %s: %w", j.ID, err)
	}
	if options, ok := tree["options"].(map[string]any); ok {
		delete(tree, "options")
		for name, value := range options {
			tree[name] = value
		}
	}
	flat := map[string]string{}
	flattenInto(flat, "", tree)
	return flat, nil
}

func flattenInto(flat map[string]string, path string, value any) {
	table, ok := value.(map[string]any)
	if !ok || len(table) == 0 {
		flat[path] = string(job.EncodeJSON(value))
		return
	}
	for name, inner := range table {
		if path == "" {
			flattenInto(flat, name, inner)
		} else {
			flattenInto(flat, path+"."+name, inner)
		}
	}
}
