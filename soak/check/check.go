package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// Invariant is one of the things that have to hold.
type Invariant string

// The invariants, in the order in which they are printed.
const (
	Once    Invariant = "what was acknowledged ran, and once"
	Order   Invariant = "items ran in acknowledged order"
	Queues  Invariant = "no two attempts at once of a queue"
	Loops   Invariant = "no two attempts at once of a loop"
	Overlap Invariant = "no two attempts at once of a recurring job that skips"
	OneShot Invariant = "no two attempts at once of a one-shot"
	Starts  Invariant = "each start ran, or is listed with a reason"
	Cursors Invariant = "cursors were kept, and never went back"
	GoesOn  Invariant = "all went on after the faults"
	AsAsked Invariant = "there were the load and the faults that were asked for"
)

// Invariants lists them all.
func Invariants() []Invariant {
	return []Invariant{Once, Order, Queues, Loops, Overlap, OneShot, Starts, Cursors, GoesOn, AsAsked}
}

// Modes of jobs, as handlers see them.
const (
	modeQueued     = "queued"
	modeContinuous = "continuous"
	modeRecurring  = "recurring"
)

// Report is what was looked at and what was found.
type Report struct {
	// Checked counts what each invariant was checked for.
	Checked map[Invariant]int
	// Violations are sentences that name attempts, runs and times.
	Violations map[Invariant][]string
	// Reasons counts the starts without a run by the reason that is listed.
	Reasons map[string]int
	// Repeated are attempts that began after a handler of the same run had
	// returned, since a fault had kept its end from being reported.
	Repeated int
	// Unaccounted are starts right before or after a change of their job's
	// definition, which the product does not account for.
	Unaccounted int
	// Canceled are items and runs that someone canceled.
	Canceled int
}

// Count is the number of violations.
func (r *Report) Count() (n int) {
	for _, found := range r.Violations {
		n += len(found)
	}
	return n
}

func (r *Report) add(i Invariant, format string, args ...any) {
	r.Violations[i] = append(r.Violations[i], fmt.Sprintf(format, args...))
}

// Check checks all invariants.
func (b Book) Check() (*Report, error) {
	r := &Report{Checked: map[Invariant]int{}, Violations: map[Invariant][]string{}, Reasons: map[string]int{}}
	attempts, err := b.attempts()
	if err != nil {
		return nil, err
	}
	jobs := groupBy(attempts, func(a *attempt) string { return a.Job })
	b.checkAlone(r, attempts)
	b.checkOnce(r, jobs)
	b.checkOrder(r, jobs, attempts)
	b.checkCursors(r, attempts)
	b.checkStarts(r, attempts)
	r.Checked[GoesOn] = len(b.Faults) + len(b.Verbs)
	for _, t := range b.Troubles {
		r.add(GoesOn, "%s: %s", b.when(t.At), t.Text)
	}
	b.checkLoad(r)
	return r, nil
}

// long is the length from which a soak must have had each kind of trouble.
const long = 8 * time.Minute

// checkLoad looks for parts that were not there, since what did not happen violates
// nothing.
func (b Book) checkLoad(r *Report) {
	r.Checked[AsAsked] = len(Invariants())
	for _, i := range Invariants() {
		if r.Checked[i] == 0 && len(r.Violations[i]) == 0 {
			r.add(AsAsked, "nothing was there to check: %s", i)
		}
	}
	if b.Start.Took < long {
		return
	}
	if !slices.ContainsFunc(b.Faults, func(f ledger.Fault) bool { return f.Target == ledger.StackTarget && f.Kind == ledger.FaultKill }) {
		r.add(AsAsked, "the stack was not killed in %s", b.Start.Took)
	}
	in := 0
	for _, one := range b.asked() {
		if one.queue == "" && one.acked > 0 {
			in++
		}
	}
	// A tenth is what outages right before the end can keep out.
	if in < b.Start.OneShots-b.Start.OneShots/10 {
		r.add(AsAsked, "%d one-shots were acknowledged, of %d that were to be put in", in, b.Start.OneShots)
	}
}

func groupBy(attempts []*attempt, key func(*attempt) string) map[string][]*attempt {
	groups := map[string][]*attempt{}
	for _, a := range attempts {
		groups[key(a)] = append(groups[key(a)], a)
	}
	return groups
}

