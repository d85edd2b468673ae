package archive

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// replayChunk is how many messages are published before the position is saved.
const replayChunk = 500

// maxKnown bounds the sources that an error lists.
const maxKnown = 20

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
	archive  Archive
	subject  string // that messages are published to
	archived string // that they were published to first
	series   *pipeline.Series
	at       replayCursor
}

func (h *replay) handle(ctx context.Context, run job.Run, spec ReplaySpec) (job.Result, error) {
	r := &replaying{
		run: run, spec: spec, pipeline: h.pipeline,
		archive:  Archive{Store: h.store, Bucket: spec.Bucket, Prefix: spec.Prefix},
		subject:  pipeline.RawSubject(spec.OperationMode, spec.Organization, spec.Source),
		archived: pipeline.RawSubject(spec.ArchivedMode, spec.Organization, spec.Source),
		series:   h.pipeline.Series(),
	}
	found, err := run.Cursor(&r.at)
	if err != nil {
		return job.Result{}, err
	}
	if !found {
		r.at = replayCursor{At: time.Now().UTC().Truncate(time.Second), Counts: map[string]int64{"messages": 0, "objects": 0}}
	}
	all, nothing := r.all, r.nothing
	if spec.Documents != "" {
		all, nothing = r.allDocuments, r.noDocuments
		r.archived = spec.Documents
	}
	err = all(ctx)
	message := fmt.Sprintf("%d messages of %s from %d objects published again to %s",
		r.at.Counts["messages"], r.archived, r.at.Counts["objects"], r.subject)
	switch {
	case err != nil:
	case r.at.Counts["objects"] == 0:
		message, err = nothing(ctx)
	case !r.pipeline.Consumed(ctx, pipeline.StreamRaw, r.subject):
		message += "; nobody takes them: no prepare job of this flow, organization and source has run yet"
	}
	if n := r.at.Counts["too_large"]; n > 0 {
		message += fmt.Sprintf("; %d are too large for the server and stay in the archive alone", n)
	}
	return job.Result{Message: message, Counts: r.at.Counts}, err
}

func (r *replaying) all(ctx context.Context) error {
	filter := Filter{Organization: r.spec.Organization, Source: r.spec.Source, From: r.spec.From, To: r.spec.To}
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

// nothing says why there was nothing to publish: a time without messages is a
// result, a name that the archive does not know an error.
func (r *replaying) nothing(ctx context.Context) (string, error) {
	for found, err := range r.archive.Find(ctx, Filter{Organization: r.spec.Organization, Source: r.spec.Source}, "") {
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("nothing published: the archive has no messages of %s from that time; the oldest came at %s or later",
			r.archived, found.Hour.Format(time.RFC3339)), nil
	}
	known, err := r.known(ctx)
	if err != nil {
		return "", err
	}
	return "", job.Fail(errclass.NotArchived, "the archive %s/%s has no messages of source %s of organization %s; it has %s",
		r.spec.Bucket, r.spec.Prefix, r.spec.Source, r.spec.Organization, known)
}

// known lists the organizations and sources of the archive.
func (r *replaying) known(ctx context.Context) (string, error) {
	var organizations []string
	sources := map[string][]string{}
	after := ""
	for n := 0; ; n++ {
		data, found, err := r.next(ctx, after)
		if err != nil {
			return "", err
		}
		if !found {
			break
		}
		if n == maxKnown {
			organizations = append(organizations, "and more")
			break
		}
		if sources[data.Organization] == nil {
			organizations = append(organizations, data.Organization)
		}
		sources[data.Organization] = append(sources[data.Organization], data.Source)
		// The first text behind all keys with this prefix.
		after = strings.TrimSuffix(DataPrefix(data.Organization, data.Source), "/") + "0"
	}
	if len(organizations) == 0 {
		return "none at all", nil
	}
	for i, name := range organizations {
		if known := sources[name]; known != nil {
			organizations[i] = fmt.Sprintf("%s (%s)", name, strings.Join(known, ", "))
		}
	}
	return strings.Join(organizations, ", "), nil
}

// next is the first object with messages behind a key, found without reading what
// lies between the prefixes of two sources.
func (r *replaying) next(ctx context.Context, after string) (data Data, found bool, err error) {
	for object, err := range r.archive.Find(ctx, Filter{}, after) {
		return object.Data, err == nil, err
	}
	return data, false, nil
}

// object publishes the messages of an object with numbers after a given one.
func (r *replaying) object(ctx context.Context, filter Filter, key string, after uint64) error {
	content, err := r.archive.Read(ctx, key)
	if err != nil {
		return err
	}
	data, _ := ParseDataKey(key)
	var chunk []pipeline.Outgoing
	last := after
	publish := func() error {
		if err := r.publish(ctx, chunk); err != nil {
			return err
		}
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
		last = m.Sequence // also of one that is left out, which is counted once
		body, header := pipeline.MarkReplay(m.Body, r.at.At)
		message := pipeline.Outgoing{
			Subject: r.subject, Body: body, Header: header,
			// Of this run: a repeat of an attempt is dropped, a second replay is not, nor
			// is the message taken for the one that was archived.
			ID: pipeline.ID("replay", r.run.ID(), string(data.Incarnation), strconv.FormatUint(m.Sequence, 10)),
		}
		if err := r.pipeline.CheckSize(message); err != nil {
			// The mark has made it so; it is no reason to leave out the others.
			r.run.Logger().Warn("a message is not published again", "object", key, "sequence", m.Sequence, "error", err)
			r.at.Counts["too_large"]++
			continue
		}
		chunk = append(chunk, message)
		if len(chunk) == replayChunk {
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

// publish publishes messages when the consumers are not too far behind.
func (r *replaying) publish(ctx context.Context, messages []pipeline.Outgoing) error {
	if err := r.series.Wait(ctx, r.run, r.at.Counts["messages"]); err != nil {
		return err
	}
	published, err := r.series.Publish(ctx, messages)
	if err != nil {
		return err
	}
	r.at.Counts["messages"] += int64(len(messages))
	r.at.Counts["duplicates"] += published.Duplicates
	return nil
}

func (r *replaying) checkpoint(data Data) {
	r.run.Checkpoint(job.Progress{
		Done:    r.at.Counts["messages"],
		Message: fmt.Sprintf("messages published again, up to %s of %s", data.Hour.Format("2006-01-02 15:04"), r.spec.To.UTC().Format("2006-01-02 15:04")),
	}, r.at)
}
