package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// queueVerb is a command that changes a queue.
type queueVerb struct {
	use, short, long string
	// act changes the queue, and gives the answer of the Job API with the result for people.
	act func(ctx context.Context, clients *api.Clients, queue string) (proto.Message, queueResult, error)
}

// queueResult is what a verb did to a queue.
type queueResult struct {
	done    string
	summary *jobsv1.QueueSummary
	note    string // on the queue's status before
}

func (r queueResult) text() string {
	return withNote(fmt.Sprintf("%s, %d waiting", r.done, r.summary.GetWaiting()), r.note)
}

func (i *invocation) queueVerbCommand(v queueVerb) *cobra.Command {
	return &cobra.Command{
		Use:               v.use + " QUEUE",
		Short:             v.short,
		Long:              v.long,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			clients, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			answer, result, err := v.act(cmd.Context(), clients, args[0])
			if err != nil {
				return aboutQueue(err)
			}
			return i.emit(answer, func(io.Writer) error { return i.print("Queue %s: %s.", args[0], clean(result.text())) })
		},
	}
}

// withReason gives a verb's command the flag --reason.
func withReason(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "reason that lists and the history show (default: your user name)")
}

func (i *invocation) queuesPauseCommand() *cobra.Command {
	var reason string
	cmd := i.queueVerbCommand(queueVerb{
		use: "pause", short: "Start no more items of a queue",
		long: `pause lets the running item of a queue finish and starts no more until the queue
is resumed. Items are still accepted. Pausing a paused queue adds a reason; one
resume ends all pauses.`,
		act: func(ctx context.Context, clients *api.Clients, queue string) (proto.Message, queueResult, error) {
			answer, err := clients.Queues.PauseQueue(ctx, &jobsv1.PauseQueueRequest{Queue: queue, Reason: cmp.Or(reason, defaultReason())})
			result := queueResult{done: "paused", summary: answer.GetSummary()}
			if answer.GetAlreadyPaused() {
				result.note = alreadyPaused(answer.GetPreviousReason())
			}
			return answer, result, err
		},
	})
	withReason(cmd, &reason)
	return cmd
}

func (i *invocation) queuesResumeCommand() *cobra.Command {
	return i.queueVerbCommand(queueVerb{
		use: "resume", short: "Resume a paused, drained or halted queue",
		long: `resume ends a pause, and lets a drained queue accept items again. In a halted queue
the failed item runs again, before the others and from its last checkpoint; a drain
that the halt interrupted goes on. If the queue is not paused, drained or halted, the
command says so and changes nothing.`,
		act: func(ctx context.Context, clients *api.Clients, queue string) (proto.Message, queueResult, error) {
			answer, err := clients.Queues.ResumeQueue(ctx, &jobsv1.ResumeQueueRequest{Queue: queue})
			result := queueResult{done: "resumed", summary: answer.GetSummary()}
			if answer.GetUnchanged() {
				result.done, result.note = unchanged, "it was not paused, drained or halted"
			}
			return answer, result, err
		},
	})
}

func (i *invocation) queuesSkipCommand() *cobra.Command {
	return i.queueVerbCommand(queueVerb{
		use: "skip", short: "Let a halted queue go on with the next item",
		long: `skip lets a halted queue go on with its next item. The failed item becomes a dead
letter: starter queues dead list shows it. If the queue halted because an overflow
page was deleted, the items of the page count as lost.`,
		act: func(ctx context.Context, clients *api.Clients, queue string) (proto.Message, queueResult, error) {
			answer, err := clients.Queues.SkipFailedItem(ctx, &jobsv1.SkipFailedItemRequest{Queue: queue})
			return answer, queueResult{done: "failed item skipped", summary: answer.GetSummary()}, err
		},
	})
}

func (i *invocation) queuesRecoverCommand() *cobra.Command {
	return i.queueVerbCommand(queueVerb{
		use: "recover", short: "Restart a queue whose workflow was terminated",
		long: `recover restarts a queue whose workflow was terminated, failed or timed out. The
queue has the same items in the same order, and the same dead letters and counts. It
waits for the item that was running, and runs no item twice. If the queue's workflow
is running, the command says so and changes nothing. recover reads the history of the
workflow, which Temporal keeps for the retention of the namespace.`,
		act: func(ctx context.Context, clients *api.Clients, queue string) (proto.Message, queueResult, error) {
			answer, err := clients.Queues.RecoverQueue(ctx, &jobsv1.RecoverQueueRequest{Queue: queue})
			result := queueResult{done: "recovered", summary: answer.GetSummary()}
			if answer.GetUnchanged() {
				result.done, result.note = unchanged, "its workflow is running"
			}
			return answer, result, err
		},
	})
}
