package check_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/soak/check"
	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

const second = time.Second

var (
	epoch   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	kill    = ledger.Fault{Kind: ledger.FaultKill, Target: "w1.1", From: 4100 * time.Millisecond, To: 4200 * time.Millisecond}
	someJob = ledger.Recurring{Job: "r", Every: 10 * second, Offset: 3 * second, From: epoch}
)

// call writes down one call of a handler: a begin, a step each second, and an end
// unless it is "". The cursor goes on from the one that was given.
func call(begin ledger.Work, at, steps int, end ledger.What) []ledger.Work {
	begin.What, begin.At, begin.Heartbeat = ledger.Begin, time.Duration(at)*second, 5*second
	if begin.Process == "" {
		begin.Process = "w1.1"
	}
	lines := []ledger.Work{begin}
	for n := range steps {
		at++
		lines = append(lines, ledger.Work{What: ledger.Step, At: time.Duration(at) * second, Attempt: begin.Attempt, Cursor: begin.Cursor + int64(n) + 1})
	}
	if end != "" {
		lines = append(lines, ledger.Work{What: end, At: time.Duration(at)*second + 1, Attempt: begin.Attempt})
	}
	return lines
}

func queued(attempt, job, run string) ledger.Work {
	return ledger.Work{Attempt: attempt, Job: job, Run: run, Mode: "queued", Queue: "q"}
}

func looping(attempt, run string, given int64) ledger.Work {
	return ledger.Work{Attempt: attempt, Job: "l", Run: run, Mode: "continuous", Cursor: given}
}

func due(at int) ledger.Run {
	t := epoch.Add(time.Duration(at) * second)
	return ledger.Run{ID: "due-" + t.Format("05"), Due: t, Started: t, Status: "completed"}
}

func recurringWork(run string, at, steps int) []ledger.Work {
	return call(ledger.Work{Attempt: "try-" + run, Job: "r", Run: run, Mode: "recurring"}, at, steps, ledger.Done)
}

// sound is a ledger without a violation: three items of two producers, a one-shot, a
// loop and a recurring job with a run and two starts that are explained.
func sound() *book {
	return &book{check.Book{
		Start: ledger.Start{Wall: epoch},
		Calls: []ledger.Call{
			{At: 1, Producer: "p1", Queue: "q", Jobs: []string{"a", "b"}}, {At: 2, Acked: true, Producer: "p1", Queue: "q", Jobs: []string{"a", "b"}},
			{At: 3, Producer: "p2", Queue: "q", Jobs: []string{"c"}}, {At: 4, Acked: true, Producer: "p2", Queue: "q", Jobs: []string{"c"}},
			{At: 5, Producer: "p3", Jobs: []string{"o"}}, {At: 6, Acked: true, Producer: "p3", Jobs: []string{"o"}},
		},
		Work: slices.Concat(
			call(queued("1", "a", "run-a"), 1, 1, ledger.Done), call(queued("2", "b", "run-b"), 3, 1, ledger.Done),
			call(queued("3", "c", "run-c"), 5, 1, ledger.Done),
			call(ledger.Work{Attempt: "4", Job: "o", Run: "run-o", Mode: "one-shot"}, 1, 1, ledger.Done),
			call(looping("5", "loop/1", 0), 1, 10, ledger.Done), call(looping("6", "loop/2", 10), 12, 1, ledger.Stopped),
			recurringWork("due-13", 13, 2),
		),
		Faults: []ledger.Fault{{Kind: ledger.FaultKill, Target: ledger.StackTarget, From: 100 * second, To: 110 * second}},
		Verbs: []ledger.Verb{
			{Name: "pause", Target: "r", From: second, To: 2 * second, OK: true}, {Name: "resume", Target: "r", From: 5 * second, To: 6 * second, OK: true},
		},
		Recurring: []ledger.Recurring{someJob},
		Samples: []ledger.Sample{{
			Job: "r", From: epoch, Until: epoch.Add(25 * second), Runs: []ledger.Run{due(13)},
			Missed: []ledger.Missed{{Due: epoch.Add(3 * second), Reason: "paused"}, {Due: epoch.Add(23 * second), Reason: "overlap"}},
		}},
	}}
}

// book is a ledger to plant violations in.
type book struct{ check.Book }

