package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
)

// queueAct does to a queue what a verb says.
type queueAct func(c *client.QueueClient, ctx context.Context, name, reason string) (contract.QueueSummary, error)

// withoutReason is a verb that takes no reason.
func withoutReason(act func(c *client.QueueClient, ctx context.Context, name string) (contract.QueueSummary, error)) queueAct {
	return func(c *client.QueueClient, ctx context.Context, name, _ string) (contract.QueueSummary, error) {
		return act(c, ctx, name)
	}
}

// queuePausedBefore says for what a queue is paused already.
func queuePausedBefore(state *client.Queue) (string, error) {
	if !state.Paused {
		return "", nil
	}
	return alreadyPaused(state.PauseReason), nil
}

// queueGoesOn says of a queue that there is nothing to resume.
func queueGoesOn(state *client.Queue) (string, error) {
	if err := state.Err(); err != nil {
		return "", err
	}
	if state.Paused || state.Draining || state.Halted != nil {
		return "", nil
	}
	return "it was not paused, drained or halted", errNothingToDo
}

// queueRuns says of a queue that there is nothing to recover.
func queueRuns(state *client.Queue) (string, error) {
	if state.Ended != nil {
		return "", nil
	}
	return "its workflow runs", errNothingToDo
}

// queueTold is what a verb has done to a queue, as JSON.
type queueTold struct {
	contract.QueueSummary
	Before string `json:"before,omitempty"` // how the queue stood
	done   string
}

// text is the outcome for people.
func (t queueTold) text() string {
	text := fmt.Sprintf("%s, %d waiting", t.done, t.Waiting)
	if t.Before == "" {
		return text
	}
	return text + "; " + t.Before
}

// queueVerb is something that a queue can be told.
type queueVerb struct {
	name, done  string
	short, long string
	act         queueAct
	// before, if set, says how the queue stood that is about to be told;
	// errNothingToDo if there is no need to tell it.
	before func(*client.Queue) (string, error)
}

// tell tells a queue.
func (v queueVerb) tell(ctx context.Context, c *client.Client, name, reason string) (queueTold, error) {
	outcome := queueTold{done: v.done}
	if v.before != nil {
		state, err := c.Queues.Get(ctx, name)
		if err != nil {
			return outcome, err
		}
		if outcome.Before, err = v.before(state); errors.Is(err, errNothingToDo) {
			outcome.done, outcome.Waiting = "left as it is", state.Waiting
			if state.Running != nil {
				outcome.Running = state.Running.JobID
			}
			return outcome, nil
		} else if err != nil {
			return outcome, err
		}
	}
	var err error
	outcome.QueueSummary, err = v.act(c.Queues, ctx, name, reason)
	return outcome, err
}

// withReason gives a verb's command the flag --reason.
func withReason(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "a few words for those who find it so (default: your user name)")
}

func (i *invocation) queueVerbCommand(v queueVerb, flags ...func(*cobra.Command, *string)) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               v.name + " QUEUE",
		Short:             v.short,
		Long:              v.long,
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
			outcome, err := v.tell(cmd.Context(), c, args[0], reason)
			if err != nil {
				return aboutQueue(c, args[0], err)
			}
			return i.emit(outcome, func(io.Writer) error { return i.print("Queue %s: %s.", args[0], clean(outcome.text())) })
		},
	}
	for _, add := range flags {
		add(cmd, &reason)
	}
	return cmd
}
