package reversesync

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/job"
)

const (
	// writers is how many documents are written at once.
	writers = 8
	// tries is how often a document is read anew that others write at the same time.
	tries = 5
)

// ClassBusy is the class of the error about a document that others write all the time.
const ClassBusy = "Release2Busy"

// Syncer brings documents in line. It is safe for concurrent use, also by several
// processes.
type Syncer struct {
	source   Source
	release2 *release2.Client
	records  *records
}

// New makes a syncer. It opens the bucket of the records.
func New(ctx context.Context, source Source, documents *release2.Client, client *pipeline.Client) (*Syncer, error) {
	records, err := openRecords(ctx, client)
	return &Syncer{source: source, release2: documents, records: records}, err
}

// SyncOne brings the document of one entity in line, and says what was done. Overwrite
// takes no heed of edits in Release 2.
//
// It reads the document before the entity. A document that is still of that version when
// it is written has then seen nothing newer than the entity.
func (s *Syncer) SyncOne(ctx context.Context, k Kind, id string, overwrite bool) (Difference, error) {
	for range tries {
		d, err := s.release2.Get(ctx, k.Service, id)
		if err != nil && !errors.Is(err, release2.ErrNotFound) {
			return Difference{}, err
		}
		record, err := s.records.get(ctx, k.Name, id)
		if err != nil {
			return Difference{}, err
		}
		entity, err := k.read(ctx, s.source, id)
		if errors.Is(err, errGone) {
			return s.gone(ctx, k, id, record)
		}
		if err != nil {
			return Difference{}, err
		}
		diff, err := k.compare(entity, d, record, overwrite)
		if err != nil {
			return diff, err
		}
		done, err := s.write(ctx, k, &diff, d, record)
		if err != nil {
			return diff, err
		}
		if done {
			return diff, s.keep(ctx, diff, record)
		}
	}
	return Difference{}, job.Retryable(ClassBusy, 0, "%s %s was changed in Release 2 by others %d times meanwhile", k.Name, id, tries)
}

// gone leaves the document of an entity that Release 3 has no more.
func (s *Syncer) gone(ctx context.Context, k Kind, id string, record Record) (Difference, error) {
	diff := Difference{Kind: k.Name, ID: id, Action: ActionGone, record: record}
	diff.record.Conflict = nil
	return diff, s.keep(ctx, diff, record)
}

// keep writes the record if it is not as it was.
func (s *Syncer) keep(ctx context.Context, diff Difference, before Record) error {
	if bytes.Equal(job.EncodeJSON(diff.record), job.EncodeJSON(before)) {
		return nil
	}
	return s.records.put(ctx, diff.Kind, diff.ID, diff.record)
}

// write writes the document, if that is what is to be done. It reports false if the
// document was changed meanwhile.
func (s *Syncer) write(ctx context.Context, k Kind, diff *Difference, d release2.Document, record Record) (done bool, err error) {
	var written release2.Document
	switch diff.Action {
	case ActionCreate:
		var patch release2.Patch
		if patch, err = diff.want.patch(nil, slices.Collect(maps.Keys(diff.want))); err == nil {
			patch.Set["_id"] = diff.ID
			written, err = s.release2.Create(ctx, k.Service, patch.Set)
		}
	case ActionUpdate:
		var patch release2.Patch
		if patch, err = diff.want.patch(d, diff.paths()); err == nil {
			written, err = s.release2.Patch(ctx, k.Service, diff.ID, d.VersionID(), patch)
		}
	default:
		return true, nil
	}
	failure, _ := errors.AsType[*job.Failure](err)
	switch {
	case err == nil:
		diff.record = Record{Account: written.UpdatedBy(), Fields: diff.want.hashes()}
		return true, nil
	case errors.Is(err, release2.ErrNotFound), errors.Is(err, release2.ErrExists):
		return false, nil
	case failure != nil && failure.Class == release2.ClassRefused:
		*diff = diff.withConflict(Conflict{Reason: ReasonRefused, Message: err.Error(), VersionID: d.VersionID()}, record.Conflict)
		return true, nil
	}
	return false, err
}

// compare finds what has to be done about an entity.
func (k Kind) compare(entity Entity, d release2.Document, record Record, overwrite bool) (Difference, error) {
	want, err := k.Project(entity)
	if err != nil {
		return Difference{}, err
	}
	diff, err := compare(want, d, record, overwrite)
	diff.Kind, diff.ID = k.Name, entity.GetId()
	diff.Name = want.name()
	if err != nil {
		err = fmt.Errorf("%s %s: %w", k.Name, entity.GetId(), err)
	}
	return diff, err
}

// Report is what a run of one kind did, or would do.
type Report struct {
	Kind      string `json:"kind"`
	Entities  int    `json:"entities"`
	Created   int    `json:"created"`
	Updated   int    `json:"updated"`
	Conflicts int    `json:"conflicts"`
	Gone      int    `json:"gone"`
}

func (r *Report) count(action Action) {
	switch action {
	case ActionCreate:
		r.Created++
	case ActionUpdate:
		r.Updated++
	case ActionConflict:
		r.Conflicts++
	case ActionGone:
		r.Gone++
	case ActionNone:
	}
}

