package extract

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// ldmpSourceName names the vendor's interface in subjects and contexts.
const ldmpSourceName = "csi"

// Classes of what goes to quarantine.
const (
	ClassBadRecord    = "BadRecord"    // a frame that is no record
	ClassUnknownTable = "UnknownTable" // a record of a table that was not asked for
)

type campbellLdmp struct {
	pipeline *pipeline.Client
	settings
}

// CampbellScientificLdmp makes the job type ExtractCampbellScientificLdmp. A nil
// client is enough to describe it.
//
// An iteration is a lap: for spec.IterationDuration it reads the records of all tables over one
// connection, each from its bookmark on, and publishes them as raw messages. A
// record is acknowledged when the stream has it, in the order that the records
// came in; what is no record goes to quarantine and is acknowledged too. Every
// second the bookmarks move to what is published. A server with nothing to say is
// waited for; a connection that ends is made again.
func CampbellScientificLdmp(client *pipeline.Client, options ...Option) job.Type {
	h := &campbellLdmp{pipeline: client, settings: newSettings(options)}
	return job.NewType("ExtractCampbellScientificLdmp", job.WorkerExtract,
		"Reads the records of Campbell Scientific data loggers from a LoggerNet server and publishes them as raw messages.",
		h.handle, job.ModeContinuous)
}

func (h *campbellLdmp) handle(ctx context.Context, run job.Run, spec CampbellLdmpSpec) (job.Result, error) {
	e := &ldmpExtraction{
		run: run, spec: spec, pipeline: h.pipeline, now: h.now,
		subject: pipeline.RawSubject(spec.OperationMode, spec.Organization, ldmpSourceName),
		tables:  map[[2]string]*ldmpTable{},
		counts:  map[string]int64{},
	}
	err := e.open(ctx)
	if err == nil {
		err = e.lap(ctx)
	}
	return e.result(), err
}

// ldmpExtraction is one iteration.
type ldmpExtraction struct {
	run      job.Run
	spec     CampbellLdmpSpec
	pipeline *pipeline.Client
	now      func() time.Time
	subject  string
	order    []*ldmpTable
	tables   map[[2]string]*ldmpTable

	mu     sync.Mutex
	counts map[string]int64
}

func (e *ldmpExtraction) add(name string, n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts[name] += n
}

// open reads the bookmarks.
func (e *ldmpExtraction) open(ctx context.Context) error {
	for _, station := range e.spec.Stations {
		for _, name := range station.Tables {
			bookmark, err := e.pipeline.Bookmark(ctx, pipeline.BookmarkKey(e.run.Job().ID, ldmpSource(station.Station, name)))
			if err != nil {
				return err
			}
			t := &ldmpTable{station: station.Station, table: name, offset: station.UTCOffset}
			t.open(bookmark)
			e.order = append(e.order, t)
			e.tables[[2]string{t.station, t.table}] = t
		}
	}
	return nil
}

const (
	// sessionTries is how often in a row a connection may fail, without anything new
	// in between, before it fails the iteration. The job's own backoff goes on from
	// there, and the failure is seen.
	sessionTries = 4
	firstPause   = 250 * time.Millisecond
)

// lap reads for spec.IterationDuration, over as many connections as it takes.
func (e *ldmpExtraction) lap(ctx context.Context) error {
	end := time.Now().Add(e.spec.IterationDuration.Std())
	for try := 1; ; try++ {
		before := e.progress()
		err := e.session(ctx, end)
		switch {
		case err == nil && job.Stopped(e.run):
			return job.ErrStopped
		case err == nil:
			return nil
		case !passes(err):
			return err
		}
		if !slices.Equal(before, e.progress()) {
			try = 1
		}
		if try == sessionTries {
			return err
		}
		e.run.Logger().Warn("the connection to the LoggerNet server ended; another one is made", "error", err)
		if e.pause(ctx, firstPause<<(try-1)) {
			return job.ErrStopped
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// progress is how far the tables are, apart from what is read again with each
// connection: a server that dies of what it begins with is not at work.
func (e *ldmpExtraction) progress() []ldmpState {
	places := make([]ldmpState, 0, len(e.order)+1)
	for _, t := range e.order {
		places = append(places, t.place())
	}
	return append(places, ldmpState{Number: e.count("raw") + e.count("quarantined")})
}

// passes says whether a failure is one of the connection to the server, which
// may be better the next time.
func passes(err error) bool {
	var failure *job.Failure
	if !errors.As(err, &failure) {
		return false
	}
	switch failure.Class {
	case ldmp.ClassDisconnected, ldmp.ClassUnreachable, ldmp.ClassEndless:
		return true
	}
	return false
}

// pause waits, and reports whether the job is to stop.
func (e *ldmpExtraction) pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait/2 + rand.N(wait/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.run.Stopping():
	case <-ctx.Done():
	}
	return job.Stopped(e.run)
}

func (e *ldmpExtraction) count(name string) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.counts[name]
}

// groups asks for every table from where it is.
func (e *ldmpExtraction) groups() []ldmp.Group {
	groups := make([]ldmp.Group, len(e.order))
	for i, t := range e.order {
		groups[i] = ldmp.Group{Station: t.station, Table: t.table, Order: e.spec.Order, Start: t.start(&e.spec, e.now())}
	}
	return groups
}

// save moves the bookmarks to what is published.
func (e *ldmpExtraction) save(ctx context.Context) error {
	for _, t := range e.order {
		from, position, state, ok := t.unsaved()
		if !ok {
			continue
		}
		bookmark, err := e.pipeline.Advance(ctx, from, position, state, e.run.ID())
		if err != nil {
			t.unsave()
			return err
		}
		t.saved(bookmark)
	}
	return nil
}

// told is what the operators see of an iteration.
func (e *ldmpExtraction) told() string {
	heard := 0
	var newest time.Time
	var silent *ldmpTable
	var silentSince time.Time
	for _, t := range e.order {
		n, position := t.count()
		if n > 0 {
			heard++
		} else if silent == nil || position.Before(silentSince) {
			silent, silentSince = t, position
		}
		if position.After(newest) {
			newest = position
		}
	}
	text := fmt.Sprintf("%d records of %d of %d tables of %s", e.count("records"), heard, len(e.order), e.spec.Server)
	if !newest.IsZero() {
		text += ", the latest of " + newest.Format(time.RFC3339)
	}
	switch {
	case silent != nil && silentSince.IsZero():
		text += fmt.Sprintf("; nothing ever of %s %s", silent.station, silent.table)
	case silent != nil:
		text += fmt.Sprintf("; silent longest: %s %s, since %s", silent.station, silent.table, silentSince.Format(time.RFC3339))
	}
	return text
}

func (e *ldmpExtraction) checkpoint() {
	e.run.Checkpoint(job.Progress{Done: e.count("acknowledged"), Message: e.told()}, nil)
}

func (e *ldmpExtraction) result() job.Result {
	e.mu.Lock()
	counts := maps.Clone(e.counts)
	e.mu.Unlock()
	return job.Result{Message: e.told(), Counts: counts}
}
