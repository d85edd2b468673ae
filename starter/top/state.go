package top

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// merged is the overview after a message of WatchOverview. It leaves was as it is, and shares
// its entries.
func merged(was *jobsv1.Overview, message *jobsv1.WatchOverviewResponse) *jobsv1.Overview {
	now := proto.CloneOf(message.GetOverview())
	if !message.GetDelta() || was == nil {
		return now
	}
	now.Jobs = replaced(was.GetJobs(), now.GetJobs(), message.GetRemovedJobs(), (*jobsv1.JobOverview).GetId)
	now.Queues = replaced(was.GetQueues(), now.GetQueues(), message.GetRemovedQueues(), (*jobsv1.Queue).GetName)
	now.Loads = replaced(was.GetLoads(), now.GetLoads(), message.GetRemovedLoads(), readmodel.LoadName)
	now.Workers = replaced(was.GetWorkers(), now.GetWorkers(), message.GetRemovedWorkers(), readmodel.WorkerName)
	now.Integrations = replaced(was.GetIntegrations(), now.GetIntegrations(), message.GetRemovedIntegrations(), (*jobsv1.IntegrationOverview).GetName)
	return now
}

// replaced is a list in the order of its keys, with entries that changed and without those
// that are no more.
func replaced[E any](was, changed []E, removed []string, key func(E) string) []E {
	byKey := make(map[string]E, len(was)+len(changed))
	for _, entry := range slices.Concat(was, changed) {
		byKey[key(entry)] = entry
	}
	for _, name := range removed {
		delete(byKey, name)
	}
	list := make([]E, 0, len(byKey))
	for _, entry := range byKey {
		list = append(list, entry)
	}
	slices.SortFunc(list, func(a, b E) int { return cmp.Compare(key(a), key(b)) })
	return list
}