// String is one line: "entities: 10000, created: 2, updated: 1, in conflict: 1, in line: 9996".
func (r Report) String() string {
	text := fmt.Sprintf("entities: %d, created: %d, updated: %d, in conflict: %d, in line: %d",
		r.Entities, r.Created, r.Updated, r.Conflicts, r.Entities-r.Created-r.Updated-r.Conflicts)
	if r.Gone > 0 {
		text += fmt.Sprintf("; documents of entities that are gone: %d", r.Gone)
	}
	return text
}

// Run is a full sync of one kind.
type Run struct {
	// DryRun writes nothing.
	DryRun bool
	// Stopping ends the run with [job.ErrStopped] when it is closed.
	Stopping <-chan struct{}
	// Take gets what is not in line, one at a time. May be nil.
	Take func(Difference)
	// Progress gets the report after each thousand entities. May be nil.
	Progress func(Report)
}

// Sync compares all documents of a kind with their entities, page by page, and brings
// those in line that are not.
func (s *Syncer) Sync(ctx context.Context, k Kind, run Run) (Report, error) {
	var mu sync.Mutex
	report := Report{Kind: k.Name}
	take := func(diff Difference) {
		mu.Lock()
		defer mu.Unlock()
		report.count(diff.Action)
		if run.Take != nil && diff.Action != ActionNone {
			run.Take(diff)
		}
	}
	working, workCtx := errgroup.WithContext(ctx)
	working.SetLimit(writers)
	err := s.compareAll(workCtx, k, func(diff Difference, record Record) error {
		select {
		case <-run.Stopping:
			return job.ErrStopped
		default:
		}
		mu.Lock()
		report.Entities++
		if run.Progress != nil && report.Entities%pageSize == 0 {
			run.Progress(report)
		}
		mu.Unlock()
		switch {
		case run.DryRun:
			take(diff)
		case diff.Action == ActionNone:
			working.Go(func() error { return s.keep(workCtx, diff, record) })
		default:
			working.Go(func() error {
				done, err := s.SyncOne(workCtx, k, diff.ID, false)
				if err == nil {
					take(done)
				}
				return err
			})
		}
		return workCtx.Err()
	}, func(id string, record Record) error {
		take(Difference{Kind: k.Name, ID: id, Action: ActionGone})
		if run.DryRun || record.Conflict == nil {
			return nil
		}
		_, err := s.gone(workCtx, k, id, record)
		return err
	})
	// What a writer failed with is why the rest was canceled.
	if failed := working.Wait(); failed != nil {
		err = failed
	}
	return report, err
}

// compareAll compares the entities of a kind with the documents, both in the order of
// their ids. It calls gone for those that have a record and are not in Release 3.
func (s *Syncer) compareAll(ctx context.Context, k Kind, take func(Difference, Record) error, gone func(id string, record Record) error) error {
	// Encoded, they take less memory.
	known := map[string][]byte{}
	err := s.records.each(ctx, k.Name+".>", func(_, id string, value []byte) error {
		known[id] = value
		return nil
	})
	if err != nil {
		return err
	}
	documents, stop := iter.Pull2(s.release2.List(ctx, k.Service))
	defer stop()
	d, err, more := documents()
	if err != nil {
		return err
	}
	for entity, failed := range k.list(ctx, s.source) {
		if failed != nil {
			return failed
		}
		id := entity.GetId()
		for more && err == nil && d.ID() < id {
			d, err, more = documents()
		}
		if err != nil {
			return err
		}
		var record Record
		if value, ok := known[id]; ok {
			if record, err = s.records.decode(key(k.Name, id), value); err != nil {
				return err
			}
			delete(known, id)
		}
		found := d
		if !more || d.ID() != id {
			found = nil
		}
		diff, err := k.compare(entity, found, record, false)
		if err != nil {
			return err
		}
		if err := take(diff, record); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		record, err := s.records.decode(key(k.Name, id), known[id])
		if err == nil {
			err = gone(id, record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Known is an entity with a conflict.
type Known struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Conflict
}

// Conflicts lists the conflicts that were found and are not resolved, by kind and id.
func (s *Syncer) Conflicts(ctx context.Context) ([]Known, error) {
	list := []Known{}
	err := s.records.each(ctx, ">", func(kind, id string, value []byte) error {
		record, err := s.records.decode(key(kind, id), value)
		if err == nil && record.Conflict != nil {
			list = append(list, Known{kind, id, *record.Conflict})
		}
		return err
	})
	slices.SortFunc(list, func(a, b Known) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.ID, b.ID))
	})
	return list, err
}

// RetryRefused looks again at all entities whose documents Release 2 has refused, in the
// order of the kinds: what they refer to may be there now. Take gets what was done, one
// at a time. It ends with [job.ErrStopped] when stopping is closed.
func (s *Syncer) RetryRefused(ctx context.Context, stopping <-chan struct{}, take func(Difference)) error {
	conflicts, err := s.Conflicts(ctx)
	if err != nil {
		return err
	}
	for _, k := range Kinds() {
		var mu sync.Mutex
		working, workCtx := errgroup.WithContext(ctx)
		working.SetLimit(writers)
		for _, known := range conflicts {
			if known.Kind != k.Name || known.Reason != ReasonRefused {
				continue
			}
			working.Go(func() error {
				select {
				case <-stopping:
					return job.ErrStopped
				default:
				}
				diff, err := s.SyncOne(workCtx, k, known.ID, false)
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					take(diff)
				}
				return err
			})
		}
		if err := working.Wait(); err != nil {
			return err
		}
	}
	return nil
}
