package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// queueVerbCommands are the commands of verbs that are done to a queue, or to an item of one.
func (i *invocation) queueVerbCommands() []*cobra.Command {
	return []*cobra.Command{
		i.oneCommand(verbs.CancelQueueItem, verbHelp{"Remove a job from a queue", `cancel removes a waiting job from a queue. The handler of a running job is asked to
stop and has its grace period; the next item starts when the job has ended.`}, "QUEUE", "JOB"),
		i.oneCommand(verbs.MoveQueueItem, verbHelp{
			"Move a waiting job to the front of its queue",
			"move makes a waiting job the next one of its queue. The running item continues.",
		}, "QUEUE", "JOB"),
		i.oneCommand(verbs.PauseQueue, verbHelp{"Start no more items of a queue", `pause lets the running item of a queue finish and starts no more until the queue
is resumed. Items are still accepted. Pausing a paused queue adds a reason; one
resume ends all pauses.`}, "QUEUE"),
		i.oneCommand(verbs.ResumeQueue, verbHelp{"Resume a paused, drained or halted queue", `resume ends a pause, and lets a drained queue accept items again. In a halted queue
the failed item runs again, before the others and from its last checkpoint; a drain
that the halt interrupted goes on. If the queue is not paused, drained or halted, the
command says so and changes nothing.`}, "QUEUE"),
		i.oneCommand(verbs.SkipFailedItem, verbHelp{"Let a halted queue go on with the next item", `skip lets a halted queue go on with its next item. The failed item becomes a dead
letter: starter queues dead list shows it. If the queue halted because an overflow
page was deleted, the items of the page count as lost.`}, "QUEUE"),
		i.oneCommand(verbs.RecoverQueue, verbHelp{"Restart a queue whose workflow was terminated", `recover restarts a queue whose workflow was terminated, failed or timed out. The
queue has the same items in the same order, and the same dead letters and counts. It
waits for the item that was running, and runs no item twice. If the queue's workflow
is running, the command says so and changes nothing. recover reads the history of the
workflow, which Temporal keeps for the retention of the namespace.`}, "QUEUE"),
		i.queuesDrainCommand(), i.queuesPurgeCommand(), i.queuesSetCommand(), i.deadLettersCommand(),
	}
}

func (i *invocation) queuesSetCommand() *cobra.Command {
	var policy job.OnFailure
	cmd := i.verbCommand(verbs.SetQueueFailurePolicy, verbHelp{"Set what the failure of an item does to a queue", `set sets what a queue does when an item fails: continue with the next item, or halt
until the queue is resumed or the item skipped. on_failure in a job's table queued
overrides it for that job. A queue that does not exist is created.`},
		func(ctx context.Context, a verbs.Args, _ bool) error {
			request := &jobsv1.SetQueueFailurePolicyRequest{OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_CONTINUE}
			if policy == job.OnFailureHalt {
				request.OnFailure = jobsv1.FailurePolicy_FAILURE_POLICY_HALT
			}
			a.With = request
			done, err := i.do(ctx, verbs.SetQueueFailurePolicy, a)
			if err != nil {
				return err
			}
			return i.tell(done)
		}, "QUEUE")
	cmd.Use += " --on-failure WORD"
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if policy == "" {
			return misuse(cmd, "--on-failure is missing")
		}
		return nil
	}
	cmd.Flags().Var(choose(&policy, job.OnFailureContinue, job.OnFailureHalt), "on-failure", "continue or halt")
	completeFixed(cmd, "on-failure", string(job.OnFailureContinue), string(job.OnFailureHalt))
	return cmd
}
