package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// enqueueOptions are the flags of queues enqueue.
type enqueueOptions struct {
	adHoc
	jobID string
	file  string
	again bool
}

func (i *invocation) queuesEnqueueCommand() *cobra.Command {
	var options enqueueOptions
	cmd := &cobra.Command{
		Use:   "enqueue QUEUE",
		Short: "Put jobs into a queue",
		Long: `enqueue puts one job into a queue, or one for each line of a file, and prints the
number of each item. An item that is printed is stored and survives any crash.

The job is given by --type and --spec, by --type and --file, or by --job if it is a
queued job in Temporal. A line of the file is a spec, or a key with a spec:
{"key": "a", "spec": {...}}. All lines are checked before the first is enqueued.

The key identifies the job. A job that is in the queue already is not enqueued again.
A job that has completed is skipped at its turn, unless --again is given. So a command
with keys can be repeated. Without keys every call makes new jobs.

An item of a file whose job has completed is skipped even if its spec differs: give
other work another key, or --again. With --key such a job is refused.

The items of a file are enqueued in its order, in batches. If that fails midway, the
first items are in the queue: repeat the command for the others.`,
		Example: `  starter queues enqueue photos --type GeneratePhotoVariantsToMinio --key a --spec '{"bucket": "uploads", "key": "a.jpg"}'
  starter queues enqueue photos --type GeneratePhotoVariantsToMinio --file photos.jsonl`,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkEnqueueFlags(cmd, &options); err != nil {
				return err
			}
			return i.enqueue(cmd.Context(), args[0], options)
		},
	}
	options.register(i, cmd)
	flags := cmd.Flags()
	flags.Var(nameValue{&options.jobID}, "job", "a queued job in Temporal")
	flags.Var(textValue{&options.file, argumentFile}, "file", "file with a spec on each line, - for standard input")
	flags.BoolVar(&options.again, "again", false, "run the job even if it has completed")
	return cmd
}

func checkEnqueueFlags(cmd *cobra.Command, options *enqueueOptions) error {
	switch {
	case (options.jobID != "") == (options.typeName != ""):
		return misuse(cmd, "give either --type or --job")
	case options.typeName == "" && options.file != "":
		return misuse(cmd, "--file goes with --type")
	case options.file != "" && (options.spec != "" || options.key != ""):
		return misuse(cmd, "--file has the specs and keys: leave out --spec and --key")
	}
	return needsType(cmd, &options.adHoc)
}

// placed is a job with its number in the queue.
type placed struct {
	JobID string `json:"job_id"`
	contract.EnqueueReceipt
}

func (i *invocation) enqueue(ctx context.Context, queue string, options enqueueOptions) error {
	var jobs []job.Job
	if options.jobID == "" {
		var err error
		if jobs, err = i.defineQueued(queue, options); err != nil {
			return err
		}
	}
	c, err := i.connect(ctx)
	if err != nil {
		return err
	}
	if options.jobID != "" {
		j, err := queuedJob(ctx, c, queue, options.jobID)
		if err != nil {
			return err
		}
		jobs = []job.Job{j}
	}
	if options.key != "" && !options.again {
		if err := checkKey(ctx, c, jobs[0]); err != nil {
			return err
		}
	}
	receipts, err := i.enqueueAll(ctx, c, jobs, options)
	if len(receipts) > 0 || err == nil {
		if failed := i.emit(list(receipts), func(w io.Writer) error { return writeReceipts(w, receipts) }); failed != nil {
			return errors.Join(failed, err)
		}
	}
	if err != nil && len(jobs) > 1 {
		return errors.Join(err, fmt.Errorf("%d of %d jobs are in the queue; repeat the command for the others if they have keys", len(receipts), len(jobs)))
	}
	return err
}

// checkKey refuses a job that the queue would skip because its key has completed with
// another spec. A run that failed does not prevent another.
func checkKey(ctx context.Context, c *client.Client, j job.Job) error {
	live, err := c.Jobs.LiveWorkflow(ctx, j.ID)
	if err != nil || live == nil {
		return err
	}
	err = live.CheckSpec(j)
	switch {
	case errors.Is(err, client.ErrOtherSpec) && live.Workflow.Open():
		return errUnderWay(j.ID)
	case live.Workflow.Open() || live.Workflow.Status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return aboutKey(err)
	}
	return nil
}

