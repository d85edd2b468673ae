package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/schedules/control"
	"github.com/dendrascience/dendra-jobs/workflows"
)

func (i *invocation) queuesCommand() *cobra.Command {
	return group("queues", "List, describe, fill and pause queues",
		i.queuesListCommand(), i.queuesDescribeCommand(), i.queuesEnqueueCommand(),
		i.queueVerbCommand("pause", "paused", "Start no more items of a queue",
			"pause lets the running item of a queue finish and starts no more until the queue is resumed. Items are still accepted.",
			(*control.Client).PauseQueue),
		i.queueVerbCommand("resume", "resumed", "Let a paused queue go on",
			"resume lets a paused queue go on.",
			func(c *control.Client, ctx context.Context, name, _ string) (workflows.QueueSummary, error) {
				return c.ResumeQueue(ctx, name)
			}),
	)
}

func (i *invocation) queuesListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List queues",
		Long: `list shows all queues. A live worker has to answer for them. A queue is made by
the first item put into it, and may take a second to show.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			states, err := c.Queues(cmd.Context())
			if err != nil {
				return err
			}
			return i.emit(list(states), func(w io.Writer) error { return i.writeQueues(w, states) })
		},
	}
}

func (i *invocation) writeQueues(w io.Writer, states []workflows.QueueState) error {
	t := newTable("QUEUE", "STATUS", "WAITING", "RUNNING", "COMPLETED", "FAILED", "CANCELED", "SKIPPED")
	for n := range states {
		state := &states[n]
		running := ""
		if state.Running != nil {
			running = state.Running.Job.ID
		}
		t.add(state.Name, queueStatus(state), fmt.Sprint(len(state.Waiting)), running,
			fmt.Sprint(state.Completed), fmt.Sprint(state.Failed), fmt.Sprint(state.Canceled), fmt.Sprint(state.Skipped))
	}
	return t.write(w)
}

func queueStatus(state *workflows.QueueState) string {
	switch {
	case state.Paused && state.PauseReason != "":
		return "paused: " + state.PauseReason
	case state.Paused:
		return "paused"
	case state.Running != nil:
		return "running"
	}
	return "idle"
}

func (i *invocation) queuesDescribeCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "describe QUEUE",
		Short: "Show what waits and runs in a queue",
		Long: `describe shows a queue: the item that runs, those that wait in the order they
will run, and the last that left it. A live worker has to answer for it.`,
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
			state, err := c.QueueState(cmd.Context(), args[0])
			if err != nil {
				return aboutQueue(c, args[0], err)
			}
			return i.emit(state, func(w io.Writer) error { return i.writeQueue(w, state, limit) })
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most so many waiting items; 0: all")
	return cmd
}

func (i *invocation) writeQueue(w io.Writer, state *workflows.QueueState, limit int) error {
	var s sheet
	s.add("Queue", "%s", state.Name)
	s.add("Status", "%s", queueStatus(state))
	s.add("Accepted", "%d", state.Accepted)
	s.add("Ended", "%d completed, %d failed, %d canceled, %d skipped", state.Completed, state.Failed, state.Canceled, state.Skipped)
	if r := state.Running; r != nil {
		s.add("Running", "%d %s, since %s", r.Sequence, r.Job.ID, i.when(r.Started))
	}
	s.add("Waiting", "%d", len(state.Waiting))
	if err := s.write(w); err != nil {
		return err
	}
	waiting := newTable("NUMBER", "JOB", "ACCEPTED")
	for n, item := range state.Waiting {
		if limit > 0 && n == limit {
			waiting.add("...", fmt.Sprintf("and %d more", len(state.Waiting)-n), "")
			break
		}
		waiting.add(fmt.Sprint(item.Sequence), item.Job.ID, i.when(item.Accepted))
	}
	if err := waiting.section(w, "Waiting, the next first"); err != nil {
		return err
	}
	recent := newTable("NUMBER", "JOB", "STATUS", "ENDED", "RAN", "ERROR")
	for n := len(state.Recent) - 1; n >= 0; n-- {
		item := state.Recent[n]
		ran := ""
		if !item.Started.IsZero() {
			ran = took(item.Ended.Sub(item.Started))
		}
		recent.add(fmt.Sprint(item.Sequence), item.JobID, string(item.Status), i.when(item.Ended), ran, item.Error)
	}
	return recent.section(w, "Latest to leave, the last first")
}

// queueVerb is something that a queue can be told.
type queueVerb func(c *control.Client, ctx context.Context, name, reason string) (workflows.QueueSummary, error)

func (i *invocation) queueVerbCommand(name, done, short, long string, act queueVerb) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               name + " QUEUE",
		Short:             short,
		Long:              long,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			if reason == "" {
				reason = defaultReason()
			}
			summary, err := act(c, cmd.Context(), args[0], reason)
			if err != nil {
				return aboutQueue(c, args[0], err)
			}
			return i.emit(summary, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "Queue %s: %s, %d waiting.\n", args[0], done, summary.Waiting)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "a few words for those who find it so (default: your user name)")
	return cmd
}
