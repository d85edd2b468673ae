package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) queuesPeekCommand() *cobra.Command {
	var from, limit int
	cmd := &cobra.Command{
		Use:   "peek QUEUE",
		Short: "List the waiting items of a queue",
		Long: `peek lists the waiting items of a queue in the order in which they will run, those
in overflow pages included. AHEAD is how many run before.`,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 || from < 0 {
				return misuse(cmd, "--from and --limit are not negative")
			}
			clients, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			answer, err := listItems(cmd.Context(), clients, args[0], from, limit)
			if err != nil {
				return aboutQueue(err)
			}
			i.noteEmpty("item", len(answer.GetItems()))
			return i.emit(answer, func(w io.Writer) error {
				t := newTable("AHEAD", "NUMBER", "JOB", "ACCEPTED")
				for _, item := range answer.GetItems() {
					t.add(fmt.Sprint(item.GetAhead()), fmt.Sprint(item.GetSequence()), item.GetJobId(), i.when(toTime(item.GetAcceptTime())))
				}
				return t.write(w)
			})
		},
	}
	cmd.Flags().IntVar(&from, "from", 0, "skip this many items")
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most this many items; 0: all")
	return cmd
}

// listItems lists the waiting items of a queue in one answer, but for the first from; limit
// 0 means all.
func listItems(ctx context.Context, clients *api.Clients, queue string, from, limit int) (*jobsv1.ListQueueItemsResponse, error) {
	most := 0
	if limit > 0 {
		most = from + limit
	}
	all, err := listSome(ctx, clients.Queues.ListQueueItems, &jobsv1.ListQueueItemsRequest{Queue: queue}, most,
		func(all *jobsv1.ListQueueItemsResponse) int { return len(all.GetItems()) })
	if err != nil {
		return nil, err
	}
	all.NextPageToken = "" // --from goes on.
	all.Items = all.GetItems()[min(from, len(all.GetItems())):]
	if limit > 0 {
		all.Items = all.GetItems()[:min(limit, len(all.GetItems()))]
	}
	return all, nil
}

func (i *invocation) queuesCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel QUEUE JOB",
		Short: "Remove a job from a queue",
		Long: `cancel removes a waiting job from a queue. The handler of a running job is asked to
stop and has its grace period; the next item starts when the job has ended.`,
		Args:              arguments("QUEUE", "JOB"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			clients, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			answer, err := clients.Queues.CancelQueueItem(cmd.Context(), &jobsv1.CancelQueueItemRequest{Queue: args[0], JobId: args[1]})
			if err != nil {
				return aboutItem(args[0], args[1], err)
			}
			return i.emit(answer, func(io.Writer) error {
				if answer.GetRunning() {
					return i.print("Job %s is running in queue %s: stop requested.", args[1], args[0])
				}
				return i.print("Job %s: removed from queue %s.", args[1], args[0])
			})
		},
	}
}

func (i *invocation) queuesMoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "move QUEUE JOB",
		Short:             "Move a waiting job to the front of its queue",
		Long:              "move makes a waiting job the next one of its queue. The running item continues.",
		Args:              arguments("QUEUE", "JOB"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			clients, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			answer, err := clients.Queues.MoveQueueItem(cmd.Context(), &jobsv1.MoveQueueItemRequest{Queue: args[0], JobId: args[1]})
			if err != nil {
				return aboutItem(args[0], args[1], err)
			}
			return i.emit(answer, func(io.Writer) error {
				return i.print("Job %s: the next one of queue %s, %d waiting.", args[1], args[0], answer.GetSummary().GetWaiting())
			})
		},
	}
}

func (i *invocation) queuesSetCommand() *cobra.Command {
	var policy job.OnFailure
	cmd := &cobra.Command{
		Use:   "set QUEUE --on-failure WORD",
		Short: "Set what the failure of an item does to a queue",
		Long: `set sets what a queue does when an item fails: continue with the next item, or halt
until the queue is resumed or the item skipped. on_failure in a job's table queued
overrides it for that job. A queue that does not exist is created.`,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			if policy == "" {
				return misuse(cmd, "--on-failure is missing")
			}
			if err := job.CheckKey("queue", args[0]); err != nil {
				return err
			}
			clients, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			request := &jobsv1.SetQueueFailurePolicyRequest{Queue: args[0], OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_CONTINUE}
			if policy == job.OnFailureHalt {
				request.OnFailure = jobsv1.FailurePolicy_FAILURE_POLICY_HALT
			}
			answer, err := clients.Queues.SetQueueFailurePolicy(cmd.Context(), request)
			if err != nil {
				return err
			}
			return i.emit(answer, func(io.Writer) error { return i.print("Queue %s: on failure %s.", args[0], policy) })
		},
	}
	cmd.Flags().Var(choose(&policy, job.OnFailureContinue, job.OnFailureHalt), "on-failure", "continue or halt")
	completeFixed(cmd, "on-failure", string(job.OnFailureContinue), string(job.OnFailureHalt))
	return cmd
}