// keys are those of a map in their order, so that a report is always the same.
func keys[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// checkAlone looks for attempts that began while another of the same queue, or of
// the same job, held its lease.
func (b Book) checkAlone(r *Report, attempts []*attempt) {
	groups := groupBy(attempts, func(a *attempt) string {
		if a.Mode == modeQueued {
			return "queue " + a.Queue
		}
		return "job " + a.Job
	})
	for _, name := range keys(groups) {
		group := groups[name]
		invariant := OneShot
		switch group[0].Mode {
		case modeQueued:
			invariant = Queues
		case modeContinuous:
			invariant = Loops
		case modeRecurring:
			invariant = Overlap
		}
		r.Checked[invariant] += len(group)
		latest := group[0]
		for _, a := range group[1:] {
			if a.At < latest.last() {
				r.add(invariant, "%s: %s of job %s began beside %s of job %s", name, b.name(a), a.Job, b.name(latest), latest.Job)
			}
			if a.last() > latest.last() {
				latest = a
			}
		}
	}
}

// checkOnce looks at all that was put in: each job has one run, which completed, and
// what was acknowledged has run.
func (b Book) checkOnce(r *Report, jobs map[string][]*attempt) {
	asked := b.asked()
	for _, job := range keys(asked) {
		item := asked[job]
		r.Checked[Once]++
		canceled := slices.ContainsFunc(b.Verbs, func(v ledger.Verb) bool { return v.Excuses(job) })
		if canceled {
			r.Canceled++
		}
		out := slices.IndexFunc(b.Verbs, func(v ledger.Verb) bool { return v.OK && !v.Running && v.Excuses(job) })
		done := 0
		for n, a := range jobs[job] {
			if n > 0 {
				b.checkRepeat(r, jobs[job][n-1], a)
			}
			if a.end() == ledger.Done {
				done++
			}
			if out >= 0 && a.At > b.Verbs[out].To {
				r.add(Once, "job %s was taken out of queue %s at %s and yet ran: %s", job, item.queue, b.when(b.Verbs[out].To), b.name(a))
			}
		}
		if done == 0 && item.acked > 0 && !canceled {
			r.add(Once, "job %s was acknowledged at %s and never done (%d attempts)", job, b.when(item.acked), len(jobs[job]))
		}
	}
	for _, job := range keys(jobs) {
		if a := jobs[job][0]; asked[job] == nil && a.Mode != modeContinuous && a.Mode != modeRecurring {
			r.add(Once, "job %s ran, and nobody had put it in: %s", job, b.name(a))
		}
	}
}

// checkRepeat looks at an attempt of a job that runs once and the one before. Another
// run is right only of an item that failed for good, whose queue was told to try it
// again; another attempt after one that was done only if Temporal may not have
// heard of that.
func (b Book) checkRepeat(r *Report, before, a *attempt) {
	switch {
	case a.Run != before.Run && before.end() != ledger.Final:
		r.add(Once, "job %s has two runs: %s, then %s", a.Job, b.name(before), b.name(a))
	case a.Run == before.Run && before.end() == ledger.Final, before.end() == ledger.Done:
		if !b.cutOff(before) {
			r.add(Once, "job %s ran again although it had ended, and no fault was near: %s, then %s", a.Job, b.name(before), b.name(a))
			return
		}
		r.Repeated++
	}
}

// asked is a job that was put in.
type asked struct {
	job, queue, producer string
	first                time.Duration // when it was first asked for
	acked                time.Duration // when it was first acknowledged; 0: never
	number               int           // its place among those of its producer
}

func (b Book) asked() map[string]*asked {
	all := map[string]*asked{}
	numbers := map[string]int{}
	for _, call := range b.Calls {
		for _, job := range call.Jobs {
			one := all[job]
			if one == nil {
				one = &asked{job: job, queue: call.Queue, producer: call.Producer, first: call.At, number: numbers[call.Producer]}
				numbers[call.Producer]++
				all[job] = one
			}
			if call.Acked && one.acked == 0 {
				one.acked = call.At
			}
		}
	}
	return all
}

// before reports whether an item has to run before another: they are of one producer, which
// puts in one after the other, or the other was asked for when the first was in.
func (a *asked) before(other *asked) bool {
	if a.producer == other.producer {
		return a.number < other.number
	}
	return a.acked > 0 && a.acked < other.first
}

// checkOrder compares the order in which items began with that in which they were put
// in, and looks for items that a halted queue began.
func (b Book) checkOrder(r *Report, jobs map[string][]*attempt, attempts []*attempt) {
	began := map[string][]*asked{}
	for _, item := range b.asked() {
		if len(jobs[item.job]) > 0 && item.queue != "" {
			began[item.queue] = append(began[item.queue], item)
		}
	}
	for _, queue := range keys(began) {
		items := began[queue]
		r.Checked[Order] += len(items)
		slices.SortFunc(items, func(x, y *asked) int {
			return cmp.Or(cmp.Compare(jobs[x.job][0].At, jobs[y.job][0].At), cmp.Compare(x.job, y.job))
		})
		for n, later := range items {
			for _, earlier := range items[:n] {
				if later.before(earlier) {
					r.add(Order, "queue %s: job %s began at %s, before job %s at %s, which was put in before it",
						queue, earlier.job, b.when(jobs[earlier.job][0].At), later.job, b.when(jobs[later.job][0].At))
					break
				}
			}
		}
	}
	failed := map[string]*attempt{} // by queue
	for _, a := range attempts {
		if a.Mode != modeQueued {
			continue
		}
		if f := failed[a.Queue]; f != nil && f.Job != a.Job {
			r.add(Order, "queue %s: job %s began at %s, although job %s had failed at %s and halts its queue",
				a.Queue, a.Job, b.when(a.At), f.Job, b.when(f.last()))
		}
		if delete(failed, a.Queue); a.end() == ledger.Final {
			failed[a.Queue] = a
		}
	}
}

// checkCursors looks at what positions attempts were given.
func (b Book) checkCursors(r *Report, attempts []*attempt) {
	groups := groupBy(attempts, func(a *attempt) string {
		switch a.Mode {
		case modeContinuous: // A loop that was stopped and started again is another one.
			loop, _, _ := strings.Cut(a.Run, "/")
			return a.Job + " " + loop
		case modeQueued: // An item that is tried again goes on where its last run was.
			return a.Job
		}
		return a.Job + " " + a.Run
	})
	for _, name := range keys(groups) {
		var least, most int64
		var from *attempt
		for _, a := range groups[name] {
			r.Checked[Cursors]++
			switch {
			case a.Cursor < least:
				r.add(Cursors, "job %s: %s was given position %d; %s had left %d for certain, and reached %d",
					a.Job, b.name(a), a.Cursor, b.name(from), least, from.reached())
			case a.Cursor > most:
				r.add(Cursors, "job %s: %s was given position %d, and none before it was beyond %d", a.Job, b.name(a), a.Cursor, most)
			}
			left := max(a.Cursor, a.acknowledged())
			if a.byItself() && !b.cutOff(a) {
				left = a.reached()
			}
			if left >= least {
				least, from = left, a
			}
			most = max(most, a.reached())
		}
	}
}
