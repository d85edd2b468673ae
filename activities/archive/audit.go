package archive

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Kind says what an audit found.
type Kind string

// What is wrong, if anything is.
const (
	KindMissing   Kind = "missing"   // numbers that no batch covers, though they are acknowledged, or later ones are covered
	KindOverlap   Kind = "overlap"   // numbers that two batches cover
	KindObject    Kind = "object"    // an object of a batch is not there
	KindDamaged   Kind = "damaged"   // an object or a record is not what was written
	KindConflict  Kind = "conflict"  // content that was kept, since its key was taken by other content
	KindStray     Kind = "stray"     // an object that no batch lists
	KindWentBack  Kind = "went_back" // the stream ends before the archive does
	KindNoArchive Kind = "unknown"   // a key that is none of an archive
	// KindOtherStream: nothing that is archived is of the stream that the server has:
	// it is another server, or it lost its stream.
	KindOtherStream Kind = "other_stream"
	// KindEmpty: nothing is archived here and no job feeds the archive, though the
	// stream has had messages. Its prefix may be misspelt.
	KindEmpty Kind = "empty"
)

// Finding is something that is wrong.
type Finding struct {
	Kind        Kind        `json:"kind"`
	Incarnation Incarnation `json:"incarnation,omitempty"`
	// Numbers it is about, if it is about some.
	Numbers *Range `json:"numbers,omitempty"`
	Key     string `json:"key,omitempty"`
	Text    string `json:"text"`
}

// IncarnationReport is what the archive has of an incarnation of a stream.
type IncarnationReport struct {
	Incarnation Incarnation `json:"incarnation"`
	Batches     int         `json:"batches"`
	Objects     int         `json:"objects"`
	Messages    int64       `json:"messages"`
	Replays     int64       `json:"replays"`
	Bytes       int64       `json:"bytes"` // of the lines
	Size        int64       `json:"size"`  // of the objects
	Last        uint64      `json:"last"`  // the batches cover the numbers from 1 to this one
	To          time.Time   `json:"to"`    // when the stream took that message
	// Gone are numbers that the stream did not hold any more when their batch was
	// archived: deleted, purged or expired.
	Gone []Range `json:"gone,omitempty"`
	// Live is what the stream says, if this is its present incarnation.
	Live *LiveReport `json:"live,omitempty"`
}

// LiveReport compares the archive with the stream.
type LiveReport struct {
	First     uint64            `json:"first"`
	Last      uint64            `json:"last"`
	Waiting   uint64            `json:"waiting"`    // numbers that are not archived yet
	AckFloors map[string]uint64 `json:"ack_floors"` // of the archive's consumers, by name
	// UnderWay are objects of batches that are not acknowledged, and not there yet.
	UnderWay int `json:"under_way"`
}

// Report is what an audit says. Findings are empty if nothing is wrong.
type Report struct {
	Bucket       string              `json:"bucket"`
	Prefix       string              `json:"prefix,omitempty"`
	Deep         bool                `json:"deep"`
	Incarnations []IncarnationReport `json:"incarnations"`
	Findings     []Finding           `json:"findings"`
}

// Clean reports whether nothing is wrong.
func (r Report) Clean() bool { return len(r.Findings) == 0 }

// AuditOptions say how far an audit goes.
type AuditOptions struct {
	// Deep reads every object and compares it with its record, line by line.
	Deep bool
	// Stream is asked what it holds, and its consumers what they acknowledged; a
	// server without the stream is an error that wraps [pipeline.ErrNoStream]. Nil
	// audits the archive alone.
	Stream *pipeline.Client
	// Progress is called with how many of so many records and objects are read, if
	// it is not nil.
	Progress func(done, total int)
}

// auditReaders is how many objects an audit reads at the same time.
const auditReaders = 8

