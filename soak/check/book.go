// Package check looks for what must not be in the ledger of a soak.
package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// Book is a whole ledger.
type Book struct {
	Start     ledger.Start
	Work      []ledger.Work
	Calls     []ledger.Call
	Faults    []ledger.Fault
	Verbs     []ledger.Verb
	Recurring []ledger.Recurring
	Samples   []ledger.Sample
	Troubles  []ledger.Trouble
}

// Load reads the ledger in a folder.
func Load(folder string) (b Book, err error) {
	var starts []ledger.Start
	err = errors.Join(
		read(folder, ledger.StartFile, &starts), read(folder, ledger.WorkFiles, &b.Work), read(folder, ledger.CallFile, &b.Calls),
		read(folder, ledger.FaultFile, &b.Faults), read(folder, ledger.VerbFile, &b.Verbs),
		read(folder, ledger.RecurringFile, &b.Recurring), read(folder, ledger.SampleFile, &b.Samples),
		read(folder, ledger.TroubleFile, &b.Troubles))
	if err == nil && len(starts) == 0 {
		err = fmt.Errorf("there is no ledger in %s: %s is missing or empty", folder, ledger.StartFile)
	}
	if err == nil {
		b.Start = starts[0]
	}
	return b, err
}

func read[T any](folder, pattern string, into *[]T) (err error) {
	*into, err = ledger.Read[T](folder, pattern)
	return err
}

// attempt is one call of a handler: its begin, and the lines that follow.
type attempt struct {
	ledger.Work
	lines []ledger.Work
}

// attempts puts the lines of handlers together, in the order of their begins. A
// line whose begin is missing is an error: nothing cuts off the middle of a file.
func (b Book) attempts() ([]*attempt, error) {
	byName := map[string]*attempt{}
	var all []*attempt
	lines := slices.Clone(b.Work)
	slices.SortStableFunc(lines, func(a, b ledger.Work) int { return cmp.Compare(a.At, b.At) })
	for _, line := range lines {
		a := byName[line.Attempt]
		switch {
		case line.What == ledger.Begin && a == nil:
			a = &attempt{Work: line}
			byName[line.Attempt], all = a, append(all, a)
		case line.What == ledger.Begin || a == nil:
			return nil, fmt.Errorf("the ledger has a line %q of attempt %q, which has not one begin before it", line.What, line.Attempt)
		default:
			a.lines = append(a.lines, line)
		}
	}
	return all, nil
}

// last is the latest time at which the attempt is known to have held its lease. A
// lease that was held then was held since the begin: one that has run out is not
// given back. After that the attempt may have been dead, frozen or cut off.
func (a *attempt) last() time.Duration {
	for _, line := range slices.Backward(a.lines) {
		if line.What != ledger.Lost {
			return line.At
		}
	}
	return a.At
}

// end is how the handler returned, "" if it was killed, or is at work.
func (a *attempt) end() ledger.What {
	if n := len(a.lines); n > 0 && a.lines[n-1].What != ledger.Step {
		return a.lines[n-1].What
	}
	return ""
}

// byItself reports whether the handler returned with its lease, so that its host
// reported the end with the last position.
func (a *attempt) byItself() bool { return a.end() != "" && a.end() != ledger.Lost }

// reached is the last position that it may have left behind.
func (a *attempt) reached() int64 {
	at := a.Cursor
	for _, line := range a.lines {
		if line.What == ledger.Step {
			at = line.Cursor
		}
	}
	return at
}

// acknowledged is the position that Temporal has taken for certain from heartbeats. A
// lease that is held at a time rests on a heartbeat that was sent at most its length
// before and was acknowledged, with the position of then. The checkpoint that
// a step announces had been made by the time of the line after it.
func (a *attempt) acknowledged() int64 {
	const leastMargin = 10 // a lease is shorter than the heartbeat timeout by a tenth, at most a second
	sent := a.last() - (a.Heartbeat - min(a.Heartbeat/leastMargin, time.Second))
	at := a.Cursor
	for i, line := range a.lines {
		if line.What == ledger.Step && i+1 < len(a.lines) && a.lines[i+1].At <= sent {
			at = line.Cursor
		}
	}
	return at
}

// String names the attempt and its time.
func (b Book) name(a *attempt) string {
	end := a.end()
	if end == "" {
		end = "no end"
	}
	return fmt.Sprintf("attempt %s (run %s, try %d) from %s to %s (%s)", a.Attempt, a.Run, a.Try, b.when(a.At), b.when(a.last()), end)
}

// when writes a time as that since the start of the soak.
func (b Book) when(at time.Duration) string {
	return "+" + (at - b.Start.At).Round(time.Millisecond).String()
}

// How far from a fault an attempt may end for its report to be lost to it: what
// a report takes, and until clients have found a server that is back.
const (
	reportTime  = 5 * time.Second
	recoverTime = 15 * time.Second
)

// cutOff reports whether a fault may have kept the end of an attempt from being taken by
// Temporal: its process was killed or frozen right after, or the server was away. A
// process that was asked to end reports first.
func (b Book) cutOff(a *attempt) bool {
	end := a.last()
	return slices.ContainsFunc(b.Faults, func(f ledger.Fault) bool {
		switch f.Target {
		case ledger.StackTarget:
			return end >= f.From-reportTime && end <= f.To+recoverTime
		case a.Process:
			return f.Kind != ledger.FaultTerm && end >= f.From-reportTime && end <= f.To
		}
		return false
	})
}
