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

// queueAct changes a queue.
type queueAct func(c *client.QueueClient, ctx context.Context, name, reason string) (contract.QueueSummary, error)

// withoutReason adapts a call that takes no reason.
func withoutReason(act func(c *client.QueueClient, ctx context.Context, name string) (contract.QueueSummary, error)) queueAct {
	return func(c *client.QueueClient, ctx context.Context, name, _ string) (contract.QueueSummary, error) {
		return act(c, ctx, name)
	}
}

// noteQueuePause notes the reasons for which a queue is paused already.
func noteQueuePause(state *client.Queue) (string, error) {
	if !state.Paused {
		return "", nil
	}
	return alreadyPaused(state.PauseReason), nil
}

// checkQueueResume finds out whether there is something to resume.
func checkQueueResume(state *client.Queue) (string, error) {
	if err := state.Err(); err != nil {
		return "", err
	}
	if state.Paused || state.Draining || state.Halted != nil {
		return "", nil
	}
	return "it was not paused, drained or halted", errNothingToDo
}

// checkRecover finds out whether the queue's workflow has ended.
func checkRecover(state *client.Queue) (string, error) {
	if state.Ended != nil {
		return "", nil
	}
	return "its workflow is running", errNothingToDo
}

// queueVerbResult is what a verb did to a queue, as JSON.
type queueVerbResult struct {
	contract.QueueSummary
	Result string `json:"result"`
	Note   string `json:"note,omitempty"` // on the queue's status before
}

// queueVerb is a command that changes a queue.
type queueVerb struct {
	name, done  string
	short, long string
	act         queueAct
	// check, if set, is called before act. It returns a note on the queue's status, and
	// errNothingToDo if act would change nothing.
	check func(*client.Queue) (string, error)
}

// apply changes a queue.
func (v queueVerb) apply(ctx context.Context, c *client.Client, name, reason string) (queueVerbResult, error) {
	outcome := queueVerbResult{Result: v.done}
	if v.check != nil {
		state, err := c.Queues.Get(ctx, name)
		if err != nil {
			return outcome, err
		}
		if outcome.Note, err = v.check(state); errors.Is(err, errNothingToDo) {
			outcome.Result, outcome.Waiting = unchanged, state.Waiting
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
	cmd.Flags().StringVar(reason, "reason", "", "reason that lists and the history show (default: your user name)")
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
			outcome, err := v.apply(cmd.Context(), c, args[0], reason)
			if err != nil {
				return aboutQueue(c, args[0], err)
			}
			return i.emit(outcome, func(io.Writer) error {
				text := fmt.Sprintf("%s, %d waiting", outcome.Result, outcome.Waiting)
				return i.print("Queue %s: %s.", args[0], clean(withNote(text, outcome.Note)))
			})
		},
	}
	for _, add := range flags {
		add(cmd, &reason)
	}
	return cmd
}