// drop takes a line of an attempt out.
func (b *book) drop(attempt string, what ledger.What) {
	b.Work = slices.DeleteFunc(b.Work, func(w ledger.Work) bool { return w.Attempt == attempt && w.What == what })
}

// swap has the lines of two jobs change places.
func (b *book) swap(one, other string) {
	for n, line := range b.Work {
		switch line.Job {
		case one:
			b.Work[n].Job = other
		case other:
			b.Work[n].Job = one
		}
	}
}

// given changes the cursor that an attempt was given.
func (b *book) given(attempt string, cursor int64) {
	n := slices.IndexFunc(b.Work, func(w ledger.Work) bool { return w.Attempt == attempt })
	b.Work[n].Cursor = cursor
}

// timeout is what the starter says of a command that was not answered.
const timeout = "starter: temporal at 127.0.0.1:7233 cannot be reached; is it running there? (no answer in time)"

// canceled puts in item d, which does not run, and cancels it.
func (b *book) canceled(failed bool, said string) {
	b.Calls = append(b.Calls, ledger.Call{At: 7, Acked: true, Producer: "p1", Queue: "q", Jobs: []string{"d"}})
	b.Verbs = append(b.Verbs, ledger.Verb{Name: "cancel", Target: "d", From: 19 * second, To: 20 * second, OK: !failed, Said: said})
}

// gaveWay lists a run of a start that gave way to another.
func (b *book) gaveWay(at, to int) {
	run := due(at)
	run.Status, run.Superseded = "superseded", due(to).Due
	b.Samples[0].Runs = append(b.Samples[0].Runs, run)
	b.Samples[0].Missed[1] = ledger.Missed{Due: run.Due, Reason: "superseded"}
}

// late lists a start 18 seconds after the end of the only run, with a reason.
func (b *book) late(at int, reason string) {
	b.Samples[0].Until = epoch.Add(time.Duration(at+2) * second)
	b.Samples[0].Missed = append(b.Samples[0].Missed[:1], ledger.Missed{Due: due(23).Due, Reason: "overlap"}, ledger.Missed{Due: due(at).Due, Reason: reason})
}

// behind has a start of second 33 that is listed as an overlap, twelve seconds after the run of
// second 13. The next run is made so many seconds late.
func (b *book) behind(late int) {
	b.late(33, "overlap")
	next := due(43)
	next.Started = next.Started.Add(time.Duration(late) * second)
	b.Samples[0].Until, b.Samples[0].Runs = next.Started.Add(2*second), append(b.Samples[0].Runs, next)
	b.Work = slices.DeleteFunc(b.Work, func(w ledger.Work) bool { return w.Run == "due-13" })
	b.Work = slices.Concat(b.Work, recurringWork("due-13", 13, 8), recurringWork("due-43", 43+late, 1))
}

// resumed has the start of behind listed as one of a pause that ended twelve seconds before.
func (b *book) resumed(late int) {
	b.behind(late)
	b.Samples[0].Missed[2].Reason = "paused"
	b.Verbs = append(b.Verbs,
		ledger.Verb{Name: "pause", Target: "r", From: 17 * second, To: 18 * second, OK: true}, ledger.Verb{Name: "resume", Target: "r", From: 20 * second, To: 21 * second, OK: true})
}

// stoppedUnbegun lists a run of second 33 that has no handler, and was stopped or is
// waiting.
func (b *book) stoppedUnbegun(stopped bool) {
	run := due(33)
	run.Status = "waiting"
	if stopped {
		run.Status, run.Ended = "canceled", epoch.Add(45*second)
		b.Verbs = append(b.Verbs, ledger.Verb{Name: "stop", Target: "r", From: 44 * second, To: 45 * second, OK: true})
	}
	b.Samples[0].Runs = append(b.Samples[0].Runs, run)
}

// again lists the first run once more, with a change.
func (b *book) again(change func(*ledger.Run)) {
	run := b.Samples[0].Runs[0]
	change(&run)
	b.Samples[0].Runs = append(b.Samples[0].Runs, run)
}