// Audit proves that the archive holds every message that its stream had, or finds
// what keeps that from being proven: the batches of each incarnation of the stream
// cover all numbers from 1 without gap or overlap, every batch accounts for each
// of its numbers, and every object that a batch lists is there, of the size that
// the record says; with Deep, with its very content. Of the present incarnation nothing
// is acknowledged that is not archived.
//
// An archive with nothing of the present incarnation, and something of others, is a
// finding: what it is compared with may be another server's stream. So is one with
// nothing at all that no job feeds, if there are messages.
//
// It reads the keys of the whole archive, and the record of each batch. It may
// run while messages are archived.
func (a Archive) Audit(ctx context.Context, o AuditOptions) (Report, error) {
	u := &audit{Archive: a, options: o, sizes: map[string]int64{}, report: Report{
		Bucket: a.Bucket, Prefix: a.Prefix, Deep: o.Deep, Incarnations: []IncarnationReport{}, Findings: []Finding{},
	}}
	// What is acknowledged is asked before the archive is listed, and the length of
	// the stream after it, so that what happens meanwhile looks like no loss.
	consumers, err := u.consumers(ctx)
	if err != nil {
		return u.report, err
	}
	if err := u.list(ctx); err != nil {
		return u.report, err
	}
	if err := u.readBatches(ctx); err != nil {
		return u.report, err
	}
	current, live, err := u.live(ctx, consumers)
	if err != nil {
		return u.report, err
	}
	for _, incarnation := range slices.Sorted(maps.Keys(u.batches)) {
		if incarnation == current {
			u.incarnation(incarnation, live)
		} else {
			u.incarnation(incarnation, nil)
		}
	}
	if err := u.strays(ctx); err != nil {
		return u.report, err
	}
	if err := u.readObjects(ctx); err != nil {
		return u.report, err
	}
	return u.report, nil
}

// audit is one audit.
type audit struct {
	Archive
	options AuditOptions
	report  Report

	records []string         // keys of records
	sizes   map[string]int64 // of the objects with messages, by key
	batches map[Incarnation][]Batch
	objects []Object // those that are there and have to be read

	mu   sync.Mutex
	done int
}

func (u *audit) find(f Finding) { u.report.Findings = append(u.report.Findings, f) }

// consumers are those of the raw stream, as they are before the audit.
func (u *audit) consumers(ctx context.Context) ([]pipeline.ConsumerState, error) {
	if u.options.Stream == nil {
		return nil, nil
	}
	return u.options.Stream.ConsumerStates(ctx, pipeline.StreamRaw)
}

// live adds what the stream says to the latest generation of its present incarnation.
func (u *audit) live(ctx context.Context, consumers []pipeline.ConsumerState) (Incarnation, *LiveReport, error) {
	if u.options.Stream == nil {
		return "", nil, nil
	}
	state, err := u.options.Stream.StreamState(ctx, pipeline.StreamRaw)
	if err != nil {
		return "", nil, err
	}
	generation := 0
	for incarnation := range u.batches {
		if n, ok := incarnation.generationOf(pipeline.StreamRaw, state.Created); ok {
			generation = max(generation, n)
		}
	}
	live := &LiveReport{First: state.First, Last: state.Last, AckFloors: map[string]uint64{}}
	for _, c := range consumers {
		if u.feeds(c, generation) {
			live.AckFloors[c.Name] = c.AckFloor
		}
	}
	current := NewIncarnation(pipeline.StreamRaw, state.Created, generation)
	if _, found := u.batches[current]; !found {
		switch {
		case len(u.batches) > 0:
			u.find(Finding{
				Kind: KindOtherStream, Incarnation: current,
				Text: fmt.Sprintf("nothing is archived of stream %s on %s, which was made at %s, and other things are: this is another server, or it lost its stream",
					pipeline.StreamRaw, u.options.Stream.Address(), state.Created.Format(time.RFC3339)),
			})
		case len(live.AckFloors) == 0 && state.Last > 0:
			u.find(Finding{
				Kind: KindEmpty, Incarnation: current,
				Text: fmt.Sprintf("nothing is archived in %s/%s, and no job feeds it, though stream %s on %s has had %d messages",
					u.Bucket, u.Prefix, pipeline.StreamRaw, u.options.Stream.Address(), state.Last),
			})
		}
		u.batches[current] = nil // nothing is archived yet
	}
	return current, live, nil
}

