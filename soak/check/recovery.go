package check

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// A silence that a fault is the reason of begins at most so long before it, which is the
// longest rest of a loop, or so long after its end.
const (
	before = 4 * time.Second
	after  = 10 * time.Second
)

// silence is a time without a line of the handlers of a loop, or of a queue that had
// something to run.
type silence struct {
	span
	of string
}

func (s silence) length() time.Duration { return s.to - s.from }

// near reports whether a fault may be the reason of a silence.
func (s silence) near(f ledger.Fault) bool {
	return s.from >= f.From-before && s.from <= f.To+after && s.to >= f.From
}

// recoveries tells of each fault of a cluster how long a loop and a queue stood still at it,
// at most. That is a time by which all had gone on, with what faults there are.
func (b Book) recoveries() string {
	faults := slices.DeleteFunc(slices.Clone(b.Faults), func(f ledger.Fault) bool { return f.Host == "" })
	attempts, err := b.attempts()
	if len(faults) == 0 || err != nil {
		return ""
	}
	loops, queues := b.silences(attempts)
	var text strings.Builder
	text.WriteString("\nThe longest silence at each fault, of a loop and of a queue that had items:\n\n")
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "AT\tHOST\tFAULT\tLASTED\tLOOP\tQUEUE")
	longest := func(all []silence, is func(silence) bool) string {
		var most time.Duration
		for _, s := range all {
			if is(s) {
				most = max(most, s.length())
			}
		}
		return most.Round(100 * time.Millisecond).String()
	}
	for n, f := range faults {
		// What is near two of them is of the later one.
		near := func(s silence) bool { return s.near(f) && (n+1 == len(faults) || !s.near(faults[n+1])) }
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", b.when(f.From), f.Host, f.Kind, (f.To - f.From).Round(100*time.Millisecond), longest(loops, near), longest(queues, near))
	}
	far := func(s silence) bool {
		return !slices.ContainsFunc(faults, func(f ledger.Fault) bool { return s.near(f) })
	}
	fmt.Fprintf(table, "\tno fault near\t\t\t%s\t%s\n", longest(loops, far), longest(queues, far))
	_ = table.Flush() // To memory.
	return text.String()
}

// silences are those of loops and of queues. What a verb of people explains is left out.
func (b Book) silences(attempts []*attempt) (loops, queues []silence) {
	times := map[string][]time.Duration{}
	began := map[string]time.Duration{} // by job
	halted := map[string][]time.Duration{}
	for _, a := range attempts {
		name := a.Queue
		switch a.Mode {
		case modeQueued:
			if _, known := began[a.Job]; !known {
				began[a.Job] = a.At
			}
		case modeContinuous:
			name = a.Job
		default:
			continue
		}
		times[name] = append(times[name], a.At)
		for _, line := range a.lines {
			times[name] = append(times[name], line.At)
			if line.What == ledger.Final {
				halted[name] = append(halted[name], line.At)
			}
		}
	}
	asked := b.asked()
	waiting := func(queue string, s span) bool {
		for job, one := range asked {
			if at, known := began[job]; one.queue == queue && known && one.acked > 0 && one.acked <= s.from && at >= s.to {
				return true
			}
		}
		return false
	}
	for name, all := range times {
		slices.Sort(all)
		for n, to := range all[1:] {
			s := silence{span{all[n], to}, name}
			isQueue := len(asked) > 0 && slices.ContainsFunc(b.Calls, func(c ledger.Call) bool { return c.Queue == name })
			switch {
			case s.length() <= time.Second, b.byVerb(s), slices.Contains(halted[name], s.from):
			case isQueue && waiting(name, s.span):
				queues = append(queues, s)
			case !isQueue:
				loops = append(loops, s)
			}
		}
	}
	return loops, queues
}

// byVerb reports whether somebody had paused, stopped or changed what was silent, or all.
func (b Book) byVerb(s silence) bool {
	const lasting = 40 * time.Second // of a pause until its resume, at most, and what a verb takes
	return slices.ContainsFunc(b.Verbs, func(v ledger.Verb) bool {
		return v.Target == s.of && v.Name != "trigger" && v.From <= s.to && v.To >= s.from-lasting
	})
}
