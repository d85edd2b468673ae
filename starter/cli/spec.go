package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/server"
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
	t, err := i.jobTypes().Named(i.ctx, name)
	return t, wrongType(err)
}

// wrongType is an error of job types, which is one of usage if there is no such type.
func wrongType(err error) error {
	if unknown, ok := errors.AsType[*server.UnknownTypeError](err); ok {
		return &usageError{text: unknown.Error()}
	}
	return err
}

// definition makes the part of the definition that all jobs of one command share.
func (i *invocation) definition(a adHoc, trigger job.Trigger) (*server.Definition, error) {
	d, err := i.jobTypes().Define(i.ctx, a.typeName, trigger)
	if err != nil {
		return nil, wrongType(err)
	}
	if a.runTimeout > 0 {
		d.Job.Options.RunTimeout = a.runTimeout
	}
	d.Job.Options.MaxRetryCount, d.Job.Options.Owner = a.maxRetry, a.owner
	return d, nil
}

// defined makes the one job that the flags of a command define.
func (i *invocation) defined(a adHoc, trigger job.Trigger) (job.Job, error) {
	d, err := i.definition(a, trigger)
	if err != nil {
		return job.Job{}, err
	}
	spec, err := i.readSpec(a.spec)
	if err != nil {
		return job.Job{}, err
	}
	j, problems := d.With(a.key, spec)
	errs := make([]error, len(problems))
	for n, problem := range problems {
		errs[n] = fmt.Errorf("job type %s: %s", j.Type, problem)
	}
	return j, errors.Join(errs...)
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
