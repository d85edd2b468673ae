package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// completionTimeout is how long a shell may wait for suggestions.
const completionTimeout = 2 * time.Second

// completionRuns is how many of the latest runs are looked at for suggestions.
const completionRuns = 200

// completeFixed suggests words for a flag.
func completeFixed(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		cobra.CompErrorln(err.Error())
	}
}

func completeFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
}

func completeAnyFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// completeJobs suggests ids of jobs: those that are in Temporal, and those of the latest
// runs.
func (i *invocation) completeJobs(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return i.suggest(cmd, args, func(ctx context.Context, c *client.Client, found map[string]bool) error {
		resources, err := c.Apply.Resources(ctx, nil)
		if err != nil {
			return err
		}
		for id := range resources.Jobs {
			found[id] = true
		}
		runs, err := c.Runs.List(ctx, client.RunFilter{Limit: completionRuns})
		for _, run := range runs {
			found[run.JobID] = true
		}
		return err
	})
}

// completeQueues suggests queues.
func (i *invocation) completeQueues(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	clients, err := i.api(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list, err := listAll(ctx, clients.Queues.ListQueues, &jobsv1.ListQueuesRequest{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := list.GetUnreachable()
	for _, queue := range list.GetQueues() {
		names = append(names, queue.GetName())
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeServices suggests the ids of live worker processes.
func (i *invocation) completeServices(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return i.suggest(cmd, args, func(ctx context.Context, c *client.Client, found map[string]bool) error {
		services, err := c.Workers.Services(ctx, time.Time{})
		for n := range services.Live {
			found[services.Live[n].ID()] = true
		}
		return err
	})
}

// suggest finds words for the first argument, within the time limit.
func (i *invocation) suggest(cmd *cobra.Command, args []string, find func(context.Context, *client.Client, map[string]bool) error) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	c, err := i.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	found := map[string]bool{}
	if err := find(ctx, c, found); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Sorted(maps.Keys(found)), cobra.ShellCompDirectiveNoFileComp
}
