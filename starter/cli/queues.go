package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
)

func (i *invocation) queuesCommand() *cobra.Command {
	return group("queues", "List, describe, fill, empty, pause and drain queues",
		i.queuesListCommand(), i.queuesDescribeCommand(), i.queuesPeekCommand(), i.queuesEnqueueCommand(),
		i.queuesCancelCommand(), i.queuesMoveCommand(),
		i.queueVerbCommand(queueVerb{
			name: "pause", done: "paused", short: "Start no more items of a queue",
			long: `pause lets the running item of a queue finish and starts no more until the queue
is resumed. Items are still accepted. Pausing a paused queue adds a reason; one
resume ends all pauses.`,
			act: (*client.QueueClient).Pause, check: noteQueuePause,
		}, withReason),
		i.queueVerbCommand(queueVerb{
			name: "resume", done: "resumed", short: "Resume a paused, drained or halted queue",
			long: `resume ends a pause, and lets a drained queue accept items again. In a halted queue
the failed item runs again, before the others and from its last checkpoint; a drain
that the halt interrupted goes on. If the queue is not paused, drained or halted, the
command says so and changes nothing.`,
			act: withoutReason((*client.QueueClient).Resume), check: checkQueueResume,
		}),
		i.queueVerbCommand(queueVerb{
			name: "skip", done: "failed item skipped", short: "Let a halted queue go on with the next item",
			long: `skip lets a halted queue go on with its next item. The failed item becomes a dead
letter: starter queues dead list shows it. If the queue halted because an overflow
page was deleted, the items of the page count as lost.`,
			act: withoutReason((*client.QueueClient).SkipFailed),
		}),
		i.queueVerbCommand(queueVerb{
			name: "recover", done: "recovered", short: "Restart a queue whose workflow was terminated",
			long: `recover restarts a queue whose workflow was terminated, failed or timed out. The
queue has the same items in the same order, and the same dead letters and counts. It
waits for the item that was running, and runs no item twice. If the queue's workflow
is running, the command says so and changes nothing. recover reads the history of the
workflow, which Temporal keeps for the retention of the namespace.`,
			act: withoutReason((*client.QueueClient).Recover), check: checkRecover,
		}),
		i.queuesDrainCommand(), i.queuesPurgeCommand(), i.queuesSetCommand(), i.deadLettersCommand(),
	)
}

func (i *invocation) queuesListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List queues",
		Long: `list shows all queues: how many items wait, the age of the oldest, and how many
items ran in the last minute and hour. It needs a running worker. The first item
creates its queue, which may take a second to appear.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			queues, failed := c.Queues.List(cmd.Context())
			if failed != nil && len(queues) == 0 {
				return failed
			}
			i.noteEmpty("queue", len(queues))
			err = i.emit(list(queues), func(w io.Writer) error { return i.writeQueues(w, queues) })
			return errors.Join(failed, err)
		},
	}
}

func (i *invocation) writeQueues(w io.Writer, queues []client.Queue) error {
	t := newTable("QUEUE", "STATUS", "WAITING", "OLDEST", "RUNNING", "LAST MINUTE", "LAST HOUR",
		"COMPLETED", "FAILED", "CANCELED", "SKIPPED", "DEAD")
	for _, q := range queues {
		oldest, running := "", ""
		if !q.Oldest.IsZero() {
			oldest = span(max(i.Now().Sub(q.Oldest), 0))
		}
		if q.Running != nil {
			running = q.Running.JobID
		}
		t.add(q.Name, queueStatus(&q), fmt.Sprint(q.Waiting), oldest, running, fmt.Sprint(q.LastMinute), fmt.Sprint(q.LastHour),
			fmt.Sprint(q.Completed), fmt.Sprint(q.Failed), fmt.Sprint(q.Canceled), fmt.Sprint(q.Skipped), fmt.Sprint(q.DeadLetters))
	}
	return t.write(w)
}

// queueStatus is the status of a queue, with the reason of a pause.
func queueStatus(q *client.Queue) string {
	if q.Ended != nil || !q.Paused {
		return string(q.Status)
	}
	paused := "paused"
	if q.PauseReason != "" {
		paused += ": " + q.PauseReason
	}
	if q.Halted != nil {
		return "halted, " + paused
	}
	return paused
}

func (i *invocation) queuesDescribeCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "describe QUEUE",
		Short: "Show the status and the items of a queue",
		Long: `describe shows a queue: the running item, the next that wait, how many ran in the
