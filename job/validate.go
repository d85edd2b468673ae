package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Problem is something wrong in a job definition.
type Problem struct {
	// Path leads from the job to the value at fault: ["recurring", "recur_every"].
	// Empty means the job as a whole.
	Path []string
	// AtKey says that the key that Path ends in is at fault, not its value.
	AtKey bool
	// Message is one sentence that names what is wrong.
	Message string
}

// String writes "recurring.recur_every: message".
func (p Problem) String() string {
	if len(p.Path) == 0 {
		return p.Message
	}
	return strings.Join(p.Path, ".") + ": " + p.Message
}

// Validate lists everything that is wrong with j, apart from what only its job
// type knows: its spec and the modes it allows.
func (j Job) Validate() []Problem {
	var v validator
	v.check(CheckTypeName(j.Type))
	if prefix, key, ok := strings.Cut(j.ID, "."); !ok || prefix != SnakeCase(j.Type) {
		v.addf("job id %.160q is not of the form %s.KEY", j.ID, SnakeCase(j.Type))
	} else {
		v.check(CheckKey("job key", key))
	}
	if j.Worker != "" {
		v.check(CheckWorkerType(j.Worker))
	}
	if j.Provider != "" {
		v.check(j.Provider.Check())
	}
	v.trigger(j.Trigger)
	v.options(j.Options)
	v.limits(j.Mode(), j.Options)
	v.spec(j.Spec)
	return v.problems
}

// CheckWorkerType reports why a name cannot be that of a worker type: it is that of
// a task queue too.
func CheckWorkerType(worker WorkerType) error {
	if strings.HasPrefix(string(worker), "temporal-sys-") {
		return fmt.Errorf("worker type %.80q: names that start with temporal-sys- are Temporal's own", worker)
	}
	return CheckKey("worker type", string(worker))
}

func (v *validator) spec(text json.RawMessage) {
	switch size := SpecBytes(text); {
	case len(text) == 0:
	case !json.Valid(text):
		v.at([]string{"spec"}, "the spec is not JSON")
	case hasHalfCharacter(text):
		v.at([]string{"spec"}, "the spec has text that is not Unicode: bytes that are not UTF-8, or one half of a surrogate pair")
	case size > MaxSpecBytes:
		v.at([]string{"spec"}, "the spec has %d bytes, more than %d: pass large data by reference", size, MaxSpecBytes)
	case !isObject(text):
		v.at([]string{"spec"}, "the spec is not a JSON object")
	}
}

// hasHalfCharacter reports whether JSON has text that readers replace by U+FFFD without a word.
func hasHalfCharacter(text []byte) bool {
	if !utf8.Valid(text) {
		return true
	}
	var before rune // the first half of a pair that has just been read
	for len(text) > 0 {
		var r rune
		switch {
		case text[0] != '\\':
			text = text[1:]
		case text[1] != 'u':
			text = text[2:]
		default:
			code, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // It is valid JSON.
			r, text = rune(code), text[6:]
		}
		switch isHalf := utf16.IsSurrogate(r); {
		case before != 0 && utf16.DecodeRune(before, r) == utf8.RuneError:
			return true
		case before != 0 || !isHalf:
			before = 0
		default:
			before = r
		}
	}
	return before != 0
}

// CheckAllows reports a mode that jobs of the type do not have.
func (t Type) CheckAllows(mode Mode) error {
	if mode == "" || t.Allows(mode) {
		return nil
	}
	return fmt.Errorf("job type %s cannot run in mode %s, only in %s", t.Name, mode, joined(t.Modes))
}

// joined lists names in a sentence.
func joined[S ~string](names []S) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}

type validator struct{ problems []Problem }

func (v *validator) addf(format string, args ...any) { v.at(nil, format, args...) }

func (v *validator) at(path []string, format string, args ...any) {
	v.problems = append(v.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// atKey reports a key that has no place, whatever its value.
func (v *validator) atKey(path []string, message string) {
	v.problems = append(v.problems, Problem{Path: path, AtKey: true, Message: message})
}

func (v *validator) check(err error) {
	if err != nil {
		v.addf("%s", err)
	}
}

func (v *validator) trigger(s Trigger) {
	switch keys := s.keys(); len(keys) {
	case 1:
	case 0:
		v.addf("no mode is set: give the job exactly one of one_shot, continuous, recurring, queued")
	default:
		v.addf("%d modes are set (%s): a job has exactly one", len(keys), strings.Join(keys, ", "))
	}
	if c := s.Continuous; c != nil {
		v.bounds(*c, "continuous")
	}
	if r := s.Recurring; r != nil {
		v.recurring(*r)
	}
	if q := s.Queued; q != nil {
		v.bounds(*q, "queued")
		if err := CheckKey("queue", q.Queue); err != nil {
			v.at([]string{"queued", "queue"}, "%s", err)
		}
	}
}

func (v *validator) options(o Options) {
	v.bounds(o)
	if backoff := o.RetryBackoff; backoff.Max < backoff.Initial {
		v.at([]string{"retry_backoff", "max"}, "%s is shorter than initial, %s", backoff.Max, backoff.Initial)
	}
	if o.Owner.Organization != "" && o.Owner.User != "" {
		v.at([]string{"owner"}, "an owner is an organization or a user, not both")
	} else if size := len(o.Owner.String()); size > MaxOwnerBytes {
		v.at([]string{"owner"}, "the owner has %d bytes, more than %d", size, MaxOwnerBytes)
	}
	if size := len(o.Description); size > MaxDescriptionBytes {
		v.at([]string{"description"}, "the description has %d bytes, more than %d", size, MaxDescriptionBytes)
	}
	v.tags(o.Tags)
	v.binding(o)
}

// tags bounds the free labels of a job.
func (v *validator) tags(tags map[string]string) {
	if len(tags) > maxTags {
		v.at([]string{"tags"}, "%d tags are more than %d", len(tags), maxTags)
		return
	}
	names := slices.Sorted(maps.Keys(tags)) //workflowcheck:ignore // Sorted, so the same in every replay.
	for _, name := range names {
		switch {
		case len(name) > maxTagBytes:
			v.at([]string{"tags"}, "the name of tag %.80q has %d bytes, more than %d", name, len(name), maxTagBytes)
		case len(tags[name]) > maxTagBytes:
			v.at([]string{"tags", name}, "the value has %d bytes, more than %d", len(tags[name]), maxTagBytes)
		}
	}
}
