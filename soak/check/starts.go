package check

import (
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// latest is how late a run may be started: the catch-up window of the jobs, and what
// a server that was frozen takes to go on.
const latest = time.Minute + 30*time.Second

// unknown is the reason of a start that the product cannot explain.
const unknown = "unknown"

// account is all that the product tells of a recurring job.
type account struct {
	ledger.Recurring
	samples []ledger.Sample
	runs    map[string]ledger.Run      // by id, as they stood last
	byDue   map[time.Time][]ledger.Run // in the order of the lists
	missed  map[time.Time]string       // reasons
	until   time.Time                  // the end of the last sample

	attempts map[string][]*attempt // by run
}

func (b Book) account(job ledger.Recurring) *account {
	a := &account{Recurring: job, runs: map[string]ledger.Run{}, byDue: map[time.Time][]ledger.Run{}, missed: map[time.Time]string{}}
	for _, sample := range b.Samples {
		if sample.Job != job.Job {
			continue
		}
		a.samples = append(a.samples, sample)
		for _, run := range sample.Runs {
			a.runs[run.ID] = run
		}
		for _, missed := range sample.Missed {
			if due := missed.Due.UTC(); a.missed[due] == "" || missed.Reason != unknown {
				a.missed[due] = missed.Reason
			}
		}
		if sample.Until.After(a.until) {
			a.until = sample.Until
		}
	}
	for _, id := range keys(a.runs) {
		if run := a.runs[id]; !run.Due.IsZero() {
			a.byDue[run.Due.UTC()] = append(a.byDue[run.Due.UTC()], run)
		}
	}
	return a
}

// dues are the starts of the job, as its definition has them: multiples of the
// interval since the Unix epoch, shifted by the offset.
func (a *account) dues() (all []time.Time) {
	every, offset := a.Every.Nanoseconds(), a.Offset.Nanoseconds()
	first := (a.From.UnixNano()-offset)/every + 1
	for n := first; ; n++ {
		due := time.Unix(0, n*every+offset).UTC()
		if due.After(a.until) {
			return all
		}
		all = append(all, due)
	}
}

// accounted reports whether the product accounts for a start.
func (a *account) accounted(due time.Time) bool {
	return slices.ContainsFunc(a.samples, func(s ledger.Sample) bool {
		return !due.Before(s.From) && !due.After(s.Until)
	})
}

// checkStarts looks for a run or a reason of every start, and for what handlers say
// of these runs.
func (b Book) checkStarts(r *Report, attempts []*attempt) {
	did := map[string]bool{} // by run
	jobs := map[string]*account{}
	for _, job := range b.Recurring {
		jobs[job.Job] = b.account(job)
	}
	for name, of := range groupBy(attempts, func(a *attempt) string { return a.Job }) {
		if job := jobs[name]; job != nil {
			job.attempts = groupBy(of, func(a *attempt) string { return a.Run })
		}
	}
	for _, a := range attempts {
		did[a.Run] = did[a.Run] || a.end() == ledger.Done
		if job := jobs[a.Job]; job != nil && a.Mode == modeRecurring && a.At <= b.at(job.until) && job.runs[a.Run].ID == "" {
			r.add(Starts, "job %s: %s is of a run that is in no list", a.Job, b.name(a))
			job.runs[a.Run] = ledger.Run{ID: a.Run} // It is told once.
		}
	}
	for _, name := range keys(jobs) {
		job := jobs[name]
		if len(job.samples) == 0 {
			r.add(Starts, "job %s: the starter did not tell what became of its starts", name)
			continue
		}
		for _, due := range job.dues() {
			r.Checked[Starts]++
			b.checkStart(r, job, due, did)
		}
	}
}

// at is a time of day by the clock of the ledger.
func (b Book) at(t time.Time) time.Duration { return b.Start.At + t.Sub(b.Start.Wall) }

func (b Book) checkStart(r *Report, job *account, due time.Time, did map[string]bool) {
	when := due.Format(time.TimeOnly) + " UTC (" + b.when(b.at(due)) + ")"
	runs := slices.DeleteFunc(slices.Clone(job.byDue[due]), func(run ledger.Run) bool { return !run.Superseded.IsZero() })
	reason := job.missed[due]
	switch {
	case len(runs) > 1:
		r.add(Starts, "job %s: the start of %s has %d runs: %s and %s", job.Job, when, len(runs), runs[0].ID, runs[1].ID)
	case len(runs) == 1:
		b.checkRun(r, job, runs[0], when, did)
	case reason != "" && reason != unknown:
		b.checkReason(r, job, due, reason, when)
	case job.accounted(due):
		r.add(Starts, "job %s: the start of %s has no run, and the reason listed is %q", job.Job, when, reason)
	case job.Changing:
		r.Unaccounted++
	default:
		r.add(Starts, "job %s: the start of %s has no run, and is not accounted for", job.Job, when)
	}
}

func (b Book) checkRun(r *Report, job *account, run ledger.Run, when string, did map[string]bool) {
	if late := run.Started.Sub(run.Due); late > latest {
		r.add(Starts, "job %s: the start of %s, run %s, came %s late", job.Job, when, run.ID, late)
	}
	switch run.Status {
	case "completed":
		if !did[run.ID] {
			r.add(Starts, "job %s: run %s of %s is listed as completed, and no handler returned for it", job.Job, run.ID, when)
		}
	case "running", "waiting", "canceling":
	case "canceled":
		if !b.stopped(job, run) {
			r.add(Starts, "job %s: run %s of %s was canceled, and nobody asked for it then", job.Job, run.ID, when)
		}
		r.Canceled++
	default:
		r.add(Starts, "job %s: run %s of %s is %s", job.Job, run.ID, when, run.Status)
	}
}
