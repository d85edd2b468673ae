package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/workflows"
)

func (i *invocation) queuesCommand() *cobra.Command {
	return group("queues", "List, describe, fill, empty, pause and drain queues",
		i.queuesListCommand(), i.queuesDescribeCommand(), i.queuesPeekCommand(), i.queuesEnqueueCommand(),
		i.queuesCancelCommand(), i.queuesMoveCommand(),
		i.queueVerbCommand(queueVerb{
			name: "pause", done: "paused", short: "Start no more items of a queue",
			long: `pause lets the running item of a queue finish and starts no more until the queue
is resumed. Items are still accepted. A queue that is paused already keeps the
reason of that and gets another one; one resume undoes all.`,
			act: (*client.Client).PauseQueue, before: queuePausedBefore,
		}, withReason),
		i.queueVerbCommand(queueVerb{
			name: "resume", done: "resumed", short: "Let a paused, drained or halted queue go on",
			long: `resume lets a queue go on that was paused, and lets one that was drained take
items again. In a halted queue the item that failed is tried again, first, from
the last position that it left; if it was being drained, that goes on. Of a queue
that is nothing of these it says so, and does nothing.`,
			act: withoutReason((*client.Client).ResumeQueue), before: queueGoesOn,
		}),
		i.queueVerbCommand(queueVerb{
			name: "skip", done: "skipped what failed", short: "Let a halted queue go on with the next item",
			long: `skip lets a halted queue go on with its next item. The item that failed becomes a
dead letter: starter queues dead list shows it. A page of waiting items that
someone deleted, and that halted the queue, is given up and counted as lost.`,
			act: withoutReason((*client.Client).SkipFailed),
		}),
		i.queueVerbCommand(queueVerb{
			name: "recover", done: "recovered", short: "Start a queue again whose workflow was terminated",
			long: `recover starts a queue again whose workflow someone terminated, or which failed or
timed out, as it was: with what waits, in its order, and all that describe shows. An
item that was at work is awaited first; what has run is not run again. Of a queue that
runs it says so, and does nothing. It needs the history of the queue's workflow, which
is kept for the retention of the namespace.`,
			act: withoutReason((*client.Client).RecoverQueue), before: queueRuns,
		}),
		i.queuesDrainCommand(), i.queuesPurgeCommand(), i.queuesSetCommand(), i.deadLettersCommand(),
	)
}

// queueView is a queue as it is shown as JSON.
type queueView struct {
	Depth      int       `json:"depth"`
	Oldest     time.Time `json:"oldest,omitzero"` // when the longest waiting item was accepted
	LastMinute int       `json:"ran_last_minute"`
	LastHour   int       `json:"ran_last_hour"`
	*client.Queue
}

func (i *invocation) viewOf(queue *client.Queue) queueView {
	now := i.Now()
	return queueView{queue.Depth(), queue.Oldest(), queue.Pace.LastMinute(now), queue.Pace.LastHour(now), queue}
}

func (i *invocation) queuesListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List queues",
		Long: `list shows all queues: what waits, for how long the oldest item has, and how many
ran in the last minute and hour. A live worker has to answer for them. A queue is
made by the first item put into it, and may take a second to show.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			queues, failed := c.Queues(cmd.Context())
			if failed != nil && len(queues) == 0 {
				return failed
			}
			views := make([]queueView, len(queues))
			for n := range queues {
				views[n] = i.viewOf(&queues[n])
			}
			i.noteEmpty("queue", len(views))
			err = i.emit(list(views), func(w io.Writer) error { return i.writeQueues(w, views) })
			return errors.Join(failed, err)
		},
	}
}

func (i *invocation) writeQueues(w io.Writer, views []queueView) error {
	t := newTable("QUEUE", "STATUS", "WAITING", "OLDEST", "RUNNING", "LAST MINUTE", "LAST HOUR",
		"COMPLETED", "FAILED", "CANCELED", "SKIPPED", "DEAD")
	for _, v := range views {
		oldest, running := "", ""
		if !v.Oldest.IsZero() {
			oldest = span(max(i.Now().Sub(v.Oldest), 0))
		}
		if v.Running != nil {
			running = v.Running.Job.ID
		}
		t.add(v.Name, queueStatus(v.Queue), fmt.Sprint(v.Depth), oldest, running, fmt.Sprint(v.LastMinute), fmt.Sprint(v.LastHour),
			fmt.Sprint(v.Completed), fmt.Sprint(v.Failed), fmt.Sprint(v.Canceled), fmt.Sprint(v.Skipped), fmt.Sprint(len(v.DeadLetters)))
	}
	return t.write(w)
}

func queueStatus(state *client.Queue) string {
	switch {
	case state.Ended != nil:
		return string(state.Ended.Status)
	case state.Halted != nil && state.Paused:
		return "halted, paused: " + state.PauseReason
	case state.Halted != nil:
		return "halted"
	case state.Paused && state.PauseReason != "":
		return "paused: " + state.PauseReason
	case state.Paused:
		return "paused"
	case state.Draining && state.Running == nil && state.Depth() == 0:
		return "drained"
	case state.Draining:
		return "draining"
	case state.Running != nil:
		return "running"
	case state.Settling != nil:
		return "settling"
	}
	return "idle"
}

func (i *invocation) queuesDescribeCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "describe QUEUE",
		Short: "Show what waits and runs in a queue",
		Long: `describe shows a queue: the item that runs, the next that wait, how many ran in
