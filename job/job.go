package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// Job is a unit of scheduled work.
type Job struct {
	// ID is <job type in snake case>.<key>, unique within a namespace.
	ID string `json:"id"`
	// Type names the job type.
	Type string `json:"type"`
	// Worker is the worker type that serves the job type; it is also the name
	// of the task queue that the job's runs are dispatched on.
	Worker WorkerType `json:"worker"`
	// Provider says where the definition came from.
	Provider Provider `json:"provider"`
	// Spec holds the parameters of the job type as a JSON object.
	Spec json.RawMessage `json:"spec"`
	Trigger
	Options Options `json:"options"`
}

// Provider says where a job definition came from.
type Provider string

// The providers.
const (
	ProviderTOML        Provider = "toml"        // jobs.toml
	ProviderIntegration Provider = "integration" // the orchestrators of the Platform API's integrations, see [IntegrationProvider]
	ProviderAPI         Provider = "api"         // a client: the CLI or the Job API
	ProviderTeardown    Provider = "teardown"    // organizations that are marked as deleted
)

// KeyPattern is the regular expression that a job key and the name of a queue match.
const KeyPattern = `^[a-z0-9][a-z0-9._-]{0,63}$`

// NameRule is [KeyPattern] in words; every message about such a name ends with it.
const NameRule = "a name starts with a-z or 0-9, goes on with a-z, 0-9, '.', '_' or '-', and has at most 64 characters"

var (
	keyPattern  = regexp.MustCompile(KeyPattern)
	namePattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)
)

// CheckKey reports why key cannot name a job within its type, or a queue.
func CheckKey(what, key string) error {
	if !keyPattern.MatchString(key) {
		return fmt.Errorf("%s %.80q: %s", what, key, NameRule)
	}
	return nil
}

// CheckTypeName reports why name cannot name a job type.
func CheckTypeName(name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("job type %.80q: a name is in CamelCase, of letters and digits, at most 64 characters", name)
	}
	return nil
}

// ID builds the id of a job from the name of its type and its key.
func ID(typeName, key string) string { return SnakeCase(typeName) + "." + key }

// SnakeCase turns the name of a job type into its form in jobs.toml:
// LiveLoadInfluxV1 becomes live_load_influx_v1. A run of capitals is one word:
// HTTPProbe becomes http_probe.
func SnakeCase(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 {
			afterLower := !unicode.IsUpper(runes[i-1])
			beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// DefinitionHash is 16 hexadecimal digits that change with what a job is meant to be.
// Of a one-shot or queued job they cover the type and the spec, and the time of a
// one-shot, so that only a change of these runs it again; of every other job the whole definition.
func (j Job) DefinitionHash() (string, error) {
	var covered any
	spec, err := canonicalJSON(j.Spec)
	if err != nil {
		return "", fmt.Errorf("job %s: spec: %w", j.ID, err)
	}
	switch j.Mode() {
	case ModeOneShot, ModeQueued:
		covered = struct {
			Type string          `json:"type"`
			Spec json.RawMessage `json:"spec"`
			At   time.Time       `json:"at,omitzero"`
		}{j.Type, spec, j.At().UTC()}
	default:
		whole := j
		whole.Spec = spec
		covered = whole
	}
	text, err := json.Marshal(covered)
	if err != nil {
		return "", fmt.Errorf("job %s: %w", j.ID, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// canonicalJSON orders the keys of a JSON text and drops its white space.
// Numbers keep their spelling, so that none loses digits.
func canonicalJSON(text json.RawMessage) (json.RawMessage, error) {
	if len(text) == 0 {
		return json.RawMessage("{}"), nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more text after the JSON object")
	}
	return json.Marshal(value)
}

// Limits of a definition, besides the bounds in the tags of its fields.
const (
	// MinInterval is the shortest interval of a continuous job.
	MinInterval = Duration(10 * time.Millisecond)
	// MinRecurEvery is the shortest interval of a recurring job.
	MinRecurEvery = Duration(time.Second)
	// MinCatchupWindow is the shortest catch-up window of a recurring job.
	MinCatchupWindow = Duration(10 * time.Second)
	// MaxRetryLimit is the largest MaxRetryCount.
	MaxRetryLimit = 1_000_000
	// MaxSpecBytes bounds a spec as it is sent, see [SpecBytes]: it is part of workflow
	// inputs and of queue state, which Temporal limits to 2 MiB.
	MaxSpecBytes = 16 << 10
	// MaxDescriptionBytes bounds a description.
	MaxDescriptionBytes = 1000
	// MaxOwnerBytes bounds an owner as it is written. Owners are search attributes:
	// Temporal terminates a workflow that sets one of more than 2 KiB, and
	// databases keep 255 characters.
	MaxOwnerBytes = 128
)

// SpecBytes is the size of a spec as it is sent and stored: without white space, and
// with the escapes of &, < and > that encoding/json writes.
func SpecBytes(spec json.RawMessage) int {
	text, err := json.Marshal(spec)
	if err != nil {
		return len(spec) // Not JSON: it is never sent.
	}
	return len(text)
}