last minute and hour, and the last that ended. It needs a running worker. peek shows
all waiting items.`,
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
			queue, err := c.Queues.Get(cmd.Context(), args[0])
			if err != nil {
				return aboutQueue(c, args[0], err)
			}
			if err := queue.Err(); err != nil {
				defer i.note("%s.", clean(err.Error()))
			}
			return i.emit(queue, func(w io.Writer) error { return i.writeQueue(w, queue, limit) })
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most this many waiting items; 0: all that are not in overflow pages")
	return cmd
}

func (i *invocation) writeQueue(w io.Writer, q *client.Queue, limit int) error {
	var s sheet
	s.add("Queue", "%s", q.Name)
	s.add("Status", "%s", queueStatus(q))
	if e := q.Ended; e != nil {
		s.add("Workflow ended", "%s", i.endText(e))
	}
	if h := q.Halted; h != nil {
		s.add("Halted", "%s: %s", i.when(h.Since), h.Reason)
	}
	s.add("On failure", "%s", q.OnFailure)
	s.add("Accepted", "%d", q.Accepted)
	s.add("Ended", "%s", endedText(q))
	s.add("Throughput", "%d in the last minute, %d in the last hour", q.LastMinute, q.LastHour)
	if q.Running != nil {
		s.add("Running", "%s", i.runningText(q))
	}
	if handler := q.Stopping; handler != nil {
		s.add("Stopping", "until %s the handler of the terminated run of job %s may still be at work", i.when(handler.Until), handler.JobID)
	}
	s.add("Waiting", "%d", q.Waiting)
	if !q.Oldest.IsZero() {
		s.add("Oldest", "accepted %s", i.when(q.Oldest))
	}
	if q.DeadLetters > 0 {
		s.add("Dead letters", "%s", deadText(q))
	}
	if err := s.write(w); err != nil {
		return err
	}
	waiting := newTable("NUMBER", "JOB", "ACCEPTED")
	for n, item := range q.Next {
		if limit > 0 && n == limit {
			break
		}
		waiting.add(fmt.Sprint(item.Sequence), item.JobID, i.when(item.Accepted))
	}
	if more := q.Waiting - len(waiting.rows); more > 0 && len(waiting.rows) > 0 {
		waiting.add("...", fmt.Sprintf("and %d more", more), "")
	}
	if err := waiting.section(w, "Waiting, the next first"); err != nil {
		return err
	}
	recent := newTable("NUMBER", "JOB", "STATUS", "ENDED", "RAN", "ERROR")
	for n := len(q.Recent) - 1; n >= 0; n-- {
		item := q.Recent[n]
		ran := ""
		if !item.Started.IsZero() {
			ran = took(item.Ended.Sub(item.Started))
		}
		recent.add(fmt.Sprint(item.Sequence), item.JobID, string(item.Status), i.when(item.Ended), ran, item.Error)
	}
	return recent.section(w, "Ended, the latest first")
}

// endText is the time, the user and the reason of the end of a queue's workflow.
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

// runningText is the running item. If the queue's workflow has ended, it adds the
// status of the item's run.
func (i *invocation) runningText(queue *client.Queue) string {
	text := fmt.Sprintf("%d %s, since %s", queue.Running.Sequence, queue.Running.JobID, i.when(queue.Running.Started))
	if queue.Ended != nil && queue.Ended.Running != "" {
		text += fmt.Sprintf("; its run is %s", queue.Ended.Running)
	}
	return text
}

func endedText(q *client.Queue) string {
	text := fmt.Sprintf("%d completed, %d failed, %d canceled, %d skipped", q.Completed, q.Failed, q.Canceled, q.Skipped)
	if q.Lost > 0 {
		text += fmt.Sprintf(", %d lost", q.Lost)
	}
	return text
}

func deadText(q *client.Queue) string {
	if q.DeadLettersDropped == 0 {
		return fmt.Sprint(q.DeadLetters)
	}
	return fmt.Sprintf("%d; the %d before them were dropped", q.DeadLetters, q.DeadLettersDropped)
}
