package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

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

// completeJobs suggests ids of jobs: those that are listed, and those of the latest runs.
func (i *invocation) completeJobs(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return i.suggest(cmd, args, func(ctx context.Context, found map[string]bool) error {
		listed, err := listAll(ctx, i.api.Jobs.ListJobs, &jobsv1.ListJobsRequest{})
		if err != nil {
			return err
		}
		for _, j := range listed.GetJobs() {
			found[j.GetId()] = true
		}
		runs, err := i.api.Runs.ListRuns(ctx, &jobsv1.ListRunsRequest{PageSize: completionRuns})
		for _, run := range runs.GetRuns() {
			found[run.GetJobId()] = true
		}
		return err
	})
}

// completeQueues suggests queues.
func (i *invocation) completeQueues(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return i.suggest(cmd, args, func(ctx context.Context, found map[string]bool) error {
		listed, err := listAll(ctx, i.api.Queues.ListQueues, &jobsv1.ListQueuesRequest{})
		for _, name := range listed.GetUnreachable() {
			found[name] = true
		}
		for _, queue := range listed.GetQueues() {
			found[queue.GetName()] = true
		}
		return err
	})
}

// completeServices suggests the ids of live worker processes.
func (i *invocation) completeServices(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return i.suggest(cmd, args, func(ctx context.Context, found map[string]bool) error {
		listed, err := i.api.Workers.ListWorkers(ctx, &jobsv1.ListWorkersRequest{})
		live, _ := byLife(listed.GetWorkers())
		for _, s := range live {
			found[serviceID(s)] = true
		}
		return err
	})
}

// completeIntegrations suggests ids of configs.
func (i *invocation) completeIntegrations(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return i.suggest(cmd, args, func(ctx context.Context, found map[string]bool) error {
		listed, err := i.api.Integrations.ListIntegrations(ctx, &jobsv1.ListIntegrationsRequest{})
		for _, c := range listed.GetIntegrations() {
			found[c.GetId()] = true
		}
		return err
	})
}

// suggest finds words for the first argument, within the time limit.
func (i *invocation) suggest(cmd *cobra.Command, args []string, find func(context.Context, map[string]bool) error) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	found := map[string]bool{}
	if i.connect() != nil || find(ctx, found) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Sorted(maps.Keys(found)), cobra.ShellCompDirectiveNoFileComp
}