the last minute and hour, and the last that left it. A live worker has to answer
for it. peek shows all that wait.`,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return misuse(cmd, "--limit %d is negative", limit)
			}
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			queue, err := c.Queue(cmd.Context(), args[0])
			if err != nil {
				return aboutQueue(c, args[0], err)
			}
			view := i.viewOf(queue)
			if err := queue.Err(); err != nil {
				defer i.note("%s.", clean(err.Error()))
			}
			return i.emit(view, func(w io.Writer) error { return i.writeQueue(w, view, limit) })
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most so many waiting items; 0: as many as the queue itself holds")
	return cmd
}

func (i *invocation) writeQueue(w io.Writer, v queueView, limit int) error {
	var s sheet
	s.add("Queue", "%s", v.Name)
	s.add("Status", "%s", queueStatus(v.Queue))
	if e := v.Queue.Ended; e != nil {
		s.add("Workflow ended", "%s", i.endText(e))
	}
	if h := v.Halted; h != nil {
		s.add("Halted", "%s: %s", i.when(h.Since), h.Reason())
	}
	s.add("On failure", "%s", v.OnFailure)
	s.add("Accepted", "%d", v.Accepted)
	s.add("Ended", "%s", endedText(v.QueueState))
	s.add("Throughput", "%d in the last minute, %d in the last hour", v.LastMinute, v.LastHour)
	if v.Running != nil {
		s.add("Running", "%s", i.runningText(v.Queue))
	}
	if w := v.Settling; w != nil {
		s.add("Settling", "until %s the handler of the terminated run of job %s may still be at work", i.when(w.Until), w.JobID)
	}
	s.add("Waiting", "%d", v.Depth)
	if !v.Oldest.IsZero() {
		s.add("Oldest", "accepted %s", i.when(v.Oldest))
	}
	if n := len(v.DeadLetters); n > 0 {
		s.add("Dead letters", "%s", deadText(v.QueueState))
	}
	if err := s.write(w); err != nil {
		return err
	}
	waiting := newTable("NUMBER", "JOB", "ACCEPTED")
	for n, item := range v.Waiting {
		if limit > 0 && n == limit {
			break
		}
		waiting.add(fmt.Sprint(item.Sequence), item.Job.ID, i.when(item.Accepted))
	}
	if more := v.Depth - len(waiting.rows); more > 0 && len(waiting.rows) > 0 {
		waiting.add("...", fmt.Sprintf("and %d more", more), "")
	}
	if err := waiting.section(w, "Waiting, the next first"); err != nil {
		return err
	}
	recent := newTable("NUMBER", "JOB", "STATUS", "ENDED", "RAN", "ERROR")
	for n := len(v.Recent) - 1; n >= 0; n-- {
		item := v.Recent[n]
		ran := ""
		if !item.Started.IsZero() {
			ran = took(item.Ended.Sub(item.Started))
		}
		recent.add(fmt.Sprint(item.Sequence), item.JobID, string(item.Status), i.when(item.Ended), ran, item.Error)
	}
	return recent.section(w, "Latest to leave, the last first")
}

// endText says when a queue's workflow ended, by whom and why.
func (i *invocation) endText(e *client.QueueEnd) string {
	text := i.when(e.At)
	if e.By != "" {
		text += " by " + e.By
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// runningText is the item that runs; of a queue whose workflow has ended, with what has
// become of its run.
func (i *invocation) runningText(queue *client.Queue) string {
	text := fmt.Sprintf("%d %s, since %s", queue.Running.Sequence, queue.Running.Job.ID, i.when(queue.Running.Started))
	if queue.Ended != nil && queue.Ended.Running != "" {
		text += fmt.Sprintf("; its run is %s", queue.Ended.Running)
	}
	return text
}

func endedText(state *workflows.QueueState) string {
	text := fmt.Sprintf("%d completed, %d failed, %d canceled, %d skipped", state.Completed, state.Failed, state.Canceled, state.Skipped)
	if state.Lost > 0 {
		text += fmt.Sprintf(", %d lost", state.Lost)
	}
	return text
}

func deadText(state *workflows.QueueState) string {
	if state.DeadDropped == 0 {
		return fmt.Sprint(len(state.DeadLetters))
	}
	return fmt.Sprintf("%d; the %d before them were dropped", len(state.DeadLetters), state.DeadDropped)
}
