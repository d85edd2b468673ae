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

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// reportStarted shows what was started, without waiting for its end.
func (i *invocation) reportStarted(s *started) error {
	return i.emit(s, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, s.sentence())
		if err == nil {
			i.note("Show it with: %s", s.showCommand())
		}
		return err
	})
}

func (s *started) sentence() string {
	switch {
	case s.Completed:
		return fmt.Sprintf("Job %s has completed: workflow %s, run %s.", s.Job.ID, s.Run.WorkflowID, s.Run.RunID)
	case s.Run != nil && !s.At.IsZero():
		return fmt.Sprintf("Job %s begins at %s: workflow %s, run %s.", s.Job.ID, utc(s.At), s.Run.WorkflowID, s.Run.RunID)
	case s.Run != nil:
		return fmt.Sprintf("Started job %s: workflow %s, run %s.", s.Job.ID, s.Run.WorkflowID, s.Run.RunID)
	case s.Receipt != nil:
		return fmt.Sprintf("Put job %s into queue %s: %s.", s.Job.ID, s.Job.Queue(), receiptText(*s.Receipt))
	}
	return fmt.Sprintf("Triggered iteration %d of job %s.", s.Iteration, s.Job.ID)
}

// result is the sentence without the job, for lists.
func (s *started) result() string {
	switch {
	case s.Run != nil:
		return fmt.Sprintf("started run %s of %s", s.Run.RunID, s.Run.WorkflowID)
	case s.Receipt != nil:
		return fmt.Sprintf("put into queue %s, %s", s.Job.Queue(), receiptText(*s.Receipt))
	}
	return fmt.Sprintf("triggered iteration %d", s.Iteration)
}

func receiptText(receipt contract.EnqueueReceipt) string {
	text := fmt.Sprintf("number %d, %d ahead", receipt.Sequence, receipt.Ahead)
	if receipt.Duplicate {
		text += ", was in it already"
	}
	return text
}

// showCommand is the command that shows what was started.
func (s *started) showCommand() string {
	switch {
	case s.Run != nil:
		return fmt.Sprintf("starter runs describe %s %s", s.Run.WorkflowID, s.Run.RunID)
	case s.Receipt != nil:
		return "starter queues describe " + s.Job.Queue()
	}
	return "starter jobs describe " + s.Job.ID
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
	case s.Run != nil:
		return i.followRun(ctx, s, *s.Run, line)
	case s.Receipt != nil:
		return i.followItem(ctx, s, line)
	}
	return i.followIteration(ctx, s, line)
}

func (i *invocation) followRun(ctx context.Context, s *started, ref client.RunRef, line *progressLine) error {
	detail, err := s.client.Runs.Follow(ctx, ref, func(detail *client.RunDetail) {
		line.show(runProgress(detail), detail.Duration())
	})
	if err != nil {
		return err
	}
	line.clear()
	if err := i.emit(detail, func(w io.Writer) error { return i.writeRunEnd(w, detail) }); err != nil {
		return err
	}
	return runError(detail)
}

// runProgress is the progress of a run in a few words.
func runProgress(detail *client.RunDetail) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case detail.WaitingForWorker && detail.Job != nil:
		add("waiting for a worker of type %s", detail.Job.Worker)
	case detail.WaitingForWorker:
		add("waiting for a worker")
	case !detail.NextAttempt.IsZero():
		add("waiting to try again")
	default:
		add("%s", detail.Status)
	}
	if detail.Attempts > 1 {
		add("attempt %d", detail.Attempts)
	}
	if detail.Progress != nil && *detail.Progress != (job.Progress{}) {
		add("%s", detail.Progress)
	}
	if detail.LastError != "" {
		add("last error: %s", detail.LastError)
	}
	return strings.Join(parts, ", ")
}

// runError is the error of a run that did not complete.
func runError(detail *client.RunDetail) error {
	if detail.Status == client.RunCompleted {
		return nil
	}
	text := fmt.Sprintf("run of job %s %s", detail.JobID, endWords[detail.Status])
	if detail.Status == client.RunFailed && detail.Error != "" {
		text += ": " + detail.Error
	}
	return errors.New(text)
}

