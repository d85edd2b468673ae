// Package recurrence computes when a recurring job starts: on an interval, or at
// the times of a cron text in a time zone.
//
// Its times are those that a Temporal Schedule of the same calendars has, also near
// the transitions of a zone. The words for these are those of java.time: in a gap
// clocks skip local times, in an overlap they show them twice.
package recurrence
