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

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const (
	// writers is how many documents are written at once.
	writers = 8
	// tries is how often an entity is compared anew that others write at the same time.
	tries = 5
)

// Syncer brings documents in line. It is safe for concurrent use, also by several
// processes.
type Syncer struct {
	source   *platform.Client
	release2 *release2.Client
	records  *records
	checked  sync.Map // services that are known to be there
}

// New makes a syncer. It opens the bucket of the records.
func New(ctx context.Context, source *platform.Client, documents *release2.Client, client *pipeline.Client) (*Syncer, error) {
	records, err := openRecords(ctx, client)
	return &Syncer{source: source, release2: documents, records: records}, err
}

// check finds out once whether Release 2 has a service: with a wrong URL all documents
// would seem to be deleted.
func (s *Syncer) check(ctx context.Context, service string) error {
	if _, known := s.checked.Load(service); known {
		return nil
	}
	err := s.release2.Check(ctx, service)
	if err == nil {
		s.checked.Store(service, true)
	}
	return err
}

// errMissed means that a document is not as it was read.
var errMissed = errors.New("the document was changed meanwhile")

// SyncOne brings the document of one entity in line, and says what was done. Overwrite
// takes no heed of edits in Release 2.
//
// It is safe to be called again after any error, and by several syncers at once.
func (s *Syncer) SyncOne(ctx context.Context, k Kind, id string, overwrite bool) (Difference, error) {
	if err := s.check(ctx, k.Service); err != nil {
		return Difference{}, err
	}
	var wrote *Difference
	missed := map[string]int{} // how often a version could not be written
	for range tries {
		diff, err := s.syncOnce(ctx, k, id, overwrite)
		switch {
		case errors.Is(err, errMissed):
			missed[diff.version]++
		case errors.Is(err, errStale):
			if diff.wrote {
				wrote = &diff
			}
		case err == nil && diff.Action == ActionNone && wrote != nil:
			return *wrote, nil
		default:
			return diff, err
		}
	}
	for version, times := range missed {
		if times == tries {
			return Difference{}, job.Fail(errclass.Release2Refused, "%s %s: Release 2 shows version %q and does not find it to write it", k.Name, id, version)
		}
	}
	return Difference{}, job.Fail(errclass.Release2Contended, "%s %s was changed by others %d times while it was compared", k.Name, id, tries)
}

// syncOnce is one try of SyncOne. The error is errMissed or errStale if there has to be
// another one.
//
// It reads the record, then the document, then the entity. A record that is as it was
// read when it is written says that no other syncer has written the document since: they
// write the record first. A document that is as it was read has seen nothing newer than
// the entity.
func (s *Syncer) syncOnce(ctx context.Context, k Kind, id string, overwrite bool) (Difference, error) {
	before, err := s.records.get(ctx, k.Name, id)
	if err != nil {
		return Difference{}, err
	}
	d, err := s.release2.Get(ctx, k.Service, id)
	if err != nil && !errors.Is(err, release2.ErrNotFound) {
		return Difference{}, err
	}
	entity, err := k.read(ctx, s.source, id)
	if errors.Is(err, errGone) {
		diff := gone(k, id, before.Record)
		return diff, s.keep(ctx, diff, before)
	}
	if err != nil {
		return Difference{}, err
	}
	diff, err := k.compare(entity, d, before.Record, overwrite)
	if err != nil {
		return diff, err
	}
	twin, err := k.twin(ctx, s.source, entity, diff.want)
	if err != nil {
		return diff, err
	}
	diff = diff.withTwin(twin, before.Conflict)
	if diff.Action == ActionCreate || diff.Action == ActionUpdate {
		err = s.write(ctx, k, &diff, d, before)
		return diff, err
	}
	return diff, s.keep(ctx, diff, before)
}

// gone leaves the document of an entity that Release 3 has no more.
func gone(k Kind, id string, record Record) Difference {
	diff := Difference{Kind: k.Name, ID: id, Action: ActionGone, record: record}
	diff.record.Conflict = nil
	return diff
}