func writeReceipts(w io.Writer, receipts []placed) error {
	t := newTable("JOB", "NUMBER", "AHEAD", "NOTE")
	for _, r := range receipts {
		note := ""
		if r.Duplicate {
			note = "already in the queue"
		}
		t.add(r.JobID, fmt.Sprint(r.Sequence), fmt.Sprint(r.Ahead), note)
	}
	return t.write(w)
}

// queuedJob finds a job of the queue in Temporal.
func queuedJob(ctx context.Context, c *client.Client, queue, jobID string) (job.Job, error) {
	live, err := c.Jobs.Live(ctx, jobID)
	switch {
	case err != nil:
		return job.Job{}, aboutJob(c, jobID, err)
	case live.Job.Queue() != queue:
		return job.Job{}, fmt.Errorf("job %s does not belong to queue %s: it is %s", jobID, queue, modeText(live.Job.Trigger))
	}
	return live.Job, nil
}

// defineQueued makes the jobs that the flags describe, all checked.
func (i *invocation) defineQueued(queue string, options enqueueOptions) ([]job.Job, error) {
	if err := job.CheckKey("queue", queue); err != nil {
		return nil, err
	}
	template, checker, err := i.definition(options.adHoc, job.Trigger{Queued: &job.Queued{Queue: queue}})
	if err != nil {
		return nil, err
	}
	if options.file != "" {
		return i.readItems(options.file, template, checker)
	}
	spec, err := i.readSpec(options.spec)
	if err != nil {
		return nil, err
	}
	j, problems := checker.complete(template, options.key, spec)
	if len(problems) == 0 {
		return []job.Job{j}, nil
	}
	errs := make([]error, len(problems))
	for n, problem := range problems {
		errs[n] = fmt.Errorf("job type %s: %s", j.Type, problem)
	}
	return nil, errors.Join(errs...)
}

// readItems reads a file of specs. All problems of all lines are shown.
func (i *invocation) readItems(path string, template job.Job, checker *checker) ([]job.Job, error) {
	from, name := i.Stdin, "standard input"
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("the items cannot be read: %w", err)
		}
		defer file.Close() //nolint:errcheck // Only read.
		from, name = file, path
	}
	var jobs []job.Job
	problems := 0
	lineOf := map[string]int{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 4*job.MaxSpecBytes)
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		key, spec := checker.splitLine(line)
		j, wrong := checker.complete(template, key, spec)
		if earlier, ok := lineOf[j.ID]; ok {
			wrong = append(wrong, fmt.Sprintf("key %q is already used in line %d", key, earlier))
		}
		lineOf[j.ID] = number
		for _, problem := range wrong {
			i.note("%s:%d: %s", name, number, clean(problem))
		}
		problems += len(wrong)
		jobs = append(jobs, j)
	}
	switch err := lines.Err(); {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", name, err)
	case problems > 0:
		return nil, fmt.Errorf("%s has %s; nothing was put into the queue", name, plural(problems, "problem", "problems"))
	case len(jobs) == 0:
		return nil, fmt.Errorf("%s has no items", name)
	}
	return jobs, nil
}

// splitLine splits {"key": …, "spec": {…}}; any other line is a spec.
func (c *checker) splitLine(line []byte) (key string, spec []byte) {
	var wrapped struct {
		Key  string          `json:"key"`
		Spec json.RawMessage `json:"spec"`
	}
	if slices.Contains(c.schema.Keys(), "spec") {
		return "", line
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wrapped); err != nil || wrapped.Spec == nil || decoder.More() {
		return "", line
	}
	return wrapped.Key, wrapped.Spec
}

// enqueueAll puts the jobs into the queue in their order, shows its progress, and
// returns the receipts of those that are in the queue.
func (i *invocation) enqueueAll(ctx context.Context, c *client.Client, jobs []job.Job, options enqueueOptions) ([]placed, error) {
	line := i.newProgress()
	began := time.Now()
	receipts, err := c.Queues.EnqueueAll(ctx, jobs, client.EnqueueOptions{AllowRerun: options.again}, func(done int) {
		if line.terminal && len(jobs) > 1 {
			line.show(fmt.Sprintf("%d of %d in queue %s", done, len(jobs), jobs[0].Queue()), time.Since(began))
		}
	})
	line.clear()
	all := make([]placed, len(receipts))
	for n, receipt := range receipts {
		all[n] = placed{jobs[n].ID, receipt}
	}
	return all, err
}