func (u *audit) list(ctx context.Context) error {
	for info, err := range u.Store.List(ctx, u.Bucket, u.Prefix+root) {
		if err != nil {
			return err
		}
		key := strings.TrimPrefix(info.Key, u.Prefix)
		_, _, isRecord := parseBatchKey(key)
		_, isData := ParseDataKey(key)
		switch {
		case isRecord:
			u.records = append(u.records, key)
		case isData:
			u.sizes[key] = info.Size
		case strings.HasPrefix(key, conflictRoot):
			u.find(Finding{Kind: KindConflict, Key: key, Text: "this was kept because its key was taken by other content: look at both, and remove one"})
		default:
			u.find(Finding{Kind: KindNoArchive, Key: key, Text: "this key is none of an archive"})
		}
	}
	return nil
}

// each calls do for several items at the same time, until one fails or ctx ends, and
// returns the first error.
func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	group, ctx := job.NewGroup(ctx)
	group.SetLimit(auditReaders)
	for _, item := range items {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return do(ctx, item)
		})
	}
	return group.Wait()
}

func (u *audit) progress(total int) {
	u.done++
	if u.options.Progress != nil {
		u.options.Progress(u.done, total)
	}
}

// damage reports whether an error is about what was read, not about reading it.
func damage(err error) bool {
	class := job.ClassOf(err)
	return class == errclass.ArchiveDamaged || class == errclass.ObjectTooLarge
}

func (u *audit) readBatches(ctx context.Context) error {
	u.batches = map[Incarnation][]Batch{}
	return each(ctx, u.records, func(ctx context.Context, key string) error {
		incarnation, first, _ := parseBatchKey(key)
		batch, found, err := u.Batch(ctx, incarnation, first)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.progress(len(u.records))
		switch {
		case damage(err):
			u.find(Finding{Kind: KindDamaged, Incarnation: incarnation, Key: key, Text: err.Error()})
			return nil
		case err != nil:
			return err
		case found:
			u.batches[incarnation] = append(u.batches[incarnation], batch)
		}
		return nil
	})
}

// incarnation checks the batches of an incarnation of a stream.
func (u *audit) incarnation(incarnation Incarnation, live *LiveReport) {
	batches := u.batches[incarnation]
	slices.SortFunc(batches, func(a, b Batch) int { return cmp.Compare(a.First, b.First) })
	r := IncarnationReport{Incarnation: incarnation, Batches: len(batches), Live: live}
	floor := uint64(0)
	if live != nil {
		for _, f := range live.AckFloors {
			floor = max(floor, f)
		}
	}
	for _, b := range batches {
		switch {
		case b.First > r.Last+1:
			u.missing(incarnation, Range{r.Last + 1, b.First - 1}, "no batch covers these messages, and later ones are archived")
		case b.First <= r.Last:
			u.find(Finding{
				Kind: KindOverlap, Incarnation: incarnation, Numbers: &Range{b.First, min(r.Last, b.Last)}, Key: batchKey(incarnation, b.First),
				Text: "two batches cover these messages",
			})
		}
		if b.Last >= r.Last {
			r.Last, r.To = b.Last, b.To
		}
		r.Messages += b.Messages
		r.Replays += b.Replays
		r.Gone = append(r.Gone, b.Gone...)
		for _, o := range b.Objects {
			u.listed(incarnation, b, o, live != nil && b.Last > floor, &r)
		}
	}
	if live != nil {
		// A consumer begins behind what its stream had dropped before it was made.
		untouched := r.Last == 0 && floor < live.First
		if floor > r.Last && !untouched {
			u.missing(incarnation, Range{r.Last + 1, floor}, "these messages are acknowledged, and no batch covers them")
		}
		if live.Last < r.Last {
			u.find(Finding{
				Kind: KindWentBack, Incarnation: incarnation, Numbers: &Range{live.Last + 1, r.Last},
				Text: fmt.Sprintf("the stream ends with message %d, and messages up to %d are archived: it lost its tail, and gives these numbers again", live.Last, r.Last),
			})
		} else {
			live.Waiting = live.Last - r.Last
		}
	}
	u.report.Incarnations = append(u.report.Incarnations, r)
}

