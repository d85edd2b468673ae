package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// stormFigures are what a storm came to.
type stormFigures struct {
	from, until time.Time
	expected    int // starts that were due
	runs        int // of them, those that the server has started a run for
	twice       int // starts that have more than one run
	// started and handled are how late the server started the runs, and how late
	// their handlers began; sorted.
	started, handled []time.Duration
	// due and began are how many runs were due, or began, in each second.
	due, began      map[int64]int
	skipped, missed int64
	servers, worker time.Duration // on the processors
	memory          string
	loads           []string
}

// take takes the times of the runs. What handlers did comes from the ledger.
func (f *stormFigures) take(accounts []account, book ledger) error {
	starts, err := book.read(func(n noted) bool { return n.what == ledgerStart })
	if err != nil {
		return err
	}
	began := map[string]time.Time{}
	for _, start := range starts {
		if _, again := began[start.runID]; again {
			return fmt.Errorf("run %s of job %s began twice", start.runID, start.jobID)
		}
		began[start.runID] = start.at
	}
	f.runs, f.twice, f.started, f.handled = 0, 0, nil, nil
	f.due, f.began = map[int64]int{}, map[int64]int{}
	for _, a := range accounts {
		seen := map[int64]bool{}
		for _, action := range a.actions {
			due := action.GetScheduleTime().AsTime()
			if due.Before(f.from) || !due.Before(f.until) {
				continue
			}
			if seen[due.UnixNano()] {
				f.twice++
			}
			seen[due.UnixNano()] = true
			f.runs++
			f.started = append(f.started, action.GetActualTime().AsTime().Sub(due))
			f.due[due.Unix()]++
			if at, ok := began[action.GetStartWorkflowResult().GetRunId()]; ok {
				f.handled = append(f.handled, at.Sub(due))
			}
		}
	}
	// Those of the seconds before and after belong to other minutes.
	for _, start := range starts {
		if !start.at.Before(f.from) && start.at.Before(f.until) {
			f.began[start.at.Unix()]++
		}
	}
	slices.Sort(f.started)
	slices.Sort(f.handled)
	return nil
}

// lateness writes p50, p95, p99 and the maximum of sorted durations.
func lateness(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return "–"
	}
	at := func(percent int) string {
		return roundedTime(sorted[min(len(sorted)*percent/100, len(sorted)-1)])
	}
	return fmt.Sprintf("%s / %s / %s / %s", at(50), at(95), at(99), at(100))
}

func roundedTime(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// busiest writes the most in one second, and that over the mean.
func (f *stormFigures) busiest(perSecond map[int64]int) string {
	most := 0
	for _, n := range perSecond {
		most = max(most, n)
	}
	mean := float64(f.expected) / f.until.Sub(f.from).Seconds()
	return fmt.Sprintf("%d, × %.2f", most, float64(most)/mean)
}

// writeStorm writes the figures as a Markdown table.
func writeStorm(out io.Writer, o stormOptions, f *stormFigures) error {
	took := f.until.Sub(f.from).Seconds()
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d jobs every minute, %d minutes\n\n| what | aim | seen |\n|---|---|---|\n", o.jobs, o.minutes)
	for _, line := range []struct {
		what, aim, value string
	}{
		{"runs, of starts that were due", "all, each once", fmt.Sprintf("%d of %d, %d twice; %d handlers", f.runs, f.expected, f.twice, len(f.handled))},
		{"started late: p50 / p95 / p99 / most", "p99 ≤ 5 s", lateness(f.started)},
		{"handler began late: p50 / p95 / p99 / most", "p99 ≤ 5 s", lateness(f.handled)},
		{"due in one second at most, over the mean", "× 2", f.busiest(f.due)},
		{"handlers begun in one second at most, over the mean", "× 2", f.busiest(f.began)},
		{"skipped since the run before had not ended", "0", fmt.Sprint(f.skipped)},
		{"missed, or dropped from a full buffer", "0", fmt.Sprint(f.missed)},
		{"processors in use by servers, worker", "–", fmt.Sprintf("%.2f, %.2f", f.servers.Seconds()/took, f.worker.Seconds()/took)},
		{"peak memory", "–", f.memory},
		{"load average of a minute, each minute", "–", strings.Join(f.loads, ", ")},
	} {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", line.what, line.aim, line.value)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