func TestSoundLedgerHasNoViolation(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*book){
		"as it is": func(*book) {},
		"an attempt after one that was killed": func(b *book) {
			b.Work = slices.Concat(b.Work, call(queued("7", "d", "run-d"), 7, 2, ""), call(queued("8", "d", "run-d"), 20, 1, ledger.Done))
			b.Calls = append(b.Calls, ledger.Call{At: 7, Producer: "p1", Queue: "q", Jobs: []string{"d"}})
		},
		"an attempt that finds its lease lost while the next is at work": func(b *book) {
			b.Work = slices.Concat(b.Work, call(looping("7", "loop/3", 11), 20, 2, ""), call(looping("8", "loop/3", 11), 30, 2, ledger.Done),
				[]ledger.Work{{What: ledger.Lost, At: 31 * second, Attempt: "7"}})
			b.Faults = append(b.Faults, ledger.Fault{Kind: ledger.FaultFreeze, Target: "w1.1", From: 22 * second, To: 31 * second})
		},
		"a handler that returned right before its process was killed": func(b *book) {
			b.Work = append(b.Work, call(queued("7", "b", "run-b"), 7, 1, ledger.Done)...)
			b.Faults = append(b.Faults, kill)
		},
		"a loop that was stopped and started again": func(b *book) {
			b.Work = append(b.Work, call(looping("7", "other/1", 11), 20, 1, ledger.Done)...)
		},
		"an item that failed and halted its queue, and its second run": func(b *book) {
			b.Calls = append(b.Calls, ledger.Call{At: 7, Producer: "p1", Queue: "q", Jobs: []string{"d"}})
			b.Work = slices.Concat(b.Work, call(queued("7", "d", "run-d"), 7, 1, ledger.Final),
				call(ledger.Work{Attempt: "8", Job: "d", Run: "again", Mode: "queued", Queue: "q", Cursor: 1}, 9, 1, ledger.Done))
		},
		"an item that was canceled and never ran": func(b *book) {
			b.Calls = append(b.Calls, ledger.Call{At: 7, Acked: true, Producer: "p1", Queue: "q", Jobs: []string{"d"}})
			b.Verbs = append(b.Verbs, ledger.Verb{Name: "cancel", Target: "d", To: 20, OK: true})
		},
		"a run that was stopped": func(b *book) {
			b.Samples[0].Runs[0].Status = "canceled"
			b.Verbs = append(b.Verbs, ledger.Verb{Name: "stop", Target: "r", From: 14 * second, To: 14 * second, OK: true})
		},
		"a cancel of an item that was not answered": func(b *book) { b.canceled(true, timeout) },
		"a cancel that the server did not answer": func(b *book) {
			b.canceled(true, "starter: temporal at 127.0.0.1:7233 does not answer this call, though it answered others")
		},
		"an item whose run was stopped before a worker began with it": func(b *book) {
			b.canceled(false, "")
			b.Verbs[len(b.Verbs)-1].Running = true
		},
		"an item that was stopped while it ran": func(b *book) {
			b.canceled(false, "")
			b.Work = append(b.Work, call(queued("7", "d", "run-d"), 8, 1, ledger.Stopped)...)
			b.Verbs[len(b.Verbs)-1].Running = true
		},
		"a pause that began before an outage, and whose resume was not answered": func(b *book) {
			b.Verbs[1].OK, b.Verbs[1].Said = false, timeout
			b.Samples[0].Missed[1].Reason = "paused"
		},
		"a start right after a resume": func(b *book) {
			b.Verbs[0].To, b.Verbs[1].From, b.Verbs[1].To = second, second, 2*second
		},
		"a start that came while a run waited for a worker that was killed": func(b *book) {
			b.drop("try-due-13", ledger.Done)
			b.Samples[0].Runs[0].Status = "running"
			b.Samples[0].Until = epoch.Add(35 * second)
			b.Samples[0].Missed = append(b.Samples[0].Missed, ledger.Missed{Due: epoch.Add(33 * second), Reason: "overlap"})
		},
		"a start that came while a run waited that was stopped before it had a handler": func(b *book) {
			b.late(43, "overlap")
			b.stoppedUnbegun(true)
		},
		"a start twelve seconds after a run, and the next run was made late":    func(b *book) { b.behind(2) },
		"a start twelve seconds after a resume, and the next run was made late": func(b *book) { b.resumed(2) },
		"a run that gave way to that of an earlier start": func(b *book) {
			b.gaveWay(23, 13)
		},
		"a soak of full length": func(b *book) {
			b.Start.Took, b.Start.OneShots = 8*time.Minute, 1
		},
		"a start next to a change of the definition": func(b *book) {
			b.Recurring[0].Changing = true
			b.Samples[0].From, b.Samples[0].Missed = epoch.Add(4*second), b.Samples[0].Missed[1:]
		},
		"a reason that another sample has": func(b *book) {
			b.Samples = append(b.Samples, ledger.Sample{
				Job: "r", From: epoch, Until: epoch.Add(9 * second), Missed: []ledger.Missed{{Due: epoch.Add(3 * second), Reason: "unknown"}},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sound()
			change(b)
			r, err := b.Check()
			require.NoError(t, err)
			require.Empty(t, r.Violations)
		})
	}
}

