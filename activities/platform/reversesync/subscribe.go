package reversesync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/dendrascience/dendra-jobs/activities/platform/feed"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// SubscribeSpec is the spec of ReverseSyncSubscribeToChanges.
type SubscribeSpec struct {
	feed.Spec
	SkipActors []string `json:"skip_actors,omitempty" maxItems:"16" help:"accounts whose changes are not followed: those that bring Release 2 into Release 3"`
}

// Subscribe makes the job type ReverseSyncSubscribeToChanges. Nil clients are enough to
// describe it.
//
// A change only says which entity to look at: its document is compared with the entity as
// it is then. So changes that come late, twice or in another order do no harm, and
// neither does a full sync at the same time. What was written to Release 2 changes nothing
// in Release 3, and so does not come back.
func Subscribe(api *platform.Client, client *pipeline.Client, getenv func(string) string) job.Type {
	return job.NewType("ReverseSyncSubscribeToChanges", job.WorkerBackend,
		"Follows the platform's changes, and brings the documents of Release 2 in line with Release 3.",
		func(ctx context.Context, run job.Run, spec SubscribeSpec) (job.Result, error) {
			if err := platform.Need(api); err != nil {
				return job.Result{}, err
			}
			syncer, err := Open(ctx, getenv, client)
			if err != nil {
				return job.Result{}, err
			}
			f := &follower{run: run, syncer: syncer, skip: spec.SkipActors, counts: map[string]int64{}}
			// What refers to something that Release 2 did not have was refused.
			if err := syncer.RetryRefused(ctx, run.Stopping(), f.note); err != nil && !errors.Is(err, job.ErrStopped) {
				return job.Result{}, err
			}
			var kinds []platformv1.ResourceKind
			for _, kind := range Kinds() {
				kinds = append(kinds, kind.Resource)
			}
			result, err := feed.Subscriber{Kinds: kinds, Handle: f.handle, Quarantine: feed.Quarantine(client, run)}.Run(ctx, run, api, spec.Spec)
			f.mu.Lock()
			defer f.mu.Unlock()
			if result.Counts == nil {
				result.Counts = map[string]int64{}
			}
			maps.Copy(result.Counts, f.counts)
			if n := f.counts["created"] + f.counts["updated"]; n > 0 {
				result.Message += fmt.Sprintf(", %d documents written", n)
			}
			if n := f.counts["conflicts"]; n > 0 {
				result.Message += fmt.Sprintf(", %d looks at documents in conflict", n)
			}
			return result, err
		}, job.ModeContinuous)
}

// follower brings documents in line whose entities have changed.
type follower struct {
	run    job.Run
	syncer *Syncer
	skip   []string

	mu     sync.Mutex
	counts map[string]int64
}

func (f *follower) handle(ctx context.Context, change *platformv1.Change) error {
	if actor := change.GetActor(); actor != "" && slices.Contains(f.skip, actor) {
		f.count("skipped")
		return nil
	}
	kind, ok := KindOf(change.GetKind())
	if !ok {
		return nil
	}
	diff, err := f.syncer.SyncOne(ctx, kind, change.GetResourceId(), false)
	if err != nil {
		return err
	}
	f.note(diff)
	return nil
}

// note counts what was done, and tells of a conflict.
func (f *follower) note(d Difference) {
	switch d.Action {
	case ActionCreate:
		f.count("created")
	case ActionUpdate:
		f.count("updated")
	case ActionGone:
		f.count("gone")
	case ActionConflict:
		f.count("conflicts")
		tell(f.run, d)
	case ActionNone:
	}
}

func (f *follower) count(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[name]++
}
