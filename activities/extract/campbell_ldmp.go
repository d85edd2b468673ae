package extract

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/iterate"
)

type campbellLdmp struct {
	pipeline *pipeline.Client
	settings
}

// CampbellScientificLdmp makes the job type ExtractCampbellScientificLdmp. A nil
// client is enough to describe it.
//
// For spec.IterationDuration, an iteration reads the records of all tables over one
// connection, each from its bookmark on, and publishes them as raw messages. A
// record is acknowledged when the stream has it, in the order that the records
// came in; what is no record goes to quarantine and is acknowledged too. A connection with
// spec.MaxRefused of them ends. Every
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
		spec: spec, pipeline: h.pipeline, now: h.now,
		subject: pipeline.RawSubject(spec.OperationMode, spec.Organization, ldmp.Source),
		tables:  map[[2]string]*ldmpTable{},
	}
	e.Iteration = iterate.New(run, spec.IterationDuration.Std(), e.report)
	err := e.open(ctx)
	if err == nil {
		err = e.Loop(ctx, e.connection)
	}
	if err == nil && e.Stopped() {
		err = job.ErrStopped
	}
	return job.Result{Message: e.summary(), Counts: e.Counts()}, err
}

// ldmpExtraction is one iteration.
type ldmpExtraction struct {
	*iterate.Iteration

	spec     CampbellLdmpSpec
	pipeline *pipeline.Client
	now      func() time.Time
	subject  string
	order    []*ldmpTable
	tables   map[[2]string]*ldmpTable
	failures int // connections in a row that failed without anything new
}

// open reads the bookmarks.
func (e *ldmpExtraction) open(ctx context.Context) error {
	for _, station := range e.spec.Stations {
		for _, name := range station.Tables {
			bookmark, err := e.pipeline.Bookmark(ctx, pipeline.BookmarkKey(e.Job().ID, ldmpSource(station.name(), name)))
			if err != nil {
				return err
			}
			t := &ldmpTable{slug: station.Station, station: station.name(), table: name, offset: station.UTCOffset}
			t.open(bookmark)
			e.order = append(e.order, t)
			e.tables[[2]string{t.station, t.table}] = t
		}
	}
	return nil
}

const (
	// sessionAttempts is how often in a row a connection may fail, without anything new
	// in between, before it fails the iteration. The job's own backoff goes on from
	// there, and the failure is seen.
	sessionAttempts = 4
	firstPause      = 250 * time.Millisecond
)

// connection is the step that reads over one connection. One that fails is followed by
// another one after a wait.
func (e *ldmpExtraction) connection(ctx context.Context) (iterate.Next, error) {
	before := e.progress()
	err := e.session(ctx)
	if err == nil || !passes(err) {
		return iterate.Done, err
	}
	if !slices.Equal(before, e.progress()) && job.ClassOf(err) != errclass.LdmpBadRecords {
		e.failures = 0
	}
	if e.failures++; e.failures == sessionAttempts {
		return iterate.Done, err
	}
	e.Logger().Warn("the connection to the LoggerNet server ended; another one is made", "error", err)
	wait := firstPause << (e.failures - 1)
	e.Wait(ctx, wait/2+rand.N(wait/2))
	return iterate.More, nil
}

// progress is how far the tables are, apart from what is read again with each
// connection: a server that dies of what it begins with is not at work.
func (e *ldmpExtraction) progress() []ldmpState {
	places := make([]ldmpState, 0, len(e.order)+1)
	for _, t := range e.order {
		places = append(places, t.place())
	}
	return append(places, ldmpState{Number: e.Counted("raw") + e.Counted("quarantined")})
}

// passes reports whether a failure is one of the connection to the server, which
// may be better the next time.
func passes(err error) bool {
	switch job.ClassOf(err) {
	case errclass.LdmpDisconnected, errclass.LdmpUnreachable, errclass.LdmpEndless, errclass.LdmpBadRecords:
		return true
	}
	return false
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
		bookmark, err := e.pipeline.Advance(ctx, from, position, state, e.ID())
		if err != nil {
			t.unsave()
			return err
		}
		t.saved(bookmark)
	}
	return nil
}

// summary is what the operators see of an iteration.
func (e *ldmpExtraction) summary() string {
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
	text := fmt.Sprintf("%d records of %d of %d tables of %s", e.Counted("records"), heard, len(e.order), e.spec.Server)
	if !newest.IsZero() {
		text += ", the latest of " + newest.Format(time.RFC3339)
	}
	if n := e.Counted("quarantined"); n > 0 {
		text += fmt.Sprintf("; %d to quarantine", n)
	}
	switch {
	case silent != nil && silentSince.IsZero():
		text += fmt.Sprintf("; nothing ever of %s %s", silent.station, silent.table)
	case silent != nil:
		text += fmt.Sprintf("; silent longest: %s %s, since %s", silent.station, silent.table, silentSince.Format(time.RFC3339))
	}
	return text
}

func (e *ldmpExtraction) report(counts map[string]int64) (job.Progress, any) {
	return job.Progress{Done: counts["acknowledged"], Message: e.summary()}, nil
}
