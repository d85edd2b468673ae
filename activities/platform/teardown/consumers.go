package teardown

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/activities/imports"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// consumers removes what NATS holds of the organization: the consumers of its jobs, its
// raw and prepared messages, what is in quarantine, and the bookmarks of its jobs. What
// reverse sync knows of its documents stays, as these do.
func (t *teardown) consumers(ctx context.Context) error {
	if err := t.checkSlug(ctx); err != nil {
		return err
	}
	states, err := t.Pipeline.ConsumerStates(ctx, pipeline.StreamRaw)
	if err != nil && !errors.Is(err, pipeline.ErrNoStream) {
		return err
	}
	own := slices.DeleteFunc(slices.Clone(states), func(s pipeline.ConsumerState) bool {
		_, organization, _, ok := pipeline.ParseRawSubject(s.Subject)
		return !ok || organization != t.organization.GetSlug() || s.Metadata[pipeline.MetadataJob] == ""
	})
	live, err := t.foreignJobs(ctx)
	if err != nil {
		return err
	}
	for _, s := range own {
		if f, found := live[s.Metadata[pipeline.MetadataJob]]; found {
			t.stage.Block("job %s of provider %s prepares messages of the organization: remove it first", f.ID, f.Provider)
		}
	}
	subjects, err := t.rawSubjects(ctx, states)
	if err != nil {
		return err
	}
	if err := t.unblocked(); err != nil {
		return err
	}
	for _, s := range own {
		err := t.remove(ctx, "consumers", s.Name, 1, func(ctx context.Context) error {
			return t.Pipeline.RemoveConsumer(ctx, pipeline.StreamRaw, s.Name)
		})
		if err != nil {
			return err
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		err := t.remove(ctx, "raw_messages", subject, int64(subjects[subject]), func(ctx context.Context) error {
			return t.Pipeline.PurgeSubject(ctx, pipeline.StreamRaw, subject)
		})
		if err != nil {
			return err
		}
	}
	for _, part := range []func(context.Context) error{t.prepared, t.quarantine} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return t.bookmarks(ctx, live)
}

// foreignJobs are the live jobs that no config has, by id.
func (t *teardown) foreignJobs(ctx context.Context) (map[string]job.Summary, error) {
	found, err := t.Jobs().Find(ctx, job.Filter{})
	foreign := map[string]job.Summary{}
	for _, f := range found {
		if !f.Provider.IsUnder(job.ProviderIntegration) {
			foreign[f.ID] = f
		}
	}
	return foreign, err
}

// rawSubjects counts the raw messages of the organization by subject. They stay until the
// archive has them: it would miss them, or write them after the stage archive is done.
func (t *teardown) rawSubjects(ctx context.Context, consumers []pipeline.ConsumerState) (map[string]uint64, error) {
	subjects, err := t.Pipeline.RawMessages(ctx, t.organization.GetSlug())
	if errors.Is(err, pipeline.ErrNoStream) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	newest := uint64(0)
	for subject := range subjects {
		if _, organization, _, ok := pipeline.ParseRawSubject(subject); !ok || organization != t.organization.GetSlug() {
			delete(subjects, subject)
			continue
		}
		last, err := t.Pipeline.LastOn(ctx, pipeline.StreamRaw, subject)
		if err != nil {
			return nil, err
		}
		newest = max(newest, last)
	}
	for _, c := range consumers {
		if archive.IsConsumer(c) && c.AckFloor < newest {
			t.stage.Block("consumer %s has not archived all raw messages of the organization yet: its job has to go on, or the consumer has to be removed", c.Name)
		}
	}
	return subjects, nil
}

// prepared removes prepared messages of the organization. They are on the subjects of
// locations, beside those of others.
func (t *teardown) prepared(ctx context.Context) error {
	return t.messages(ctx, "prepared_messages", pipeline.StreamPrepared, pipeline.PreparedSubjects)
}

// quarantine removes items of the organization.
func (t *teardown) quarantine(ctx context.Context) error {
	if err := t.messages(ctx, "quarantine_items", pipeline.StreamQuarantine, pipeline.LoadItemSubjects); err != nil {
		return err
	}
	for _, filter := range []pipeline.ItemFilter{
		{Stage: pipeline.StageExtract, Organization: t.organization.GetSlug()},
		{Stage: pipeline.StagePrepare, Organization: t.organization.GetSlug()},
		{Stage: pipeline.StageChange, Organization: t.organization.GetId()},
	} {
		var items []pipeline.Item
		err := t.Pipeline.Items(ctx, filter, func(item pipeline.Item) error {
			items = append(items, item)
			return nil
		})
		if err != nil {
			return err
		}
		for _, item := range items {
			err := t.remove(ctx, "quarantine_items", itemName(item.ID, item.Name), 1, func(ctx context.Context) error {
				return t.Pipeline.RemoveMessage(ctx, pipeline.StreamQuarantine, item.ID)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func itemName(id uint64, name string) string { return fmt.Sprintf("%d of %s", id, name) }

// messages removes the messages whose context names the organization.
func (t *teardown) messages(ctx context.Context, kind, stream, subjects string) error {
	type found struct {
		sequence uint64
		subject  string
	}
	var own []found
	err := t.Pipeline.Each(ctx, stream, subjects, func(m pipeline.Stored) error {
		if pipeline.OrganizationOf(m.Body) == t.organization.GetSlug() {
			own = append(own, found{m.Sequence, m.Subject})
		}
		if job.Stopped(t.Run) {
			return job.ErrStopped
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range own {
		err := t.remove(ctx, kind, itemName(m.sequence, m.subject), 1, func(ctx context.Context) error {
			return t.Pipeline.RemoveMessage(ctx, stream, m.sequence)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bookmarks removes those of jobs of the organization's configs, and of its imports.
func (t *teardown) bookmarks(ctx context.Context, live map[string]job.Summary) error {
	configs, err := t.ownConfigs(ctx)
	if err != nil {
		return err
	}
	keys, err := t.Pipeline.BookmarkKeys(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		jobID, _, _ := strings.Cut(key, "/")
		_, config, _ := strings.Cut(jobID, ".")
		own := slices.Contains(configs, config) || jobID == imports.BookmarkJob(t.organization.GetSlug())
		if _, foreign := live[jobID]; foreign || !own {
			continue
		}
		err := t.remove(ctx, "bookmarks", key, 1, func(ctx context.Context) error { return t.Pipeline.RemoveBookmark(ctx, key) })
		if err != nil {
			return err
		}
	}
	return nil
}
