package jobsfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
)

// TOML is the table that declares a job: [Read] makes the same job of it, of provider toml.
// What has its default is left out, so in a file with [defaults] these apply. It fails for
// what no file can declare: a key that is the name of an option, or null in a list.
func TOML(j job.Job) (string, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return "", fmt.Errorf("job %s: %w", j.ID, err)
	}
	declared, err := parseObject(text)
	if err != nil {
		return "", fmt.Errorf("job %s: %w", j.ID, err)
	}
	standard, err := defaultsOf(j.Mode())
	if err != nil {
		return "", err
	}
	snake, key, _ := strings.Cut(j.ID, ".")
	if isReservedKey(key) {
		return "", fmt.Errorf("job %s: no job of a file has the key %q, which is the name of an option or a mode", j.ID, key)
	}
	spec, err := withoutNull(declared.object(keySpec))
	if err != nil {
		return "", fmt.Errorf("job %s: %s: %w", j.ID, keySpec, err)
	}
	var w strings.Builder
	table := strings.Join([]string{tableJobs, tomlKey(snake), tomlKey(key)}, ".")
	fmt.Fprintf(&w, "[%s]\n", table)
	for _, m := range modeTables() {
		if settings := declared.object(m.key); settings != nil {
			fmt.Fprintf(&w, "%s = %s\n", m.key, tomlValue(settings))
		}
	}
	for _, option := range declared.object("options") {
		if value := tomlValue(option.value); value != tomlValue(standard.get(option.key)) {
			fmt.Fprintf(&w, "%s = %s\n", option.key, value)
		}
	}
	if members, _ := spec.(object); len(members) > 0 {
		fmt.Fprintf(&w, "\n[%s.%s]\n", table, keySpec)
		for _, m := range members {
			fmt.Fprintf(&w, "%s = %s\n", tomlKey(m.key), tomlValue(m.value))
		}
	}
	return w.String(), nil
}

// isReservedKey reports whether a name within the table of a type is not that of a job.
func isReservedKey(key string) bool {
	for _, of := range []reflect.Type{reflect.TypeFor[job.Options](), reflect.TypeFor[job.Trigger]()} {
		for _, field := range reflect.VisibleFields(of) {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == key {
				return true
			}
		}
	}
	return key == keySpec
}

// withoutNull leaves out keys that are null, which says no more than a key that is not
// there. TOML has no null.
func withoutNull(value any) (any, error) {
	switch value := value.(type) {
	case object:
		var left object
		for _, m := range value {
			if m.value == nil {
				continue
			}
			inner, err := withoutNull(m.value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.key, err)
			}
			left = append(left, member{m.key, inner})
		}
		return left, nil
	case []any:
		left := make([]any, len(value))
		for i, item := range value {
			if item == nil {
				return nil, fmt.Errorf("%d: a list of TOML has no null", i)
			}
			var err error
			if left[i], err = withoutNull(item); err != nil {
				return nil, fmt.Errorf("%d: %w", i, err)
			}
		}
		return left, nil
	}
	return value, nil
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

var controls = regexp.MustCompile(`[\x{7f}-\x{9f}]`)

// tomlKey writes one part of a key.
func tomlKey(key string) string {
	if bareKey.MatchString(key) {
		return key
	}
	return tomlValue(key)
}

// tomlValue writes a value as it stands in TOML, on one line.
func tomlValue(value any) string {
	switch value := value.(type) {
	case object:
		if len(value) == 0 {
			return "{}"
		}
		var members []string
		for _, m := range value {
			members = append(members, tomlKey(m.key)+" = "+tomlValue(m.value))
		}
		return "{ " + strings.Join(members, ", ") + " }"
	case []any:
		var items []string
		for _, item := range value {
			items = append(items, tomlValue(item))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case json.Number:
		// Whole numbers of TOML have 64 bits; larger ones are floating-point ones.
		if _, err := strconv.ParseInt(value.String(), 10, 64); err != nil && !strings.ContainsAny(value.String(), ".eE") {
			return value.String() + ".0"
		}
	}
	// A string, a number and a bool are in TOML what they are in JSON, but for DEL. Like it,
	// the other control characters that JSON has as they are would control a terminal.
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return `""`
	}
	return controls.ReplaceAllStringFunc(strings.TrimSuffix(text.String(), "\n"), func(r string) string {
		return fmt.Sprintf(`\u%04x`, []rune(r)[0])
	})
}