func TestPlantedViolationsAreFound(t *testing.T) {
	t.Parallel()
	for name, planted := range map[string]struct {
		change    func(*book)
		invariant check.Invariant
		says      string
	}{
		"an item was lost": {func(b *book) {
			b.Calls = append(b.Calls, ledger.Call{At: 7, Acked: true, Producer: "p1", Queue: "q", Jobs: []string{"d"}})
		}, check.Once, "job d was acknowledged"},
		"a one-shot began and never ended": {func(b *book) { b.drop("4", ledger.Done) }, check.Once, "job o was acknowledged"},
		"an item has two runs": {func(b *book) {
			again := queued("7", "b", "other")
			again.Cursor = 1
			b.Work = append(b.Work, call(again, 7, 1, ledger.Done)...)
		}, check.Once, "job b has two runs"},
		"a one-shot ran again after it was done": {func(b *book) {
			b.Work = append(b.Work, call(ledger.Work{Attempt: "7", Job: "o", Run: "run-o", Mode: "one-shot", Cursor: 1}, 9, 1, ledger.Done)...)
		}, check.Once, "job o ran again"},
		"an item ran again after its worker was asked to end": {func(b *book) {
			term := kill
			term.Kind = ledger.FaultTerm
			b.Faults = append(b.Faults, term)
			again := queued("7", "b", "run-b")
			again.Cursor = 1
			b.Work = append(b.Work, call(again, 7, 0, ledger.Done)...)
		}, check.Once, "job b ran again"},
		"nobody put it in": {func(b *book) {
			b.Work = append(b.Work, call(queued("7", "x", "run-x"), 7, 1, ledger.Done)...)
		}, check.Once, "nobody had put it in"},
		"an item ran after it was taken out": {func(b *book) {
			b.Verbs = append(b.Verbs, ledger.Verb{Name: "cancel", Target: "c", To: 4 * second, OK: true})
		}, check.Once, "was taken out of queue q"},
		"an item overtook that of its producer": {func(b *book) { b.swap("a", "b") }, check.Order, "job b began at"},
		"an item overtook one that was in":      {func(b *book) { b.swap("b", "c") }, check.Order, "job c began at"},
		"a halted queue went on": {func(b *book) {
			b.drop("1", ledger.Done)
			b.Work = slices.Concat(b.Work, []ledger.Work{{What: ledger.Final, At: 2*second + 1, Attempt: "1"}},
				call(ledger.Work{Attempt: "7", Job: "a", Run: "again", Mode: "queued", Queue: "q", Cursor: 1}, 7, 1, ledger.Done))
		}, check.Order, "halts its queue"},
		"two items of a queue at once": {func(b *book) {
			b.Calls = append(b.Calls, ledger.Call{At: 7, Producer: "p1", Queue: "q", Jobs: []string{"d"}})
			b.Work = append(b.Work, call(queued("7", "d", "run-d"), 5, 3, ledger.Done)...)
		}, check.Queues, "began beside"},
		"two attempts of a loop at once": {func(b *book) {
			b.Work = append(b.Work, call(looping("7", "loop/2", 10), 11, 0, "")...)
		}, check.Loops, "began beside"},
		"an attempt began within a longer one, and another after it": {func(b *book) {
			b.Work = slices.Concat(b.Work, call(looping("7", "loop/3", 11), 20, 20, ""), call(looping("8", "loop/4", 25), 22, 0, ledger.Stopped),
				call(looping("9", "loop/5", 25), 30, 0, ledger.Stopped))
		}, check.Loops, "attempt 9 (run loop/5"},
		"two runs of a recurring job at once": {func(b *book) {
			b.Samples[0].Runs = append(b.Samples[0].Runs, due(23))
			b.Samples[0].Missed = b.Samples[0].Missed[:1]
			b.Work = append(b.Work, recurringWork("due-23", 14, 1)...)
		}, check.Overlap, "began beside"},
		"two attempts of a one-shot at once": {func(b *book) {
			b.drop("4", ledger.Done)
			b.Work = append(b.Work, call(ledger.Work{Attempt: "7", Job: "o", Run: "run-o", Mode: "one-shot"}, 1, 2, ledger.Done)...)
		}, check.OneShot, "began beside"},
		"a start has no run and no reason": {func(b *book) { b.Samples[0].Missed = b.Samples[0].Missed[1:] }, check.Starts, `the reason listed is ""`},
		"a start has the reason unknown":   {func(b *book) { b.Samples[0].Missed[1].Reason = "unknown" }, check.Starts, `the reason listed is "unknown"`},
		"a start is not accounted for": {func(b *book) {
			b.Samples[0].From = epoch.Add(4 * second)
			b.Samples[0].Missed = b.Samples[0].Missed[1:]
		}, check.Starts, "is not accounted for"},
		"nothing is told of a job":        {func(b *book) { b.Samples = nil }, check.Starts, "did not tell"},
		"a start has two runs":            {func(b *book) { b.again(func(r *ledger.Run) { r.ID = "twice" }) }, check.Starts, "has 2 runs"},
		"a start came late":               {func(b *book) { b.Samples[0].Runs[0].Started = epoch.Add(3 * time.Minute) }, check.Starts, "late"},
		"a run is completed without work": {func(b *book) { b.drop("try-due-13", ledger.Done) }, check.Starts, "no handler returned for it"},
		"a run failed":                    {func(b *book) { b.Samples[0].Runs[0].Status = "failed" }, check.Starts, "is failed"},
		"a run was canceled, and a stop was refused": {func(b *book) {
			b.Samples[0].Runs[0].Status = "canceled"
			b.Verbs = append(b.Verbs, ledger.Verb{Name: "stop", Target: "r", From: 14 * second, To: 14 * second, Said: "it has no run now"})
		}, check.Starts, "nobody asked"},
		"a run was canceled before its job was stopped": {func(b *book) {
			b.Samples[0].Runs[0].Status, b.Samples[0].Runs[0].Ended = "canceled", epoch.Add(15*second)
			b.Verbs = append(b.Verbs, ledger.Verb{Name: "stop", Target: "r", From: 16 * second, To: 17 * second, OK: true})
		}, check.Starts, "nobody asked"},
		"a run was canceled after its job was stopped": {func(b *book) {
			b.Samples[0].Runs[0].Status = "canceled"
			b.Verbs = append(b.Verbs, ledger.Verb{Name: "stop", Target: "r", From: 11 * second, To: 12 * second, OK: true})
		}, check.Starts, "nobody asked"},
		"an item never ran, and its cancel was refused":                                   {func(b *book) { b.canceled(true, "it is not in queue q") }, check.Once, "never done"},
		"a start is paused without a pause":                                               {func(b *book) { b.Verbs = b.Verbs[1:] }, check.Starts, `is "paused", and the ledger`},
		"a start is paused by a refused pause":                                            {func(b *book) { b.Verbs[0].OK = false }, check.Starts, `is "paused", and the ledger`},
		"a start is paused before its pause":                                              {func(b *book) { b.Verbs[0].From = 4 * second }, check.Starts, `is "paused", and the ledger`},
		"a start is paused long after a resume":                                           {func(b *book) { b.Samples[0].Missed[1].Reason = "paused" }, check.Starts, `is "paused", and the ledger`},
		"a start is an overlap without a run":                                             {func(b *book) { b.Samples[0].Missed[0].Reason = "overlap" }, check.Starts, `is "overlap", and the ledger`},
		"a start is an overlap twelve seconds after a run, and the next was made in time": {func(b *book) { b.behind(0) }, check.Starts, `is "overlap", and the ledger`},
		"a start is paused twelve seconds after a resume, and the next was made in time":  {func(b *book) { b.resumed(0) }, check.Starts, `is "paused", and the ledger`},
		"a start is an overlap long after a run":                                          {func(b *book) { b.late(33, "overlap") }, check.Starts, `is "overlap", and the ledger`},
		"a start is an overlap with a run that nobody began": {func(b *book) {
			b.late(43, "overlap")
			b.stoppedUnbegun(false)
		}, check.Starts, `is "overlap", and the ledger`},
		"a run gave way to none":       {func(b *book) { b.gaveWay(33, 13); b.late(33, "superseded") }, check.Starts, `is "superseded", and the ledger`},
		"an invariant was not checked": {func(b *book) { b.Faults, b.Verbs, b.Samples[0].Missed[0].Reason = nil, nil, "skipped" }, check.AsAsked, "went on after the faults"},
		"the stack was not killed": {func(b *book) {
			b.Start.Took, b.Faults[0].Kind = 8*time.Minute, ledger.FaultFreeze
		}, check.AsAsked, "not killed"},
		"there were too few one-shots": {func(b *book) {
			b.Start.Took, b.Start.OneShots = 8*time.Minute, 2
		}, check.AsAsked, "1 one-shots were acknowledged, of 2"},
		"a run was canceled by nobody": {func(b *book) { b.Samples[0].Runs[0].Status = "canceled" }, check.Starts, "nobody asked"},
		"a run is in no list":          {func(b *book) { b.Work = append(b.Work, recurringWork("unheard", 24, 0)...) }, check.Starts, "in no list"},
		"a loop that was started again lost its cursor": {func(b *book) {
			b.Work = append(b.Work, call(looping("7", "other/1", 0), 20, 1, ledger.Done)...)
		}, check.Cursors, "was given position 0"},
		"a cursor went back":                {func(b *book) { b.given("6", 0) }, check.Cursors, "was given position 0"},
		"a cursor was invented":             {func(b *book) { b.given("6", 11) }, check.Cursors, "none before it was beyond 10"},
		"a cursor that heartbeats had left": {func(b *book) { b.drop("5", ledger.Done); b.given("6", 3) }, check.Cursors, "had left 4 for certain"},
		"a cursor went back after a fault": {func(b *book) {
			b.Work = slices.Concat(b.Work, call(looping("7", "loop/3", 11), 14, 0, ""), call(looping("8", "loop/3", 10), 30, 0, ""))
		}, check.Cursors, "was given position 10"},
		"the cursor of a failed try was lost": {func(b *book) {
			b.Work = slices.Concat(b.Work, call(looping("7", "loop/3", 11), 14, 1, ledger.Failed), call(looping("8", "loop/4", 11), 30, 0, ""))
		}, check.Cursors, "had left 12 for certain"},
		"something did not go on": {func(b *book) {
			b.Troubles = append(b.Troubles, ledger.Trouble{Text: "the stack did not come back"})
		}, check.GoesOn, "did not come back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sound()
			planted.change(b)
			r, err := b.Check()
			require.NoError(t, err)
			require.NotEmpty(t, r.Violations[planted.invariant], "%v", r.Violations)
			require.Contains(t, strings.Join(r.Violations[planted.invariant], "\n"), planted.says)
			for other := range r.Violations {
				require.Equal(t, planted.invariant, other, "%v", r.Violations)
			}
			var text bytes.Buffer
			require.NoError(t, b.Write(&text, r))
			require.Contains(t, text.String(), planted.says)
		})
	}
}

