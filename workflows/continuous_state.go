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

func (c *continuous) record(it contract.Iteration) {
	it.Message, it.Error = shorten(it.Message), shorten(it.Error)
	c.Iterations++
	switch {
	case it.Stopped:
		c.Interrupted++
	case it.Error == "":
		c.forgetFailures()
		c.LastError = ""
		c.LastSuccess = it.End()
	default:
		c.fail(it)
	}
	for _, name := range workflow.DeterministicKeys(it.Counts) {
		if c.Totals == nil {
			c.Totals = map[string]int64{}
		}
		total := name
		if _, known := c.Totals[name]; !known && len(c.Totals) >= maxTotals {
			total = otherTotals
		}
		c.Totals[total] += it.Counts[name]
	}
	c.Recent = append(c.Recent, it)
	if extra := len(c.Recent) - recentIterations; extra > 0 {
		c.Recent = append([]contract.Iteration(nil), c.Recent[extra:]...)
	}
}

// fail takes in an iteration that failed, or whose worker died: that is not the
// job's fault as long as it does not happen again and again.
func (c *continuous) fail(it contract.Iteration) {
	c.LastError = it.Error
	if it.Lost {
		c.LostWorkers++
		c.ConsecutiveLost++
		if c.ConsecutiveLost <= maxLostWorkers {
			return
		}
	} else {
		c.ConsecutiveLost = 0
	}
	c.Failed++
	c.ConsecutiveFailures++
}

// pauseItself pauses the job after its failures. A pause that someone has asked for
// meanwhile keeps its reason: whoever resumes the job has to know of both.
func (c *continuous) pauseItself(lastError string) {
	reason := fmt.Sprintf("%d iterations in a row failed, the last one: %s", c.ConsecutiveFailures, shorten(lastError))
	c.PausedItself = !c.Paused
	if c.Paused && c.PauseReason != "" {
		const room = maxPauseReason - len(contract.AlsoFor)
		reason = job.Cut(reason, max(room/2, room-len(c.PauseReason)))
		reason = job.Cut(c.PauseReason, room-len(reason)) + contract.AlsoFor + reason
	}
	// Whoever looks at the failures resumes it: an end that someone has set does not.
	c.Paused, c.PauseReason, c.PauseEnd = true, job.Cut(reason, maxPauseReason), time.Time{}
}

func (c *continuous) forgetFailures() { c.ConsecutiveFailures, c.ConsecutiveLost = 0, 0 }

// exhausted reports whether the job has failed more often in a row than its retries allow.
func (c *continuous) exhausted() bool {
	limit := c.Job.Options.MaxRetryCount
	return limit != job.Unlimited && c.ConsecutiveFailures > limit
}

// due is when the next iteration should start.
func (c *continuous) due() time.Time {
	if c.EndedAt.IsZero() {
		return time.Time{}
	}
	wait := c.Job.Continuous.Interval.Std()
	if inVain := max(c.ConsecutiveFailures, c.ConsecutiveLost); inVain > 0 {
		wait = max(wait, c.Job.Options.RetryBackoff.Wait(inVain))
	}
	return c.EndedAt.Add(wait)
}

// details is the text that the Web UI shows for the running workflow.
func (c *continuous) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · `%s` · continuous, every %s · **%s**\n\n", c.Job.ID, c.Job.Type, c.Job.Continuous.Interval, c.Phase)
	if c.Paused {
		fmt.Fprintf(&b, "Paused: %s\n\n", contract.Plain(contract.PauseText(c.PauseReason, c.PauseEnd)))
	}
	if c.Phase == contract.PhaseRunning {
		fmt.Fprintf(&b, "Iteration %d runs: %s\n\n", c.Iterations+1, whereProgressIs)
	}
	fmt.Fprintf(&b, "%d iterations, %d failed\n", c.Iterations, c.Failed)
	if c.Interrupted > 0 {
		fmt.Fprintf(&b, "\nCut short: %d\n", c.Interrupted)
	}
	if c.LostWorkers > 0 {
		fmt.Fprintf(&b, "\nLost workers: %d, %d in a row\n", c.LostWorkers, c.ConsecutiveLost)
	}
	if c.LastError != "" {
		fmt.Fprintf(&b, "\nLast error: %s\n", contract.Plain(c.LastError))
	}
	b.WriteString(c.binding.details())
	for i := len(c.Recent) - 1; i >= 0 && i >= len(c.Recent)-shownIterations; i-- {
		it := c.Recent[i]
		text := it.Message
		if it.Error != "" {
			text = it.Class + ": " + it.Error
		}
		fmt.Fprintf(&b, "\n- #%d at %s, took %s: %s", it.Number, it.Start.UTC().Format(time.TimeOnly), it.Duration.Std().Round(time.Millisecond), contract.Plain(text))
	}
	return b.String()
}
