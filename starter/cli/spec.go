package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

// adHoc are the flags that define a job on the command line.
type adHoc struct {
	typeName   string
	key        string
	spec       string
	runTimeout job.Duration
	maxRetry   int
	owner      job.Owner
}

func (a *adHoc) register(i *invocation, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(nameValue{&a.typeName}, "type", "job type, in CamelCase or snake_case")
	flags.Var(textValue{&a.key, "KEY"}, "key", "key of the job within its type (default: a new ULID)")
	flags.StringVar(&a.spec, "spec", "", "spec as a JSON object, @FILE, or - for standard input (default: {})")
	flags.Var(durationOf(&a.runTimeout), "run-timeout", "time limit of one attempt (default: PT1H)")
	flags.IntVar(&a.maxRetry, "max-retry-count", job.DefaultOptions(job.ModeOneShot).MaxRetryCount, "retries of a failed run, -1: without limit")
	flags.Var(ownerValue{&a.owner}, "owner", "organization:NAME or user:NAME")
	completeFixed(cmd, "type", i.typeNames()...)
}

// flagNames are the flags that only make sense with --type.
func (a *adHoc) flagNames() []string {
	return []string{"key", "spec", "run-timeout", "max-retry-count", "owner"}
}

func (i *invocation) typeNames() []string {
	names := make([]string, len(i.Types))
	for n, t := range i.Types {
		names[n] = t.Name
	}
	return names
}

// typeNamed finds a job type among those of this program and the external ones.
func (i *invocation) typeNamed(name string) (job.Type, error) {
	t, ok, external, err := i.jobTypes().Named(i.ctx, name)
	if ok {
		return t, nil
	}
	names := i.typeNames()
	for _, t := range external {
		names = append(names, t.Name)
	}
	text := schema.Unknown("job type", name, names)
	if !strings.Contains(text, "did you mean") {
		text += "; there are " + strings.Join(names, ", ")
	}
	if err != nil {
		i.note("It is not known whether a worker has %s", clean(strings.TrimPrefix(text, "unknown ")))
		return job.Type{}, err
	}
	return job.Type{}, &usageError{text: text}
}

// definition makes the part of the definition that all jobs of one command share.
func (i *invocation) definition(a adHoc, schedule job.Trigger) (job.Job, *checker, error) {
	t, err := i.typeNamed(a.typeName)
	if err != nil {
		return job.Job{}, nil, err
	}
	if err := t.CheckAllows(schedule.Mode()); err != nil {
		return job.Job{}, nil, err
	}
	j := job.Job{
		Type: t.Name, Worker: t.Worker, Provider: job.ProviderAPI,
		Trigger: schedule, Options: job.DefaultOptions(schedule.Mode()),
	}
	if a.runTimeout > 0 {
		j.Options.RunTimeout = a.runTimeout
	}
	j.Options.MaxRetryCount = a.maxRetry
	j.Options.Owner = a.owner
	c, err := newChecker(t)
	return j, c, err
}

// readSpec reads the spec that --spec names or contains.
func (i *invocation) readSpec(text string) ([]byte, error) {
	switch path, isFile := strings.CutPrefix(text, "@"); {
	case text == "":
		return []byte("{}"), nil
	case text == "-":
		return readLimited("standard input", i.Stdin)
	case isFile:
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("the spec cannot be read: %w", err)
		}
		defer file.Close() //nolint:errcheck // Only read.
		return readLimited(path, file)
	}
	return []byte(text), nil
}

// readLimited reads no more than a spec may have, and a little for white space.
func readLimited(name string, from io.Reader) ([]byte, error) {
	const most = 4 * job.MaxSpecBytes
	text, err := io.ReadAll(io.LimitReader(from, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the spec in %s cannot be read: %w", name, err)
	case len(text) > most:
		return nil, fmt.Errorf("%s has more than %d bytes, too much for a spec", name, most)
	}
	return text, nil
}

// checker checks specs of one job type before anything is started.
type checker struct {
	kind   job.Type
	schema *schema.Schema
}

func newChecker(t job.Type) (*checker, error) {
	schema, _, err := schema.OfType(t)
	if err != nil {
		return nil, err
	}
	if schema == nil {
		return nil, fmt.Errorf("job type %s has no schema for its spec", t.Name)
	}
	return &checker{kind: t, schema: schema}, nil
}

// complete sets the id and the spec of a job, and lists all problems.
func (c *checker) complete(j job.Job, key string, spec []byte) (job.Job, []string) {
	if key == "" {
		key = strings.ToLower(ulid.Make().String())
	}
	j.ID = job.ID(j.Type, key)
	text, problems := c.check(spec)
	j.Spec = text
	for _, problem := range j.Validate() {
		problems = append(problems, problem.String())
	}
	return j, problems
}

// check lists all problems of a spec, and returns a valid one in one line.
func (c *checker) check(spec []byte) (json.RawMessage, []string) {
	var problems []string
	for _, problem := range schema.CheckSpec(c.kind, c.schema, spec) {
		problems = append(problems, problem.String())
	}
	if len(problems) > 0 {
		return nil, problems
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, spec); err != nil {
		return nil, []string{"the spec is not JSON: " + err.Error()}
	}
	return compact.Bytes(), nil
}
