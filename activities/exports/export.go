package exports

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Clients are what exports read and write.
type Clients struct {
	Places   places.Places
	Platform *platform.Client
	Store    *objects.Store
}

// Datastreams makes the job type ExportDatastreams. Nil clients are enough to describe it.
//
// It reads the measurements of an organization's stations window by window, and writes
// parts: files that have at least part_points values, but for the last of a series. A part
// is an object that never changes. Its key has a number, and its metadata says which span
// it has: whatever attempt comes next goes on behind the last part that there is.
func Datastreams(store *objects.Store, api *platform.Client, at places.Places) job.Type {
	clients := Clients{Places: at, Platform: api, Store: store}
	return job.NewType("ExportDatastreams", job.WorkerBackend,
		"Writes points of an organization's stations into files to download.",
		func(ctx context.Context, run job.Run, spec Spec) (job.Result, error) {
			if err := platform.Need(api); err != nil {
				return job.Result{}, err
			}
			return exportDatastreams(ctx, run, clients, spec)
		}, job.ModeOneShot, job.ModeQueued)
}

// cursor is how far a run is.
type cursor struct {
	Folder string    `json:"folder"`
	Series int       `json:"series"`        // the one that is read
	From   time.Time `json:"from"`          // what of it comes next
	Last   time.Time `json:"last,omitzero"` // its last row before
	Parts  int       `json:"parts"`
	Totals
}

// export is one attempt.
type export struct {
	Clients
	question
	run    job.Run
	spec   Spec
	pace   *influx.Pace
	folder string
	at     cursor
}

func exportDatastreams(ctx context.Context, run job.Run, clients Clients, spec Spec) (job.Result, error) {
	spec.Start, spec.End = spec.Start.UTC(), spec.End.UTC()
	a := &asker{Clients: clients, run: run, spec: spec}
	asked, err := a.ask(ctx)
	if err != nil {
		return job.Result{}, err
	}
	e := &export{
		Clients: clients, question: asked, run: run, spec: spec,
		pace: &influx.Pace{PerSecond: clients.Places.Exports.PointsPerSecond, Run: run},
	}
	if spec.DryRun {
		return e.estimate(ctx)
	}
	e.folder = folder(e.organization.GetId(), []any{e.spec, e.series}, run.ID(), spec.LinkLife)
	if _, err := run.Cursor(&e.at); err != nil {
		return job.Result{}, err
	}
	if e.at.Folder != e.folder { // Or stations or fields have changed: what was written is not taken.
		e.at = cursor{Folder: e.folder, From: spec.Start}
	}
	if err := e.checkRoom(ctx); err != nil {
		return job.Result{}, err
	}
	for e.at.Series < len(e.series) {
		if err := e.readSeries(ctx); err != nil {
			return e.result(e.summary(), nil), err
		}
		e.at.Series, e.at.From, e.at.Last = e.at.Series+1, spec.Start, time.Time{}
		e.checkpoint(0)
	}
	return e.finish(ctx)
}

// checkRoom refuses an export of an organization that has too many already.
func (e *export) checkRoom(ctx context.Context) error {
	there := e.Store.List(ctx, e.Places.Exports.Bucket, places.ExportPrefix(e.organization.GetId()))
	over, err := e.Places.Exports.Quota.Exceeded(there, 1-int64(e.at.Parts), 1-e.at.Bytes)
	if err == nil && over != "" {
		err = job.Fail(errclass.ExportRefused, "exports of organization %s: %s: wait until some have ended", e.spec.Organization, over)
	}
	return err
}

// errMoved says that a part was there already: the windows behind it are others.
var errMoved = errors.New("the place to go on from has moved")

// readSeries writes the parts of a series that are not written yet.
func (e *export) readSeries(ctx context.Context) error {
	r := e.newReader(e.series[e.at.Series])
	for e.at.From.Before(e.spec.End) {
		found, err := e.adopt(ctx)
		if found {
			continue
		}
		if err == nil {
			err = e.readWindows(ctx, r)
		}
		switch {
		case errors.Is(err, errMoved):
		case errors.Is(err, influx.ErrNoDatabase):
			return job.Fail(errclass.ExportRefused, "database %s is gone from mirror %s of location %s", r.series.Database, e.mirror.Name, e.spec.Location)
		case err != nil:
			return e.mirror.Explain(e.spec.Location, err)
		}
	}
	return nil
}

func (e *export) readWindows(ctx context.Context, r *reader) error {
	var m *making
	store := func() error {
		to := m.To
		err := e.store(ctx, m)
		m = nil
		if err == nil && !e.at.From.Equal(to) {
			return errMoved
		}
		return err
	}
	err := r.windows(ctx, span{e.at.From, e.spec.End}, func(w counted) (err error) {
		if job.Stopped(e.run) {
			return job.ErrStopped
		}
		if m == nil {
			if m, err = e.begin(); err != nil {
				return err
			}
		}
		if err := r.read(ctx, w, m.row); err != nil {
			return err
		}
		m.To = w.To
		if e.at.Values+m.Values > e.Places.Exports.MaxPoints {
			return job.Fail(errclass.ExportRefused, "the export has more than %d values: ask for less, or for an aggregate", e.Places.Exports.MaxPoints)
		}
		e.checkpoint(m.Values)
		if m.Values >= e.spec.PartPoints {
			return store()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if m != nil && m.Rows > 0 {
		m.To = e.spec.End
		return store()
	}
	e.at.From = e.spec.End
	return nil
}

// take counts a part that is there.
func (e *export) take(p Part) {
	e.at.From, e.at.Last = p.To, p.Last
	e.at.Parts++
	e.at.Rows += p.Rows
	e.at.Values += p.Values
	e.at.Bytes += p.Bytes
	e.at.Gaps += p.Gaps
	e.checkpoint(0)
}

// checkpoint saves the place behind the last part. Pending are values of the next one.
func (e *export) checkpoint(pending int64) {
	e.run.Checkpoint(job.Progress{Done: e.at.Values + pending, Message: fmt.Sprintf("values in %d parts, series %d of %d from %s on",
		e.at.Parts, min(e.at.Series+1, len(e.series)), len(e.series), e.at.From.Format(time.RFC3339))}, e.at)
}
