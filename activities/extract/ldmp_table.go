package extract

import (
	"cmp"
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
	slug           string // of the station
	station, table string // as the server names them
	offset         pipeline.UTCOffset

	mu       sync.Mutex
	bookmark pipeline.Bookmark
	position time.Time // the latest of what is published
	last     ldmpState // the last record that is published
	dirty    bool      // the bookmark is behind
	begins   bool      // nothing of it came yet over this connection
	newest   time.Time // the latest clock that is in the stream over this connection
	sequence uint64    // the last number there of that clock
	highest  uint64    // the last number there of any clock
	records  int64     // published in this iteration
}

// ldmpState stands beside the position in a bookmark: the record that was
// published last, where the next connection begins. Its time may lie before the
// position, if the logger's clock was set back.
type ldmpState struct {
	Time   string `json:"time"` // the logger's clock, as sent
	Number int64  `json:"record_number"`
	// Digest is of the message without its time of import. It tells apart what a
	// logger recorded anew under the same time and number.
	Digest string `json:"digest"`
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
	t.begins, t.newest, t.sequence, t.highest = true, time.Time{}, 0, 0
	if clock, err := ldmp.ParseClock(t.last.Time); err == nil {
		return ldmp.AtTime(clock)
	}
	backfill := cmp.Or(spec.Backfill, defaultLdmpBackfill).Std()
	switch spec.StartOption {
	case ldmp.StartAtOldest:
		return ldmp.AtOldest()
	case ldmp.StartAtNewest:
		return ldmp.AtNewest()
	case ldmp.StartRelativeToNewest:
		return ldmp.RelativeToNewest(backfill)
	}
	at := spec.Start
	if at.IsZero() {
		at = now.Add(-backfill)
	}
	return ldmp.AtTime(ldmp.ClockAt(at, t.offset.Std()))
}

// repeats reports whether a record is the one that was published last, word by word,
// with which a connection begins. A later record is never taken for it: if the last
// one had corrected another of the same time, then that one comes again before it,
// and the correction has to follow. If it is that one with other content, then
// changed is the digest of what it was.
func (t *ldmpTable) repeats(state ldmpState) (repeats bool, changed string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begins := t.begins
	t.begins = false
	switch {
	case !begins || state.Number != t.last.Number || state.Time != t.last.Time:
		return false, ""
	case state.Digest != t.last.Digest:
		return false, t.last.Digest
	}
	return true, ""
}

// follows says whether a record is in the stream behind those of its time that came
// before it over this connection. When a record and its correction are read once
// more, the stream may have forgotten the record and not yet the correction: it
// stores the one and drops the other, and the old value would be the last. So may it
// have refused the record for a moment, and not the correction. What does not follow
// has to be published again, behind the number last; [ldmpTable.moved] notes where.
func (t *ldmpTable) follows(clock time.Time, sequence uint64) (last uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case clock.After(t.newest): // nothing of its time came before it
		t.newest, t.sequence = clock, sequence
	case clock.Equal(t.newest) && sequence < t.sequence:
		return t.sequence, false
	case clock.Before(t.newest) && sequence < t.highest:
		return t.highest, false // what came before it of its time is not known any more
	case clock.Equal(t.newest):
		t.sequence = sequence
	}
	t.highest = max(t.highest, sequence)
	return 0, true
}

// moved notes the place of what was published again. It may have a lower number than
// what came before it, in a stream that was made anew.
func (t *ldmpTable) moved(clock time.Time, sequence uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.highest = sequence
	if clock.Equal(t.newest) {
		t.sequence = sequence
	}
}

// published notes that a record is durable. One whose time is out of range, in the
// future or far in the past, is not where the next connection begins: everything
// until then would be passed over, or read again.
func (t *ldmpTable) published(state ldmpState, clock, now time.Time) (outOfRange bool) {
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
	t.last = state
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

// place is the record where the next connection begins.
func (t *ldmpTable) place() ldmpState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// count is how many records were published in this iteration, and when the last
// was logged.
func (t *ldmpTable) count() (int64, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.records, t.position
}