// keep writes the record if it is not as it was.
func (s *Syncer) keep(ctx context.Context, diff Difference, before revised) error {
	if bytes.Equal(job.EncodeJSON(diff.record), job.EncodeJSON(before.Record)) {
		return nil
	}
	_, err := s.records.put(ctx, diff.Kind, diff.ID, diff.record, before.revision)
	return err
}

// write creates or patches the document. The record says so before, and tells the
// outcome afterwards.
func (s *Syncer) write(ctx context.Context, k Kind, diff *Difference, d release2.Document, before revised) error {
	paths := diff.paths()
	if diff.Action == ActionCreate {
		paths = slices.Collect(maps.Keys(diff.want))
	}
	patch, err := diff.want.patch(d, paths)
	if err != nil {
		return err
	}
	diff.version = d.VersionID()
	pending := diff.record
	pending.Conflict = before.Conflict
	pending.Pending = &Pending{VersionID: diff.version, Fields: diff.want.hashes()}
	revision, err := s.records.put(ctx, diff.Kind, diff.ID, pending, before.revision)
	if err != nil {
		return err
	}
	written, err := s.send(ctx, k, *diff, patch)
	switch {
	case err == nil:
		diff.wrote = true
		diff.record = Record{Account: written.UpdatedBy(), Fields: diff.want.hashes()}
	case errors.Is(err, release2.ErrNotFound), errors.Is(err, release2.ErrExists):
		_, err := s.records.put(ctx, diff.Kind, diff.ID, before.Record, revision) // nothing was written
		return cmp.Or(err, errMissed)
	case job.ClassOf(err) == errclass.Release2Refused:
		*diff = diff.withConflict(Conflict{Reason: ReasonRefused, Message: err.Error(), VersionID: diff.version}, before.Conflict)
	default:
		return err
	}
	_, err = s.records.put(ctx, diff.Kind, diff.ID, diff.record, revision)
	return err
}

// send sends what is to be written.
func (s *Syncer) send(ctx context.Context, k Kind, diff Difference, patch release2.Patch) (release2.Document, error) {
	switch {
	case diff.Action == ActionCreate:
		patch.Set["_id"] = diff.ID
		return s.release2.Create(ctx, k.Service, patch.Set)
	case diff.version == "":
		return nil, job.Fail(errclass.Release2Refused, "the document has no version_id that guards it against edits: save it once in Release 2")
	}
	return s.release2.Patch(ctx, k.Service, diff.ID, diff.version, patch)
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
	Failed    int    `json:"failed"`
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
		r.Entities, r.Created, r.Updated, r.Conflicts, r.Entities-r.Created-r.Updated-r.Conflicts-r.Failed)
	if r.Failed > 0 {
		text += fmt.Sprintf(", failed: %d", r.Failed)
	}
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
//
// It goes on past an entity that fails; its error tells of these in the end. It ends at
// once if what it fails with concerns all entities.
func (s *Syncer) Sync(ctx context.Context, k Kind, run Run) (Report, error) {
	var mu sync.Mutex
	report := Report{Kind: k.Name}
	var failed failures
	take := func(diff Difference) {
		mu.Lock()
		defer mu.Unlock()
		report.count(diff.Action)
		if run.Take != nil && diff.Action != ActionNone {
			run.Take(diff)
		}
	}
	working, workCtx := job.NewGroup(ctx)
	working.SetLimit(writers)
	syncOne := func(id string) error {
		done, err := s.SyncOne(workCtx, k, id, false)
		if err == nil {
			take(done)
		}
		return failed.note(k.Name+" "+id, err)
	}
	err := s.compareAll(workCtx, k, func(diff Difference, before revised, err error) error {
		select {
		case <-run.Stopping:
			return job.ErrStopped
		default:
		}
		mu.Lock()
		if diff.Action != ActionGone {
			report.Entities++
			if run.Progress != nil && report.Entities%pageSize == 0 {
				run.Progress(report)
			}
		}
		mu.Unlock()
		switch {
		case err != nil:
			return failed.note(k.Name+" "+diff.ID, err)
		case run.DryRun:
			take(diff)
		case diff.Action == ActionCreate, diff.Action == ActionUpdate, diff.Action == ActionConflict:
			working.Go(func() error { return syncOne(diff.ID) })
		default:
			working.Go(func() error {
				err := s.keep(workCtx, diff, before)
				if errors.Is(err, errStale) {
					return syncOne(diff.ID)
				}
				if err == nil {
					take(diff)
				}
				return failed.note(k.Name+" "+diff.ID, err)
			})
		}
		return workCtx.Err()
	})
	// What a writer ended with is why the rest was canceled.
	if ended := working.Wait(); ended != nil {
		err = ended
	}
	report.Failed = failed.count
	if err == nil {
		err = failed.err(report.Entities)
	}
	return report, err
}