func (u *audit) missing(incarnation Incarnation, numbers Range, text string) {
	u.find(Finding{Kind: KindMissing, Incarnation: incarnation, Numbers: &numbers, Text: text})
}

// listed checks an object that a record lists against the keys that are there.
func (u *audit) listed(incarnation Incarnation, b Batch, o Object, open bool, r *IncarnationReport) {
	size, found := u.sizes[o.Key]
	if !found {
		if open {
			r.Live.UnderWay++ // the next run completes it
			return
		}
		u.find(Finding{Kind: KindObject, Incarnation: incarnation, Numbers: &b.Range, Key: o.Key, Text: fmt.Sprintf("this object with %d messages is not there", o.Messages)})
		return
	}
	r.Objects++
	r.Bytes += o.Bytes
	r.Size += size
	delete(u.sizes, o.Key) // what is left is listed by none
	if u.options.Deep || size != o.Size {
		u.objects = append(u.objects, o)
	}
}

// strays finds objects that no record lists.
func (u *audit) strays(ctx context.Context) error {
	for _, key := range slices.Sorted(maps.Keys(u.sizes)) {
		data, _ := ParseDataKey(key)
		// Its batch may be newer than the list of records.
		batch, found, err := u.Batch(ctx, data.Incarnation, data.First)
		if err != nil && !damage(err) {
			return err
		}
		if found && slices.ContainsFunc(batch.Objects, func(o Object) bool { return o.Key == key }) &&
			!slices.ContainsFunc(u.batches[data.Incarnation], func(b Batch) bool { return b.First == batch.First }) {
			continue
		}
		u.find(Finding{Kind: KindStray, Incarnation: data.Incarnation, Numbers: &Range{data.First, data.Last}, Key: key, Text: "no batch lists this object"})
	}
	return nil
}

// readObjects compares objects with their records, line by line.
func (u *audit) readObjects(ctx context.Context) error {
	u.done = 0
	return each(ctx, u.objects, func(ctx context.Context, o Object) error {
		content, err := u.Read(ctx, o.Key)
		if err == nil {
			err = u.compare(o, content)
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		u.progress(len(u.objects))
		if damage(err) {
			data, _ := ParseDataKey(o.Key)
			u.find(Finding{Kind: KindDamaged, Incarnation: data.Incarnation, Numbers: &Range{data.First, data.Last}, Key: o.Key, Text: err.Error()})
			return nil
		}
		return err
	})
}

func (u *audit) compare(o Object, content []byte) error {
	if objects.Hash(content) != o.ContentSHA256 {
		return u.damaged(o.Key, fmt.Errorf("its %d bytes of lines do not have the hash that its record says", len(content)))
	}
	data, _ := ParseDataKey(o.Key)
	n, last := int64(0), uint64(0)
	for m, err := range u.Messages(o.Key, content) {
		if err != nil {
			return err
		}
		if m.Sequence <= last || m.Sequence < data.First || m.Sequence > data.Last || partitionOf(m) != data.Partition {
			return u.damaged(o.Key, fmt.Errorf("message %d does not belong there", m.Sequence))
		}
		n, last = n+1, m.Sequence
	}
	if n != o.Messages {
		return u.damaged(o.Key, fmt.Errorf("it has %d messages, and its record says %d", n, o.Messages))
	}
	return nil
}
