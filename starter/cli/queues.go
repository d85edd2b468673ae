package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) queuesCommand() *cobra.Command {
	return group("queues", "List, describe, fill, empty, pause and drain queues", append(i.queueVerbCommands(),
		i.queuesListCommand(), i.queuesDescribeCommand(), i.queuesPeekCommand(), i.queuesEnqueueCommand())...)
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
			list, err := listAll(cmd.Context(), i.api.Queues.ListQueues, &jobsv1.ListQueuesRequest{})
			if err != nil {
				return err
			}
			if len(list.GetUnreachable()) == 0 {
				i.noteEmpty("queue", len(list.GetQueues()))
			}
			if err := i.emit(list, func(w io.Writer) error { return i.writeQueues(w, list.GetQueues()) }); err != nil {
				return err
			}
			if unreachable := list.GetUnreachable(); len(unreachable) > 0 {
				return fmt.Errorf("%s did not answer: is a worker running? (%s)", plural(len(unreachable), "queue", "queues"), strings.Join(unreachable, ", "))
			}
			return nil
		},
	}
}

func (i *invocation) writeQueues(w io.Writer, queues []*jobsv1.Queue) error {
	t := newTable("QUEUE", "STATUS", "WAITING", "OLDEST", "RUNNING", "LAST MINUTE", "LAST HOUR",
		"COMPLETED", "FAILED", "CANCELED", "SKIPPED", "DEAD").
		spare("SKIPPED", "CANCELED", "COMPLETED", "LAST MINUTE", "LAST HOUR", "FAILED", "RUNNING", "OLDEST", "DEAD")
	for _, q := range queues {
		oldest := ""
		if q.GetOldestTime() != nil {
			oldest = span(max(i.Now().Sub(toTime(q.GetOldestTime())), 0))
		}
		t.add(q.GetName(), queueStatus(q), fmt.Sprint(q.GetWaiting()), oldest, q.GetRunning().GetJobId(),
			fmt.Sprint(q.GetRanLastMinute()), fmt.Sprint(q.GetRanLastHour()),
			fmt.Sprint(q.GetCompleted()), fmt.Sprint(q.GetFailed()), fmt.Sprint(q.GetCanceled()), fmt.Sprint(q.GetSkipped()), fmt.Sprint(q.GetDeadLetters()))
	}
	return t.write(w)
}