// compareAll compares the entities of a kind with the documents, both in the order of
// their ids, and then finds the records whose entities are gone. Take gets an error if
// only this entity cannot be compared.
func (s *Syncer) compareAll(ctx context.Context, k Kind, take func(Difference, revised, error) error) error {
	known := map[string]encoded{}
	err := s.records.each(ctx, k.Name+".>", func(_, id string, record encoded) error {
		known[id] = record
		return nil
	})
	if err != nil {
		return err
	}
	record := func(id string) (revised, error) {
		found, ok := known[id]
		if !ok {
			return revised{}, nil
		}
		delete(known, id)
		record, err := s.records.decode(key(k.Name, id), found.value)
		return revised{record, found.revision}, err
	}
	documents, stop := iter.Pull2(s.release2.List(ctx, k.Service))
	defer stop()
	slugs := map[string]string{} // ids by slug
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
		found := d
		if !more || d.ID() != id {
			found = nil
		}
		diff := Difference{Kind: k.Name, ID: id}
		before, wrong := record(id)
		if wrong == nil {
			diff, wrong = k.compare(entity, found, before.Record, false)
		}
		if key := k.slugKey(diff.want); key != "" {
			diff = diff.withTwin(slugs[key], before.Conflict)
			slugs[key] = cmp.Or(slugs[key], id)
		}
		if err := take(diff, before, wrong); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		before, wrong := record(id)
		if err := take(gone(k, id, before.Record), before, wrong); err != nil {
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
func Conflicts(ctx context.Context, client *pipeline.Client) ([]Known, error) {
	records, err := openRecords(ctx, client)
	if err != nil {
		return nil, err
	}
	return records.conflicts(ctx)
}

// Conflicts is [Conflicts].
func (s *Syncer) Conflicts(ctx context.Context) ([]Known, error) { return s.records.conflicts(ctx) }

func (r *records) conflicts(ctx context.Context) ([]Known, error) {
	list := []Known{}
	err := r.each(ctx, ">", func(kind, id string, found encoded) error {
		record, err := r.decode(key(kind, id), found.value)
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

// RetryRefused looks again at all entities whose documents Release 2 has refused, or whose
// slug another one has, in the order of the kinds: what they refer to may be there now. Take gets what was done, one
// at a time. It ends with [job.ErrStopped] when stopping is closed.
func (s *Syncer) RetryRefused(ctx context.Context, stopping <-chan struct{}, take func(Difference)) error {
	conflicts, err := s.Conflicts(ctx)
	if err != nil {
		return err
	}
	var failed failures // one that fails stays refused, and keeps no other back
	for _, k := range Kinds() {
		var mu sync.Mutex
		working, workCtx := job.NewGroup(ctx)
		working.SetLimit(writers)
		for _, known := range conflicts {
			if known.Kind != k.Name || known.Reason != ReasonRefused && known.Reason != ReasonSlug {
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
				return failed.note(k.Name+" "+known.ID, err)
			})
		}
		if err := working.Wait(); err != nil {
			return err
		}
	}
	return nil
}
