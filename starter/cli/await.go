package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// reportStarted shows what was started, without waiting for its end.
func (i *invocation) reportStarted(s *started) error {
	return i.emit(s.RunJobResponse, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, clean(s.sentence()))
		if err == nil {
			i.note("Show it with: %s", s.showCommand())
		}
		return err
	})
}

func (s *started) sentence() string { return withRun(s.done.Text, s.done) + "." }

// showCommand is the command that shows what was started.
func (s *started) showCommand() string {
	switch {
	case s.GetIteration() > 0:
		return "starter jobs describe " + s.GetJobId()
	case s.GetPlace() != nil:
		return "starter queues describe " + s.GetQueue()
	}
	ref := refOf(s.GetRunName())
	return fmt.Sprintf("starter runs describe %s %s", ref.workflowID, ref.runID)
}

// await waits for the end of what was started.
func (i *invocation) await(ctx context.Context, s *started) error {
	line := i.newProgress()
	err := i.follow(ctx, s, line)
	line.clear()
	if err != nil && i.ended(err) {
		why := "interrupted"
		if errors.Is(context.Cause(ctx), errTimeout) {
			why = fmt.Sprintf("gave up waiting after %s", i.timeout)
		}
		return fmt.Errorf("%s; the run goes on, show it with: %s", why, s.showCommand())
	}
	return err
}

func (i *invocation) follow(ctx context.Context, s *started, line *progressLine) error {
	switch {
	case s.GetIteration() > 0:
		return i.followIteration(ctx, s, line)
	case s.GetPlace() != nil:
		return i.followItem(ctx, s, line)
	}
	return i.followRun(ctx, s.GetRunName(), line)
}

// watch follows a run to its end.
func watch(ctx context.Context, c *api.Clients, name string, report func(*jobsv1.Run)) (*jobsv1.Run, error) {
	stream, err := c.Runs.WatchRun(ctx, &jobsv1.WatchRunRequest{Name: name})
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	var last *jobsv1.Run
	for {
		response, err := stream.Receive()
		switch {
		case errors.Is(err, io.EOF) && last != nil:
			return last, nil
		case err != nil:
			return nil, err
		}
		last = response.GetRun()
		report(last)
	}
}

func (i *invocation) followRun(ctx context.Context, name string, line *progressLine) error {
	run, err := watch(ctx, i.api, name, func(run *jobsv1.Run) {
		if verbs.Open(run.GetStatus()) {
			line.show(runProgress(run), i.since(run))
		}
	})
	if err != nil {
		return err
	}
	line.clear()
	if err := i.emit(run, func(w io.Writer) error { return i.writeRunEnd(w, run) }); err != nil {
		return err
	}
	return runError(run)
}

// runProgress is the progress of a run in a few words.
func runProgress(run *jobsv1.Run) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case run.GetWaitingForWorker() && run.GetWorkerType() != "":
		add("waiting for a worker of type %s", run.GetWorkerType())
	case run.GetWaitingForWorker():
		add("waiting for a worker")
	case run.GetNextAttemptTime() != nil:
		add("waiting to try again")
	default:
		add("%s", wordOf(run.GetStatus()))
	}
	if run.GetAttempts() > 1 {
		add("attempt %d", run.GetAttempts())
	}
	if text := progressText(run); text != "" {
		add("%s", text)
	}
	if run.GetLastError() != "" {
		add("last error: %s", errorText(run.GetLastErrorClass(), run.GetLastError()))
	}
	return strings.Join(parts, ", ")
}

// runError is the error of a run that did not complete.
func runError(run *jobsv1.Run) error {
	if run.GetStatus() == jobsv1.RunStatus_RUN_STATUS_COMPLETED {
		return nil
	}
	text := fmt.Sprintf("run of job %s %s", run.GetJobId(), endWords[run.GetStatus()])
	if run.GetStatus() == jobsv1.RunStatus_RUN_STATUS_FAILED && run.GetErrorMessage() != "" {
		text += ": " + run.GetErrorMessage()
	}
	return errors.New(text)
}

var endWords = map[jobsv1.RunStatus]string{
	jobsv1.RunStatus_RUN_STATUS_FAILED:     "failed",
	jobsv1.RunStatus_RUN_STATUS_CANCELED:   "was canceled",
	jobsv1.RunStatus_RUN_STATUS_TERMINATED: "was terminated",
	jobsv1.RunStatus_RUN_STATUS_TIMED_OUT:  "timed out",
	jobsv1.RunStatus_RUN_STATUS_HELD_BACK:  "was held back",
	jobsv1.RunStatus_RUN_STATUS_SUPERSEDED: "gave way to another start",
	jobsv1.RunStatus_RUN_STATUS_CANCELING:  "has not ended",
	jobsv1.RunStatus_RUN_STATUS_RUNNING:    "has not ended",
	jobsv1.RunStatus_RUN_STATUS_WAITING:    "has not begun",
}

