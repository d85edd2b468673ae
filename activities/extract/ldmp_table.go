package extract

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// clockSlack is how far a logger's clock may be ahead of ours. A clock that was
// set to daylight saving time by mistake is an hour ahead.
const clockSlack = time.Hour

// maxSetBack is how far a logger's clock may be set back and still be followed.
// One whose battery failed begins again in 1990: to go on from there would mean to
// read everything again.
const maxSetBack = 24 * time.Hour

// firstYear is when the clocks of loggers begin.
const firstYear = 1980

// ldmpTable is a table that is read, and how far.
type ldmpTable struct {
	station, table string
	offset         pipeline.UTCOffset

	mu       sync.Mutex
	bookmark pipeline.Bookmark
	position time.Time // the latest of what is published
	last     ldmpState // the last record that is published
	dirty    bool      // the bookmark is behind
	begins   bool      // nothing of it came yet over this connection
	stored   time.Time // the latest clock that was new in the stream over this connection
	again    time.Time // the clock of what was published again last
	records  int64     // published in this iteration
}

// ldmpState stands beside the position in a bookmark: the record that was
// published last, where the next connection begins. Its time may lie before the
// position, if the logger's clock was set back.
type ldmpState struct {
	Time   string `json:"time"` // the logger's clock, as sent
	Number int64  `json:"record_number"`
}

// open takes over a bookmark.
func (t *ldmpTable) open(bookmark pipeline.Bookmark) {
	t.bookmark = bookmark
	if bookmark.Revision == 0 {
		return
	}
	t.position = bookmark.Position
	var state ldmpState
	if len(bookmark.State) > 0 && json.Unmarshal(bookmark.State, &state) == nil {
		if _, err := ldmp.ParseClock(state.Time); err == nil {
			t.last = state
			return
		}
	}
	t.last = ldmpState{Time: ldmp.ClockAt(bookmark.Position, t.offset.Std()).Format("2006-01-02T15:04:05.999"), Number: -1}
}

// start says where to go on. The server counts the record at the very time in.
func (t *ldmpTable) start(spec *CampbellLdmpSpec, now time.Time) ldmp.Start {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begins, t.stored, t.again = true, time.Time{}, time.Time{}
	if clock, err := ldmp.ParseClock(t.last.Time); err == nil {
		return ldmp.AtTime(clock)
	}
	switch spec.StartOption {
	case ldmp.StartAtOldest:
		return ldmp.AtOldest()
	case ldmp.StartAtNewest:
		return ldmp.AtNewest()
	case ldmp.StartRelativeToNewest:
		return ldmp.RelativeToNewest(spec.Backfill.Std())
	}
	at := spec.Start
	if at.IsZero() {
		at = now.Add(-spec.Backfill.Std())
	}
	return ldmp.AtTime(ldmp.ClockAt(at, t.offset.Std()))
}

// repeats says whether a record is the one that was published last, with which a
// connection begins. A later record is never taken for it: if the last one had
// corrected another of the same time, then that one comes again before it, and the
// correction has to follow.
func (t *ldmpTable) repeats(record ldmp.Record) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	begins := t.begins
	t.begins = false
	return begins && record.Number == t.last.Number && record.Time == t.last.Time
}

// overtaken says whether a record has to be published again, behind one that came
// before it over this connection. When a record and its correction are read once
// more, the stream may have forgotten the record and not yet the correction: it
// stores the one and drops the other, and the old value would be the last. What
// follows of the same time may have been stored meanwhile, and follows once more.
func (t *ldmpTable) overtaken(clock time.Time, stored bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case stored && !clock.Equal(t.again):
		if clock.After(t.stored) {
			t.stored = clock
		}
		return false
	case !stored && (t.stored.IsZero() || clock.After(t.stored)):
		return false
	}
	t.again = clock
	return true
}

// published notes that a record is durable. One whose time is astray, in the
// future or far in the past, is not where the next connection begins: everything
// until then would be passed over, or read again.
func (t *ldmpTable) published(record ldmp.Record, clock, now time.Time) (astray bool) {
	at := ldmp.At(clock, t.offset.Std())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.records++
	if at.After(now.Add(clockSlack)) || at.Year() < firstYear || at.Before(t.position.Add(-maxSetBack)) {
		return true
	}
	if at.After(t.position) {
		t.position = at
	}
	t.last = ldmpState{Time: record.Time, Number: record.Number}
	t.dirty = true
	return false
}

// unsaved gives what the bookmark should say, if it does not.
func (t *ldmpTable) unsaved() (from pipeline.Bookmark, position time.Time, state ldmpState, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ok = t.dirty
	t.dirty = false
	return t.bookmark, t.position, t.last, ok
}

func (t *ldmpTable) saved(bookmark pipeline.Bookmark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bookmark = bookmark
}

// unsave notes that the bookmark could not be moved.
func (t *ldmpTable) unsave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirty = true
}

// count is how many records were published in this iteration, and when the last
// was logged.
func (t *ldmpTable) count() (int64, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.records, t.position
}
