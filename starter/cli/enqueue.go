package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// enqueueOptions are the flags of queues enqueue.
type enqueueOptions struct {
	adHoc
	jobID string
	file  string
	again bool
	flags verbFlags
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
	options.flags.register(cmd, verbs.EnqueueJobs)
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

// placed is a job with its place in the queue.
type placed struct {
	jobID string
	place *jobsv1.QueuePlace
	// completed says that the job had completed before.
	completed bool
}

func (i *invocation) enqueue(ctx context.Context, queue string, options enqueueOptions) error {
	var jobs []job.Job
	if options.jobID == "" {
		var err error
		if jobs, err = i.defineQueued(queue, options); err != nil {
			return err
		}
	}
	var requests []*jobsv1.EnqueueJobsRequest
	ids := []string{options.jobID}
	if options.jobID != "" {
		if err := i.checkQueued(ctx, queue, options.jobID); err != nil {
			return err
		}
		requests = []*jobsv1.EnqueueJobsRequest{{JobIds: ids}}
	} else {
		ids = make([]string, len(jobs))
		for n, j := range jobs {
			ids[n] = j.ID
		}
		requests = enqueueRequests(jobs)
	}
	for _, request := range requests {
		request.AllowRerun, request.RefuseOtherSpec, request.Reason = options.again, options.key != "" && !options.again, options.flags.reason
	}
	completed := (options.key != "" || options.jobID != "") && !options.again && i.hasCompleted(ctx, ids[0])
	answer, enqueued, err := i.enqueueAll(ctx, queue, requests)
	if len(answer.GetPlaces()) > 0 || err == nil {
		places := make([]placed, len(answer.GetPlaces()))
		for n, place := range answer.GetPlaces() {
			places[n] = placed{ids[n], place, completed}
		}
		if failed := i.emit(answer, func(w io.Writer) error { return writePlaces(w, places) }); failed != nil {
			return errors.Join(failed, err)
		}
	}
	err = aboutKey(err)
	if err != nil && len(ids) > 1 {
		return errors.Join(err, fmt.Errorf("%d of %d jobs are in the queue; repeat the command for the others if they have keys", enqueued, len(ids)))
	}
	return err
}

// enqueueBatch is how many jobs a request has: the queue takes so many at once, all or none.
const enqueueBatch = api.MaxBatchItems

// enqueueRequests are the requests that put jobs into a queue. Each has an id, with which it
// may be repeated.
func enqueueRequests(jobs []job.Job) []*jobsv1.EnqueueJobsRequest {
	var requests []*jobsv1.EnqueueJobsRequest
	for batch := range slices.Chunk(jobs, enqueueBatch) {
		request := &jobsv1.EnqueueJobsRequest{RequestId: uuid.NewString()}
		for _, j := range batch {
			request.Jobs = append(request.Jobs, api.JobMessage(j))
		}
		requests = append(requests, request)
	}
	return requests
}

// enqueueAll makes the requests in their order, shows its progress, and joins the answers.
// Enqueued counts the jobs that are in the queue, also at an error.
func (i *invocation) enqueueAll(ctx context.Context, queue string, requests []*jobsv1.EnqueueJobsRequest) (all *jobsv1.EnqueueJobsResponse, enqueued int, err error) {
	line := i.newProgress()
	defer line.clear()
	began := time.Now()
	total := 0
	for _, request := range requests {
		total += len(request.GetJobs())
	}
	all = &jobsv1.EnqueueJobsResponse{}
	for _, request := range requests {
		answer, err := i.api.Queues.EnqueueJobs(ctx, request)
		if err != nil {
			_, metadata := api.InfoOf(err)
			some, _ := strconv.Atoi(metadata["enqueued"]) // 0 if it is not there: none of the request is in.
			return all, enqueued + some, err
		}
		all.Places = append(all.Places, answer.GetPlaces()...)
		enqueued = len(all.GetPlaces())
		if line.terminal && total > 1 {
			line.show(fmt.Sprintf("%d of %d in queue %s", enqueued, total, queue), time.Since(began))
		}
	}
	return all, enqueued, nil
}

func writePlaces(w io.Writer, places []placed) error {
	t := newTable("JOB", "NUMBER", "AHEAD", "NOTE")
	for _, p := range places {
		note := ""
		if p.place.GetDuplicate() {
			note = "already in the queue"
		} else if p.completed {
			note = "completed before: skipped at its turn"
		}
		t.add(p.jobID, fmt.Sprint(p.place.GetSequence()), fmt.Sprint(p.place.GetAhead()), note)
	}
	return t.write(w)
}

// hasCompleted reports whether the latest run of a job completed. A lookup that fails only costs
// the note.
func (i *invocation) hasCompleted(ctx context.Context, jobID string) bool {
	answer, err := i.api.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: jobID})
	return err == nil && answer.GetJob().GetState().GetStatus() == jobsv1.JobStatus_JOB_STATUS_COMPLETED
}

// checkQueued checks that a job of Temporal belongs to the queue.
func (i *invocation) checkQueued(ctx context.Context, queue, jobID string) error {
	answer, err := i.api.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: jobID})
	if err != nil {
		return err
	}
	if j, _ := api.Definition(answer.GetJob()); j.Queue() != queue {
		return fmt.Errorf("job %s does not belong to queue %s: it is %s", jobID, queue, modeText(j.Trigger))
	}
	return nil
}

// defineQueued makes the jobs that the flags describe, all checked.
func (i *invocation) defineQueued(queue string, options enqueueOptions) ([]job.Job, error) {
	if err := job.CheckKey("queue", queue); err != nil {
		return nil, err
	}
	trigger := job.Trigger{Queued: &job.Queued{Queue: queue}}
	if options.file == "" {
		j, err := i.defined(options.adHoc, trigger)
		return []job.Job{j}, err
	}
	definition, err := i.definition(options.adHoc, trigger)
	if err != nil {
		return nil, err
	}
	return i.readItems(options.file, definition)
}

// readItems reads a file of specs. All problems of all lines are shown.
func (i *invocation) readItems(path string, definition *server.Definition) ([]job.Job, error) {
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
		key, spec := definition.SplitLine(line)
		j, wrong := definition.With(key, spec)
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
