package readmodel

import (
	"cmp"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// letters are what runs are shown as.
var letters = func() map[client.RunStatus]byte {
	all := map[client.RunStatus]byte{}
	for _, status := range client.RunStatuses() {
		all[status] = verbs.Letter(EnumOf[jobsv1.RunStatus](status))[0]
	}
	return all
}()

// Letters that decide something.
var (
	completed  = letters[client.RunCompleted]
	failed     = letters[client.RunFailed]
	heldBack   = letters[client.RunHeldBack]
	running    = letters[client.RunRunning]
	superseded = letters[client.RunSuperseded]
	waiting    = letters[client.RunWaiting]
)

// outcome is how a run went. Times are in nanoseconds since 1970: there are many of them.
type outcome struct {
	runID     string
	workflow  string // of a run under way
	started   int64
	scheduled int64
	took      int64
	letter    byte
	// instead is the start that the run gave way to, or until when it was held back.
	instead    int64
	definition string // its hash
}

// open reports whether the run has not ended.
func (o outcome) open() bool { return o.letter == running || o.letter == waiting }

// outcomes are the latest runs of a job, by start.
type outcomes struct{ list []outcome }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// runs are the runs as an account of starts takes them.
func (o *outcomes) runs() []client.DefinedRun {
	runs := make([]client.DefinedRun, 0, len(o.list))
	for _, known := range o.list {
		run := client.DefinedRun{DefinitionHash: known.definition}
		run.RunID, run.Started = known.runID, time.Unix(0, known.started)
		if known.scheduled != 0 {
			run.Scheduled = time.Unix(0, known.scheduled)
		}
		if !known.open() {
			run.Ended = run.Started.Add(time.Duration(known.took))
		}
		switch known.letter {
		case heldBack:
			run.HeldUntil = time.Unix(0, known.instead)
		case superseded:
			run.SupersededBy = time.Unix(0, known.instead)
		}
		runs = append(runs, run)
	}
	return runs
}

// take notes a run, or what has become of it. What is older than all of the latest
// hundred is left out.
func (o *outcomes) take(run client.Run, definition string) {
	is := outcome{
		runID: run.RunID, started: nanos(run.Started), scheduled: nanos(run.Scheduled), took: int64(run.Took), letter: letters[run.Status],
		instead: nanos(later(run.HeldUntil, run.SupersededBy)), definition: definition,
	}
	if is.open() {
		is.workflow = run.WorkflowID
	}
	if n := slices.IndexFunc(o.list, func(known outcome) bool { return known.runID == is.runID }); n >= 0 {
		if is.open() && !o.list[n].open() {
			return // What the list says is older.
		}
		o.list = slices.Delete(o.list, n, n+1)
	}
	at, _ := slices.BinarySearchFunc(o.list, is.started, func(known outcome, started int64) int { return cmp.Compare(known.started, started) })
	for at < len(o.list) && o.list[at].started == is.started {
		at++
	}
	if at == 0 && len(o.list) >= maxOutcomes {
		return
	}
	o.list = slices.Insert(o.list, at, is)
	if len(o.list) > maxOutcomes {
		o.list = slices.Delete(o.list, 0, len(o.list)-maxOutcomes)
	}
}

// latestOpen is the latest run under way, nil if there is none.
func (o *outcomes) latestOpen() *client.RunFacts {
	for _, known := range slices.Backward(o.list) {
		if known.letter == running {
			return &client.RunFacts{RunRef: client.RunRef{WorkflowID: known.workflow, RunID: known.runID}, Started: time.Unix(0, known.started)}
		}
	}
	return nil
}

// latest is the latest run that did something.
func (o *outcomes) latest() client.LatestRun {
	for _, known := range slices.Backward(o.list) {
		for _, status := range client.RunStatuses() {
			if status.Did() && letters[status] == known.letter {
				return client.LatestRun{Status: status, Started: time.Unix(0, known.started)}
			}
		}
	}
	return client.LatestRun{}
}

// drop forgets a run.
func (o *outcomes) drop(runID string) {
	o.list = slices.DeleteFunc(o.list, func(known outcome) bool { return known.runID == runID })
}

// text has a letter for each run, and for each start that was missed, in the order of time.
// Beside each, durations have how long it took.
func (o *outcomes) text(missed []int64, median time.Duration) (text, durations string) {
	var lane lane
	for _, known := range o.list {
		at := known.scheduled
		if at == 0 {
			at = known.started
		}
		for len(missed) > 0 && missed[0] < at {
			lane.add(verbs.NoRun[0], 0, 0)
			missed = missed[1:]
		}
		lane.add(known.letter, time.Duration(known.took), median)
	}
	for range missed {
		lane.add(verbs.NoRun[0], 0, 0)
	}
	return lane.latest()
}

func (o *outcomes) median() time.Duration {
	var durations []time.Duration
	for _, known := range o.list {
		if known.letter == completed {
			durations = append(durations, time.Duration(known.took))
		}
	}
	return medianOf(durations)
}
