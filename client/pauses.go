package client

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// A schedule keeps nothing of its pauses but a note. So the note that a pause or
// a resume leaves says when that was, and when the pauses before were:
//
//	vendor maintenance; paused at 2026-05-01T12:00:00.000Z (before: 2026-04-01T08:00:00.000Z/2026-04-01T09:00:00.000Z)

// pauseSpan is a time in which a schedule was paused.
type pauseSpan struct {
	from time.Time
	to   time.Time // zero: it is paused still
}

func (s pauseSpan) covers(at time.Time) bool {
	return !at.Before(s.from) && (s.to.IsZero() || at.Before(s.to))
}

const (
	// maxPauseSpans bounds the pauses that a note tells of: the latest.
	maxPauseSpans = 8
	// pauseTime is the layout of the times.
	pauseTime = "2006-01-02T15:04:05.000Z07:00"
	// maxPauseReason bounds the bytes of a reason: the server takes notes of 1,000.
	maxPauseReason = 500
)

var (
	noteTail = regexp.MustCompile(`; (paused|resumed) at (\S+?)(?: \(before: ([^)]*)\))?$`)
	// pausedAt is how the notes of pauses after failures tell the time.
	pausedAt = regexp.MustCompile(`; paused at (\S+?),`)
)

// readNote gives the reason in a schedule's note and the pauses that it tells of,
// the latest first.
func readNote(note string, paused bool) (reason string, spans []pauseSpan) {
	tail := noteTail.FindStringSubmatchIndex(note)
	if tail == nil {
		if after := pausedAt.FindStringSubmatch(note); after != nil && paused {
			if from, err := time.Parse(time.RFC3339, after[1]); err == nil {
				spans = append(spans, pauseSpan{from: from})
			}
		}
		return note, spans
	}
	if from, err := time.Parse(time.RFC3339, note[tail[4]:tail[5]]); err == nil && paused && note[tail[2]:tail[3]] == "paused" {
		spans = append(spans, pauseSpan{from: from})
	}
	if tail[6] >= 0 {
		for text := range strings.SplitSeq(note[tail[6]:tail[7]], ", ") {
			first, second, _ := strings.Cut(text, "/")
			from, errFrom := time.Parse(time.RFC3339, first)
			to, errTo := time.Parse(time.RFC3339, second)
			if errFrom == nil && errTo == nil {
				spans = append(spans, pauseSpan{from: from, to: to})
			}
		}
	}
	return note[:tail[0]], spans
}

// writeNote is the note of a schedule that is paused or resumed now, in place of
// another note.
func writeNote(reason string, paused bool, before string, wasPaused bool, now time.Time) string {
	_, spans := readNote(before, wasPaused)
	at := now.UTC().Truncate(time.Millisecond)
	switch open := len(spans) > 0 && spans[0].to.IsZero(); {
	case open && paused:
		at = spans[0].from // For another reason.
		spans = spans[1:]
	case open && at.After(spans[0].from):
		spans[0].to = at
	case open:
		spans = spans[1:] // It was too short to tell.
	}
	var past []string
	for _, span := range spans[:min(len(spans), maxPauseSpans)] {
		past = append(past, span.from.Format(pauseTime)+"/"+span.to.Format(pauseTime))
	}
	done := map[bool]string{true: "paused", false: "resumed"}[paused]
	note := fmt.Sprintf("%s; %s at %s", job.Cut(reason, maxPauseReason), done, at.Format(pauseTime))
	if len(past) > 0 {
		note += " (before: " + strings.Join(past, ", ") + ")"
	}
	return note
}

// addReason is the reason of a pause of what was paused already: whoever resumes
// it has to know of all. A pause of the system's own, since the job failed, becomes
// one of the person who pauses it.
func addReason(before, reason string) string {
	if before == "" || workflows.PausedForFailures(before) {
		return reason
	}
	reason = job.Cut(reason, maxPauseReason) // As the note has it.
	// A reason may be several itself.
	if reason == "" || strings.Contains(workflows.AlsoFor+before+workflows.AlsoFor, workflows.AlsoFor+reason+workflows.AlsoFor) {
		return before
	}
	reasons := append(strings.Split(before, workflows.AlsoFor), reason)
	all := strings.Join(reasons, workflows.AlsoFor)
	for len(all) > maxPauseReason && len(reasons) > 1 {
		reasons = reasons[1:] // The note has room for the latest.
		all = "…" + workflows.AlsoFor + strings.Join(reasons, workflows.AlsoFor)
	}
	return all
}