// queueStatus is the status of a queue, with the reason of a pause.
func queueStatus(q *jobsv1.Queue) string {
	if q.GetEnd() != nil {
		return api.Word(q.GetEnd().GetStatus())
	}
	if !q.GetPaused() {
		return api.Word(q.GetStatus())
	}
	paused := "paused"
	if q.GetPauseEndTime() != nil {
		paused += " until " + utc(toTime(q.GetPauseEndTime()))
	}
	if q.GetPauseReason() != "" {
		paused += ": " + q.GetPauseReason()
	}
	if q.GetHalt() != nil {
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
			answer, err := i.api.Queues.GetQueue(cmd.Context(), &jobsv1.GetQueueRequest{Name: args[0]})
			if err != nil {
				return err
			}
			queue := answer.GetQueue()
			if queue.GetEnd() != nil {
				defer i.note("%s.", clean(recovery(queue)))
			}
			return i.emit(answer, func(w io.Writer) error { return i.writeQueue(w, queue, limit) })
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most this many waiting items; 0: all that are not in overflow pages")
	return cmd
}

// recovery says what to do about a queue whose workflow has ended.
func recovery(q *jobsv1.Queue) string {
	return fmt.Sprintf("starter queues recover %s starts it again with what waits", q.GetName())
}

func (i *invocation) writeQueue(w io.Writer, q *jobsv1.Queue, limit int) error {
	var s sheet
	s.add("Queue", "%s", q.GetName())
	s.add("Status", "%s", queueStatus(q))
	if e := q.GetEnd(); e != nil {
		s.add("Workflow ended", "%s", i.endText(e))
	}
	if h := q.GetHalt(); h != nil {
		s.add("Halted", "%s: %s", i.when(toTime(h.GetStartTime())), h.GetReason())
	}
	s.add("On failure", "%s", api.Word(q.GetOnFailure()))
	s.add("Accepted", "%d", q.GetAccepted())
	s.add("Ended", "%s", endedText(q))
	s.add("Throughput", "%d in the last minute, %d in the last hour", q.GetRanLastMinute(), q.GetRanLastHour())
	if q.GetRunning() != nil {
		s.add("Running", "%s", i.runningText(q))
	}
	if handler := q.GetStopping(); handler != nil {
		s.add("Stopping", "until %s the handler of the terminated run of job %s may still be at work", i.when(toTime(handler.GetEndTime())), handler.GetJobId())
	}
	s.add("Waiting", "%d", q.GetWaiting())
	if q.GetOldestTime() != nil {
		s.add("Oldest", "accepted %s", i.when(toTime(q.GetOldestTime())))
	}
	if q.GetDeadLetters() > 0 {
		s.add("Dead letters", "%s", deadText(q))
	}
	if err := s.write(w); err != nil {
		return err
	}
	waiting := newTable("NUMBER", "JOB", "ACCEPTED").spare("ACCEPTED")
	for n, item := range q.GetNext() {
		if limit > 0 && n == limit {
			break
		}
		waiting.add(fmt.Sprint(item.GetSequence()), item.GetJobId(), i.when(toTime(item.GetAcceptTime())))
	}
	if more := int(q.GetWaiting()) - len(waiting.rows); more > 0 && len(waiting.rows) > 0 {
		waiting.add("...", fmt.Sprintf("and %d more", more), "")
	}
	if err := waiting.section(w, "Waiting, the next first"); err != nil {
		return err
	}
	recent := newTable("NUMBER", "JOB", "STATUS", "ENDED", "RAN", "ERROR").spare("RAN", "ENDED", "ERROR")
	for n := len(q.GetRecent()) - 1; n >= 0; n-- {
		item := q.GetRecent()[n]
		ran := ""
		if item.GetStartTime() != nil {
			ran = took(toTime(item.GetEndTime()).Sub(toTime(item.GetStartTime())))
		}
		recent.add(fmt.Sprint(item.GetSequence()), item.GetJobId(), api.Word(item.GetStatus()), i.when(toTime(item.GetEndTime())), ran, item.GetErrorMessage())
	}
	return recent.section(w, "Ended, the latest first")
}

// endText is the time, the user and the reason of the end of a queue's workflow.
func (i *invocation) endText(e *jobsv1.QueueEnd) string {
	text := i.when(toTime(e.GetEndTime()))
	if e.GetEndedBy() != "" {
		text += " by " + e.GetEndedBy()
	}
	if e.GetReason() != "" {
		text += ": " + e.GetReason()
	}
	return text
}

// runningText is the running item. If the queue's workflow has ended, it adds the
// status of the item's run.
func (i *invocation) runningText(q *jobsv1.Queue) string {
	text := fmt.Sprintf("%d %s, since %s", q.GetRunning().GetSequence(), q.GetRunning().GetJobId(), i.when(toTime(q.GetRunning().GetStartTime())))
	if status := api.Word(q.GetEnd().GetRunningStatus()); status != "" {
		text += fmt.Sprintf("; its run is %s", status)
	}
	return text
}

func endedText(q *jobsv1.Queue) string {
	text := fmt.Sprintf("%d completed, %d failed, %d canceled, %d skipped", q.GetCompleted(), q.GetFailed(), q.GetCanceled(), q.GetSkipped())
	if q.GetLost() > 0 {
		text += fmt.Sprintf(", %d lost", q.GetLost())
	}
	return text
}

func deadText(q *jobsv1.Queue) string {
	if q.GetDeadLettersDropped() == 0 {
		return fmt.Sprint(q.GetDeadLetters())
	}
	return fmt.Sprintf("%d; the %d before them were dropped", q.GetDeadLetters(), q.GetDeadLettersDropped())
}