// writeRunEnd shows the status and the result of a run that has ended.
func (i *invocation) writeRunEnd(w io.Writer, run *jobsv1.Run) error {
	var s sheet
	ref := refOf(run.GetName())
	s.add("Job", "%s", run.GetJobId())
	s.add("Run", "%s %s", ref.workflowID, ref.runID)
	s.add("Status", "%s", i.statusText(run))
	s.add("Result", "%s", run.GetMessage())
	s.add("Counts", "%s", counts(run.GetCounts()))
	s.add("Worker", "%s", run.GetWorker())
	return s.write(w)
}

func (i *invocation) statusText(run *jobsv1.Run) string {
	text := fmt.Sprintf("%s after %s", wordOf(run.GetStatus()), took(i.since(run)))
	if run.GetAttempts() > 1 {
		text += fmt.Sprintf(", %d attempts", run.GetAttempts())
	}
	return text
}

// counts writes counts in the order of their names.
func counts(counts map[string]int64) string {
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

func (i *invocation) followItem(ctx context.Context, s *started, line *progressLine) error {
	begin := time.Now()
	i.note("%s", clean(s.sentence()))
	stream, err := i.api.Queues.WatchQueueItem(ctx, &jobsv1.WatchQueueItemRequest{
		Queue: s.GetQueue(), Sequence: s.GetPlace().GetSequence(), JobId: s.GetJobId(), Job: s.definition,
	})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	for {
		turn, err := stream.Receive()
		switch {
		case err != nil:
			return err
		case turn.GetRunName() != "":
			return i.followRun(ctx, turn.GetRunName(), line)
		case turn.GetStatus() != "":
			line.clear()
			return i.itemEnd(s, turn)
		case turn.GetUnanswered():
			line.show("no worker answers for queue "+s.GetQueue(), time.Since(begin))
		default:
			line.show(fmt.Sprintf("waiting in queue %s, %d ahead", s.GetQueue(), turn.GetAhead()), time.Since(begin))
		}
	}
}

// itemEnd tells of an item that has left its queue without a run.
func (i *invocation) itemEnd(s *started, turn *jobsv1.WatchQueueItemResponse) error {
	if err := i.emit(turn, func(io.Writer) error { return nil }); err != nil {
		return err
	}
	text := fmt.Sprintf("item %d of queue %s, job %s, was %s", s.GetPlace().GetSequence(), s.GetQueue(), s.GetJobId(), turn.GetStatus())
	if turn.GetErrorMessage() != "" {
		text += ": " + turn.GetErrorMessage()
	}
	return errors.New(text)
}

func (i *invocation) followIteration(ctx context.Context, s *started, line *progressLine) error {
	line.show(fmt.Sprintf("waiting for the end of iteration %d", s.GetIteration()), 0)
	run, err := watch(ctx, i.api, s.GetRunName(), func(run *jobsv1.Run) {
		if verbs.Open(run.GetStatus()) {
			line.show(fmt.Sprintf("%s, iteration %d", wordOf(run.GetStatus()), run.GetIteration()), i.since(run))
		}
	})
	if err != nil {
		return err
	}
	line.clear()
	if err := i.emit(run, func(w io.Writer) error { return i.writeIterationEnd(w, run) }); err != nil {
		return err
	}
	if run.GetErrorMessage() != "" {
		return fmt.Errorf("iteration %d of job %s failed: %s", run.GetIteration(), s.GetJobId(), run.GetErrorMessage())
	}
	return nil
}

func (i *invocation) writeIterationEnd(w io.Writer, run *jobsv1.Run) error {
	var out sheet
	out.add("Job", "%s", run.GetJobId())
	out.add("Iteration", "%d", run.GetIteration())
	out.add("Status", "%s", i.iterationStatus(run))
	out.add("Result", "%s", run.GetMessage())
	out.add("Counts", "%s", counts(run.GetCounts()))
	out.add("Worker", "%s", run.GetWorker())
	return out.write(w)
}

func (i *invocation) iterationStatus(run *jobsv1.Run) string {
	status := wordOf(run.GetStatus())
	switch run.GetStatus() {
	case jobsv1.RunStatus_RUN_STATUS_UNSPECIFIED:
		return "ended; its job no longer has its result"
	case jobsv1.RunStatus_RUN_STATUS_INTERRUPTED:
		status = "cut short"
	}
	return fmt.Sprintf("%s after %s", status, took(i.since(run)))
}
