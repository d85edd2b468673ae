package archive

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/archive"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// replayChunk is how many messages are published before the position is saved.
const replayChunk = 500

type replay struct {
	pipeline *pipeline.Client
	store    *objects.Store
}

// ReplayArchive makes the job type of that name. Nil clients are enough to
// describe it.
//
// It publishes archived raw messages of a source again, in the order in which
// they came, marked as replays, so that they are prepared and loaded anew and not
// archived a second time.
func ReplayArchive(client *pipeline.Client, store *objects.Store) job.Type {
	h := &replay{pipeline: client, store: store}
	return job.NewType("ReplayArchive", job.WorkerLoad,
		"Publishes raw messages from the archive again, to be prepared and loaded once more.",
		h.handle, job.ModeOneShot, job.ModeQueued)
}

// replayCursor is how far a replay is.
type replayCursor struct {
	// Key is the object that is read, and Sequence the last number of it that is
	// published, 0 for all of it.
	Key      string           `json:"key"`
	Sequence uint64           `json:"sequence,omitempty"`
	At       time.Time        `json:"at"` // written into the messages, the same in each attempt
	Counts   map[string]int64 `json:"counts"`
}

// replaying is one attempt.
type replaying struct {
	run      job.Run
	spec     ReplaySpec
	pipeline *pipeline.Client
	archive  archive.Archive
	subject  string // that messages are published to
	archived string // that they were published to first
	at       replayCursor
}

func (h *replay) handle(ctx context.Context, run job.Run, spec ReplaySpec) (job.Result, error) {
	spec = spec.withDefaults()
	r := &replaying{
		run: run, spec: spec, pipeline: h.pipeline,
		archive:  archive.Archive{Store: h.store, Bucket: spec.Bucket, Prefix: spec.Prefix},
		subject:  pipeline.RawSubject(spec.OperationMode, spec.Organization, spec.Source),
		archived: pipeline.RawSubject(spec.ArchivedMode, spec.Organization, spec.Source),
	}
	found, err := run.Cursor(&r.at)
	if err != nil {
		return job.Result{}, err
	}
	if !found {
		r.at = replayCursor{At: time.Now().UTC().Truncate(time.Second), Counts: map[string]int64{"messages": 0, "objects": 0}}
	}
	err = r.all(ctx)
	message := fmt.Sprintf("%d messages of %s from %d objects published again to %s",
		r.at.Counts["messages"], r.archived, r.at.Counts["objects"], r.subject)
	if err == nil && r.at.Counts["objects"] == 0 {
		message = fmt.Sprintf("nothing published: the archive has no messages of %s from that time", r.archived)
	}
	return job.Result{Message: message, Counts: r.at.Counts}, err
}

func (r *replaying) all(ctx context.Context) error {
	filter := archive.Filter{Organization: r.spec.Organization, Source: r.spec.Source, From: r.spec.From, To: r.spec.To}
	// What is half done is read again from where it was left.
	if r.at.Key != "" && r.at.Sequence > 0 {
		if err := r.object(ctx, filter, r.at.Key, r.at.Sequence); err != nil {
			return err
		}
	}
	for found, err := range r.archive.Find(ctx, filter, r.at.Key) {
		if err != nil {
			return err
		}
		if err := r.object(ctx, filter, found.Key, 0); err != nil {
			return err
		}
	}
	return nil
}

// object publishes the messages of an object with numbers after a given one.
func (r *replaying) object(ctx context.Context, filter archive.Filter, key string, after uint64) error {
	content, err := r.archive.Read(ctx, key)
	if err != nil {
		return err
	}
	data, _ := archive.ParseDataKey(key)
	var chunk []pipeline.Outgoing
	last := after
	publish := func() error {
		published, err := r.pipeline.Publish(ctx, chunk)
		if err != nil {
			return err
		}
		r.at.Counts["messages"] += int64(len(chunk))
		r.at.Counts["duplicates"] += published.Duplicates
		r.at.Key, r.at.Sequence = key, last
		chunk = chunk[:0]
		r.checkpoint(data)
		if job.Stopped(r.run) {
			return job.ErrStopped
		}
		return nil
	}
	for m, err := range r.archive.Messages(key, content) {
		if err != nil {
			return err
		}
		if m.Sequence <= after || m.Subject != r.archived || !filter.Takes(m.Time) {
			continue
		}
		body, header := pipeline.MarkReplay(m.Body, r.at.At)
		chunk = append(chunk, pipeline.Outgoing{
			Subject: r.subject, Body: body, Header: header,
			// Of this run: a repeat of an attempt is dropped, a second replay is not, nor
			// is the message taken for the one that was archived.
			ID: pipeline.ID("replay", r.run.ID(), string(data.Life), strconv.FormatUint(m.Sequence, 10)),
		})
		if last = m.Sequence; len(chunk) == replayChunk {
			if err := publish(); err != nil {
				return err
			}
		}
	}
	if len(chunk) > 0 {
		if err := publish(); err != nil {
			return err
		}
	}
	r.at.Key, r.at.Sequence = key, 0
	r.at.Counts["objects"]++
	r.checkpoint(data)
	if job.Stopped(r.run) {
		return job.ErrStopped
	}
	return nil
}

func (r *replaying) checkpoint(data archive.Data) {
	r.run.Checkpoint(job.Progress{
		Done:    r.at.Counts["messages"],
		Message: fmt.Sprintf("messages published again, up to %s of %s", data.Hour.Format("2006-01-02 15:04"), r.spec.To.UTC().Format("2006-01-02 15:04")),
	}, r.at)
}