var endWords = map[client.RunStatus]string{
	client.RunFailed:     "failed",
	client.RunCanceled:   "was canceled",
	client.RunTerminated: "was terminated",
	client.RunTimedOut:   "timed out",
	client.RunHeldBack:   "was held back",
	client.RunSuperseded: "gave way to another start",
	client.RunRunning:    "has not ended",
	client.RunWaiting:    "has not begun",
}

// writeRunEnd shows the status and the result of a run that has ended.
func (i *invocation) writeRunEnd(w io.Writer, detail *client.RunDetail) error {
	var s sheet
	s.add("Job", "%s", detail.JobID)
	s.add("Run", "%s %s", detail.WorkflowID, detail.RunID)
	s.add("Status", "%s", statusText(detail))
	if output := detail.Output; output != nil {
		s.add("Result", "%s", output.Message)
		s.add("Counts", "%s", counts(output.Counts))
	}
	s.add("Worker", "%s", detail.Worker)
	return s.write(w)
}

func statusText(detail *client.RunDetail) string {
	text := fmt.Sprintf("%s after %s", detail.Status, took(detail.Duration()))
	if detail.Attempts > 1 {
		text += fmt.Sprintf(", %d attempts", detail.Attempts)
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
	i.note("%s", s.sentence())
	turn, err := s.client.Queues.AwaitTurn(ctx, s.Job, s.Receipt.Sequence, func(ahead int) {
		switch {
		case ahead < 0:
			line.show("no worker answers for queue "+s.Job.Queue(), time.Since(begin))
		default:
			line.show(fmt.Sprintf("waiting in queue %s, %d ahead", s.Job.Queue(), ahead), time.Since(begin))
		}
	})
	if err != nil {
		return err
	}
	if turn.Run != nil {
		return i.followRun(ctx, s, *turn.Run, line)
	}
	line.clear()
	if err := i.emit(turn.Finished, func(io.Writer) error { return nil }); err != nil {
		return err
	}
	text := fmt.Sprintf("item %d of queue %s, job %s, was %s", s.Receipt.Sequence, s.Job.Queue(), s.Job.ID, turn.Finished.Status)
	if turn.Finished.Error != "" {
		text += ": " + turn.Finished.Error
	}
	return errors.New(text)
}

func (i *invocation) followIteration(ctx context.Context, s *started, line *progressLine) error {
	begin := time.Now()
	iteration, err := s.client.Runs.FollowIteration(ctx, s.Job.ID, s.Iteration, func(state *contract.ContinuousState) {
		text := "no worker answers"
		if state != nil {
			text = fmt.Sprintf("%s, iteration %d", state.Phase, state.Iterations+1)
		}
		line.show(text, time.Since(begin))
	})
	if err != nil {
		return aboutJob(s.client, s.Job.ID, err)
	}
	line.clear()
	if err := i.emit(iteration, func(w io.Writer) error { return i.writeIterationEnd(w, s, iteration) }); err != nil {
		return err
	}
	if iteration.Error != "" {
		return fmt.Errorf("iteration %d of job %s failed: %s", iteration.Number, s.Job.ID, iteration.Error)
	}
	return nil
}

func (i *invocation) writeIterationEnd(w io.Writer, s *started, iteration *contract.Iteration) error {
	var out sheet
	out.add("Job", "%s", s.Job.ID)
	out.add("Iteration", "%d", iteration.Number)
	out.add("Status", "%s", iterationStatus(*iteration))
	out.add("Result", "%s", iteration.Message)
	out.add("Counts", "%s", counts(iteration.Counts))
	out.add("Worker", "%s", iteration.Worker)
	return out.write(w)
}

func iterationStatus(iteration contract.Iteration) string {
	status := "completed"
	switch {
	case iteration.Start.IsZero():
		return "ended; its job no longer has its result"
	case iteration.Error != "":
		status = "failed"
	case iteration.Stopped:
		status = "stopped"
	}
	return fmt.Sprintf("%s after %s", status, took(iteration.Duration.Std()))
}
