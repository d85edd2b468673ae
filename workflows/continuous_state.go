package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// recentIterations is how many iterations ContinuousJob keeps to show.
const recentIterations = 20

// maxTotals bounds the names of counts that are added up; those of further names
// are added up as one.
const (
	maxTotals   = 200
	otherTotals = "others"
)

// shownIterations is how many of them the Web UI shows.
const shownIterations = 5

func (l *loop) record(it contract.Iteration) {
	it.Message, it.Error = shorten(it.Message), shorten(it.Error)
	l.Iterations++
	switch {
	case it.Stopped:
		l.Interrupted++
	case it.Error == "":
		l.forgetFailures()
		l.LastError = ""
		l.LastSuccess = it.End()
	default:
		l.fail(it)
	}
	for _, name := range workflow.DeterministicKeys(it.Counts) {
		if l.Totals == nil {
			l.Totals = map[string]int64{}
		}
		total := name
		if _, known := l.Totals[name]; !known && len(l.Totals) >= maxTotals {
			total = otherTotals
		}
		l.Totals[total] += it.Counts[name]
	}
	l.Recent = append(l.Recent, it)
	if extra := len(l.Recent) - recentIterations; extra > 0 {
		l.Recent = append([]contract.Iteration(nil), l.Recent[extra:]...)
	}
}

// fail takes in an iteration that failed, or whose worker died: that is not the
// job's fault as long as it does not happen again and again.
func (l *loop) fail(it contract.Iteration) {
	l.LastError = it.Error
	if it.Lost {
		l.LostWorkers++
		l.ConsecutiveLost++
		if l.ConsecutiveLost <= maxLostWorkers {
			return
		}
	} else {
		l.ConsecutiveLost = 0
	}
	l.Failed++
	l.ConsecutiveFailures++
}

// pauseItself pauses the job after its failures. A pause that someone has asked for
// meanwhile keeps its reason: whoever resumes the job has to know of both.
func (l *loop) pauseItself(lastError string) {
	reason := fmt.Sprintf("%d iterations in a row failed, the last one: %s", l.ConsecutiveFailures, shorten(lastError))
	l.PausedItself = !l.Paused
	if l.Paused && l.PauseReason != "" {
		const room = maxPauseReason - len(contract.AlsoFor)
		reason = job.Cut(reason, max(room/2, room-len(l.PauseReason)))
		reason = job.Cut(l.PauseReason, room-len(reason)) + contract.AlsoFor + reason
	}
	l.Paused, l.PauseReason = true, job.Cut(reason, maxPauseReason)
}

func (l *loop) forgetFailures() { l.ConsecutiveFailures, l.ConsecutiveLost = 0, 0 }

// exhausted says that the job has failed more often in a row than its retries allow.
func (l *loop) exhausted() bool {
	limit := l.Job.Options.MaxRetryCount
	return limit != job.Unlimited && l.ConsecutiveFailures > limit
}

// due is when the next iteration should start.
func (l *loop) due() time.Time {
	if l.EndedAt.IsZero() {
		return time.Time{}
	}
	wait := l.Job.Continuous.Interval.Std()
	if inVain := max(l.ConsecutiveFailures, l.ConsecutiveLost); inVain > 0 {
		wait = max(wait, l.Job.Options.RetryBackoff.Wait(inVain))
	}
	return l.EndedAt.Add(wait)
}

// details is the text that the Web UI shows for the running workflow.
func (l *loop) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · `%s` · continuous, every %s · **%s**\n\n", l.Job.ID, l.Job.Type, l.Job.Continuous.Interval, l.Phase)
	if l.Paused {
		fmt.Fprintf(&b, "Paused: %s\n\n", l.PauseReason)
	}
	if l.Phase == contract.PhaseRunning {
		fmt.Fprintf(&b, "Iteration %d runs: %s\n\n", l.Iterations+1, whereProgressIs)
	}
	fmt.Fprintf(&b, "%d iterations, %d failed\n", l.Iterations, l.Failed)
	if l.Interrupted > 0 {
		fmt.Fprintf(&b, "\nCut short: %d\n", l.Interrupted)
	}
	if l.LostWorkers > 0 {
		fmt.Fprintf(&b, "\nLost workers: %d, %d in a row\n", l.LostWorkers, l.ConsecutiveLost)
	}
	if l.LastError != "" {
		fmt.Fprintf(&b, "\nLast error: %s\n", l.LastError)
	}
	b.WriteString(l.binding.details())
	for i := len(l.Recent) - 1; i >= 0 && i >= len(l.Recent)-shownIterations; i-- {
		it := l.Recent[i]
		text := it.Message
		if it.Error != "" {
			text = it.Class + ": " + it.Error
		}
		fmt.Fprintf(&b, "\n- #%d at %s, took %s: %s", it.Number, it.Start.UTC().Format(time.TimeOnly), it.Duration.Std().Round(time.Millisecond), text)
	}
	return b.String()
}
