package ldmptest

import (
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
)

// series is a table of a station with what was done to it. Its records are
// counted from 0, whatever their numbers are.
type series struct {
	station Station
	table   Table

	replaced map[int64][]byte
	holes    []*Hole

	sent, acknowledged int64
	sentRecords        map[int64]int // how often, with Options.Ledger
	ackedRecords       map[int64]int
}

// Hole is a range of records that the server was not able to collect yet.
type Hole struct {
	server   *Server
	from, to int64 // the first, and the one after the last
	state    holeState
}

type holeState int

const (
	holeOpen   holeState = iota // may still be collected
	holeFilled                  // was collected
	holeLost                    // is given up
)

// Fill has the server collect what was missing.
func (h *Hole) Fill() { h.server.change(func() { h.state = holeFilled }) }

// GiveUp has the server no longer try; clients never get these records.
func (h *Hole) GiveUp() { h.server.change(func() { h.state = holeLost }) }

// timeOf is the moment of a record.
func (s *series) timeOf(index int64) time.Time {
	return s.table.Since.Add(time.Duration(index) * s.table.Interval).UTC()
}

// firstAt is the first record at or after a moment.
func (s *series) firstAt(at time.Time) int64 {
	since := at.Sub(s.table.Since)
	if since <= 0 {
		return 0
	}
	return int64((since + s.table.Interval - 1) / s.table.Interval)
}

// newest is the last record at a moment, -1 if there is none.
func (s *series) newest(now time.Time) int64 {
	since := now.Sub(s.table.Since)
	if since < 0 {
		return -1
	}
	return int64(since / s.table.Interval)
}

func (s *series) oldest(now time.Time) int64 {
	if s.table.Memory <= 0 {
		return 0
	}
	return max(0, s.newest(now)-s.table.Memory+1)
}

func (s *series) reading(seed uint64, index int64) Reading {
	number := index
	if s.table.ResetEvery > 0 {
		number %= s.table.ResetEvery
	}
	return readingAt(seed, s.station, s.table, number, s.timeOf(index))
}

func (s *series) frame(seed uint64, index int64) []byte {
	if frame, found := s.replaced[index]; found {
		return frame
	}
	return Encode(s.reading(seed, index).Record())
}

// hole is the hole that a record is in, or nil.
func (s *series) hole(index int64) *Hole {
	for _, h := range s.holes {
		if index >= h.from && index < h.to {
			return h
		}
	}
	return nil
}

// cursor is how far a connection is with a table.
type cursor struct {
	*series
	order ldmp.Order
	next  int64
	late  []*Hole // passed over while open, for the order of collection
}

// begin places a cursor where a start option says.
func (c *cursor) begin(start startOption, now time.Time) {
	switch start.kind {
	case ldmp.StartAtNewest:
		c.next = c.newest(now)
	case ldmp.StartAtTime:
		c.next = c.firstAt(ldmp.At(start.clock, c.station.UTCOffset))
	case ldmp.StartRelativeToNewest:
		c.next = c.firstAt(c.timeOf(max(0, c.newest(now))).Add(-start.back))
	default:
		c.next = 0
	}
	c.next = max(c.next, c.oldest(now))
}

// take gives the next record that can be sent, if any.
func (c *cursor) take(now time.Time) (index int64, ok bool) {
	for i, hole := range c.late {
		if hole.state == holeFilled {
			c.late = slices.Delete(c.late, i, i+1)
			return c.rewind(hole)
		}
	}
	for c.next <= c.newest(now) {
		hole := c.hole(c.next)
		switch {
		case hole == nil || hole.state == holeFilled:
			c.next++
			return c.next - 1, true
		case hole.state == holeLost:
			c.next = hole.to
		case c.order == ldmp.Collected:
			c.late = append(c.late, hole)
			c.next = hole.to
		default:
			return 0, false
		}
	}
	return 0, false
}

// rewind goes back to the records of a hole that is filled now. A client of the
// order of collection gets what comes after them once more.
func (c *cursor) rewind(hole *Hole) (int64, bool) {
	c.next = hole.from + 1
	return hole.from, true
}