func TestLinesWithoutABeginAreRefused(t *testing.T) {
	t.Parallel()
	b := sound()
	b.Work = append(b.Work, ledger.Work{What: ledger.Step, Attempt: "x"})
	_, err := b.Check()
	require.ErrorContains(t, err, `attempt "x"`)
}

// A ledger that processes have written is read without the line that a kill cut off.
func TestLedgerOfKilledProcess(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	start, err := ledger.Open(filepath.Join(folder, ledger.StartFile))
	require.NoError(t, err)
	require.NoError(t, start.Add(ledger.Start{Seed: 7}))
	for _, process := range []string{"w1.1", "w1.2"} {
		book, err := ledger.Open(filepath.Join(folder, "work-"+process+".jsonl"))
		require.NoError(t, err)
		for _, line := range call(queued(process, "a", "run-a"), 1, 1, "") {
			require.NoError(t, book.Add(line))
		}
		require.NoError(t, book.Close())
	}
	first := filepath.Join(folder, "work-w1.1.jsonl")
	text, err := os.ReadFile(first)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(first, append(text, `{"what":"st`...), 0o600))
	b, err := check.Load(folder)
	require.NoError(t, err)
	require.Len(t, b.Work, 4)
	require.EqualValues(t, 7, b.Start.Seed)

	_, err = check.Load(t.TempDir())
	require.ErrorContains(t, err, "no ledger")
}
