package schedules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/recurrence"
)

// WarningKind says what a warning is about.
type WarningKind string

// The kinds of warnings.
const (
	// WarnClocks: daylight saving skips or doubles starts of a job.
	WarnClocks WarningKind = "clocks"
	// WarnPileUp: more runs are due at once than the server starts.
	WarnPileUp WarningKind = "pile_up"
	// WarnCatchUp: an outage is followed by many runs.
	WarnCatchUp WarningKind = "catch_up"
)

// Warning is something that people may not expect of the jobs they declare.
type Warning struct {
	Kind WarningKind `json:"kind"`
	// Text is one sentence.
	Text string `json:"text"`
	// At is when it happens first, or is worst.
	At time.Time `json:"at,omitzero"`
	// Jobs are the jobs it is about, those with the most starts first.
	Jobs []WarnedJob `json:"jobs"`
}

// WarnedJob is a job that a warning is about.
type WarnedJob struct {
	ID string `json:"id"`
	// Starts is how many of its starts are meant.
	Starts int `json:"starts"`
}

// StartsPerSecond is how many runs the schedules of one namespace start, by
// default: the server's setting worker.schedulerNamespaceStartWorkflowRPS. As many
// more may start at once after a second without any.
const StartsPerSecond = 30

// namedJobs is how many jobs a warning names in its text.
const namedJobs = 3

// Warnings lists what people may not expect of recurring jobs that are valid
// and not paused: which starts daylight saving skips or doubles in the twelve
// months after now, where more runs are due in the next 24 hours than the
// server starts, and how many runs follow an outage. It asks no server.
func Warnings(jobs []job.Job, now time.Time) []Warning {
	var timed []timedJob
	var list []Warning
	for _, j := range jobs {
		if j.Mode() != job.ModeRecurring || j.Options.Paused {
			continue
		}
		times, err := j.Recurring.Times(j.ID)
		if err != nil {
			continue // Not valid, which is told elsewhere.
		}
		timed = append(timed, timedJob{j, times})
		if w, warn := clockWarning(j, times, now); warn {
			list = append(list, w)
		}
	}
	slices.SortStableFunc(list, func(a, b Warning) int { return a.At.Compare(b.At) })
	list = append(list, pileUps(timed, now)...)
	if w, warn := catchUpWarning(timed, now); warn {
		list = append(list, w)
	}
	return list
}

// timedJob is a recurring job with its starts.
type timedJob struct {
	job.Job
	times recurrence.Times
}

func clockWarning(j job.Job, times recurrence.Times, now time.Time) (Warning, bool) {
	irregular := slices.DeleteFunc(times.Irregular(now, now.AddDate(1, 0, 0)), func(i recurrence.Irregular) bool {
		return i.Kind == recurrence.Moved // As documented.
	})
	if len(irregular) == 0 {
		return Warning{}, false
	}
	counts := map[recurrence.Irregularity]int{}
	for _, i := range irregular {
		counts[i.Kind]++
	}
	var parts []string
	for _, kind := range []recurrence.Irregularity{recurrence.Skipped, recurrence.Doubled} {
		if n := counts[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	first := irregular[0]
	return Warning{
		Kind: WarnClocks, At: first.At, Jobs: []WarnedJob{{j.ID, len(irregular)}},
		Text: fmt.Sprintf("job %s: daylight saving makes starts irregular in the next 12 months: %s, first at %s in %s",
			j.ID, strings.Join(parts, ", "), first.Local, j.Recurring.Zone()),
	}, true
}

// catchUpWarning counts the runs that jobs of the misfire policy all make up for
// after an outage that is longer than their catch-up windows.
func catchUpWarning(jobs []timedJob, now time.Time) (Warning, bool) {
	w := Warning{Kind: WarnCatchUp}
	total := 0
	for _, j := range jobs {
		if j.Recurring.MisfirePolicy() != job.MisfireAll {
			continue
		}
		limit, window := j.Recurring.MissedLimit(), j.Recurring.Catchup().Std()
		if n := j.times.Count(now, now.Add(window), limit); n > 0 {
			w.Jobs = append(w.Jobs, WarnedJob{j.ID, n})
			total += n
		}
	}
	if total == 0 {
		return w, false
	}
	sortJobs(w.Jobs)
	w.Text = fmt.Sprintf("an outage may be followed by %s of %s with misfire all (%s), all at once",
		plural(total, "run"), plural(len(w.Jobs), "job"), jobsText(w.Jobs))
	if total > StartsPerSecond {
		w.Text += fmt.Sprintf(", or within %s where a server starts %d per second", seconds(float64(total)/StartsPerSecond), StartsPerSecond)
	}
	return w, true
}

func sortJobs(jobs []WarnedJob) {
	slices.SortFunc(jobs, func(a, b WarnedJob) int {
		return cmp.Or(cmp.Compare(b.Starts, a.Starts), strings.Compare(a.ID, b.ID))
	})
}

// jobsText names the first jobs, with their starts.
func jobsText(jobs []WarnedJob) string {
	var parts []string
	for _, j := range jobs[:min(len(jobs), namedJobs)] {
		parts = append(parts, fmt.Sprintf("%s %d", j.ID, j.Starts))
	}
	if more := len(jobs) - namedJobs; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func seconds(n float64) string {
	return time.Duration(n * float64(time.Second)).Round(time.Second).String()
}
