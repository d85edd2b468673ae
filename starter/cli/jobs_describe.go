package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

func (i *invocation) jobsDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe JOB",
		Short: "Show the definition, status and runs of a job",
		Long: `describe shows the definition of a job as it is in Temporal, its status, and its
latest runs. For a continuous job it needs a running worker.`,
		Args:              arguments("JOB"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			detail, err := c.Jobs.Get(cmd.Context(), args[0])
			if err != nil {
				return aboutJob(c, args[0], err)
			}
			return i.emit(detail, func(w io.Writer) error { return i.writeJob(w, detail) })
		},
	}
}

func (i *invocation) writeJob(w io.Writer, detail *client.JobDetail) error {
	var s sheet
	i.addDefinition(&s, detail.Job)
	i.addStatus(&s, detail)
	if loop := detail.Loop; loop != nil {
		i.addLoop(&s, loop)
	}
	s.add("Note", "%s", detail.Note)
	if err := s.write(w); err != nil {
		return err
	}
	if detail.Loop != nil {
		if err := i.iterationTable(detail.Loop.Recent).section(w, "Latest iterations"); err != nil {
			return err
		}
	}
	return i.runTable(detail.Runs, false).section(w, "Latest runs")
}

func (i *invocation) addDefinition(s *sheet, j job.Job) {
	s.add("Job", "%s", j.ID)
	s.add("Type", "%s", j.Type)
	s.add("Mode", "%s", modeText(j.Trigger))
	i.addRecurring(s, j.Recurring)
	s.add("Description", "%s", j.Options.Description)
	s.add("Owner", "%s", j.Options.Owner)
	s.add("Tags", "%s", tags(j.Options.Tags))
	s.add("Provider", "%s", j.Provider)
	s.add("Worker", "%s", j.Worker)
	if len(j.Options.Bind) > 0 {
		s.add("Bound to", "%s; failover: %s after %s", tags(j.Options.Bind), j.Options.FailoverPolicy(), j.Options.FailoverWait())
	}
	s.add("Spec", "%s", indented(j.Spec))
	s.add("Run timeout", "%s, heartbeat %s, stop grace period %s",
		j.Options.RunTimeout, j.Options.HeartbeatTimeout, j.Options.StopGracePeriod)
	s.add("Retries", "%s", retries(j.Options))
	if j.Options.Freshness != 0 {
		s.add("Freshness", "a success at least every %s", j.Options.Freshness)
	}
	if j.Options.Deadline != nil {
		s.add("Deadline", "a success each day by %s", j.Options.Deadline)
	}
}

func modeText(schedule job.Trigger) string {
	switch {
	case schedule.Continuous != nil:
		text := fmt.Sprintf("%s, %s between iterations", job.ModeContinuous, schedule.Continuous.Interval)
		if schedule.Continuous.RestartOnChange {
			text += ", restarted when its definition changes"
		}
		return text
	case schedule.Recurring != nil:
		return fmt.Sprintf("%s, %s", job.ModeRecurring, startTimes(*schedule.Recurring))
	case schedule.Queued != nil:
		return fmt.Sprintf("%s, in queue %s", job.ModeQueued, schedule.Queued.Queue)
	}
	return string(schedule.Mode())
}

// startTimes is the cron expression or the period of a recurring job.
func startTimes(r job.Recurring) string {
	text := fmt.Sprintf("every %s", r.RecurEvery)
	switch {
	case r.Cron != "":
		text = fmt.Sprintf("cron %q in %s", r.Cron, r.Zone())
	case r.Offset != nil:
		text += fmt.Sprintf(", offset %s", *r.Offset)
	}
	if r.Jitter > 0 {
		text += fmt.Sprintf(", jitter %s", r.Jitter)
	}
	return text
}

// addRecurring shows the policies for starts that overlap, are missed or fail.
func (i *invocation) addRecurring(s *sheet, r *job.Recurring) {
	if r == nil {
		return
	}
	s.add("Overlap", "%s, catch-up window %s", r.OverlapPolicy(), r.Catchup())
	switch r.Misfire {
	case "":
	case job.MisfireAll:
		s.add("Misfire", "all, at most %d", r.MissedLimit())
	default:
		s.add("Misfire", "%s", r.Misfire)
	}
	if r.PauseAfterFailures > 0 {
		backoff := r.FailureBackoff()
		s.add("Failures", "after %d in a row starts are held back; the next run is after %s, growing to %s", r.PauseAfterFailures, backoff.Initial, backoff.Max)
	}
	s.add("Starts from", "%s", i.when(r.StartAt))
	s.add("Ends at", "%s", i.when(r.EndAt))
}

func tags(tags map[string]string) string {
	parts := make([]string, 0, len(tags))
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		parts = append(parts, name+"="+tags[name])
	}
	return strings.Join(parts, ", ")
}

// indented is JSON for people: over several lines, with & and < as they are, which
// encoding/json has escaped where it was kept, and with numbers as they were written.
func indented(text json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return string(text)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return string(text)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func retries(options job.Options) string {
	count := fmt.Sprintf("%d times", options.MaxRetryCount)
	if options.MaxRetryCount == job.Unlimited {
		count = "without limit"
	}
	return fmt.Sprintf("%s, after %s, growing to %s", count, options.RetryBackoff.Initial, options.RetryBackoff.Max)
}

func (i *invocation) addStatus(s *sheet, detail *client.JobDetail) {
	status := string(detail.Row.Status)
	if detail.Row.PauseReason != "" {
		status += ": " + detail.Row.PauseReason
	}
	if f := detail.Row.Failing; f != nil && detail.Row.Status == client.JobFailing {
		status += " " + i.failingText(f)
	}
	if detail.Row.Status == client.JobWaiting {
		status += fmt.Sprintf(", %d ahead", detail.Ahead)
	}
	s.add("Status", "%s", status)
	if f := detail.Row.Failing; f != nil && f.Failures > 0 {
		s.add("Failures in a row", "%d", f.Failures)
		s.add("Next run", "%s", i.when(f.NextRun))
	}
	s.add("Last start", "%s", i.when(detail.Row.LastStart))
	const shown = 3
	next := make([]string, 0, shown)
	for n, at := range detail.Next {
		if n == shown {
			break
		}
		next = append(next, i.when(at))
	}
	s.add("Next", "%s", strings.Join(next, "\n"))
	if detail.Missed > 0 || detail.Skipped > 0 {
		s.add("Not run", "%d missed, %d skipped because the run before had not ended", detail.Missed, detail.Skipped)
	}
}

func (i *invocation) addLoop(s *sheet, loop *contract.ContinuousState) {
	s.add("Phase", "%s", loop.Phase)
	s.add("Iterations", "%d, %d failed, %d of these in a row", loop.Iterations, loop.Failed, loop.ConsecutiveFailures)
	if loop.Interrupted > 0 {
		s.add("Interrupted", "%d", loop.Interrupted)
	}
	if loop.LostWorkers > 0 {
		s.add("Lost workers", "%d, %d in a row", loop.LostWorkers, loop.ConsecutiveLost)
	}
	if !loop.FailingSince.IsZero() {
		s.add("Failing", "since %s", i.when(loop.FailingSince))
	}
	s.add("Totals", "%s", counts(loop.Totals))
	s.add("Next", "%s", i.when(loop.NextAt))
	s.add("Last success", "%s", i.when(loop.LastSuccess))
	s.add("Last error", "%s", loop.LastError)
	i.addBinding(s, &loop.Binding)
}

// addBinding shows the service of a bound job, and its failovers.
func (i *invocation) addBinding(s *sheet, b *contract.Binding) {
	if b == nil || b.Service == "" {
		return
	}
	s.add("Service", "%s", b.Service)
	for _, rebind := range b.Rebinds {
		s.add("Rebound", "%s: %s", i.when(rebind.At), rebind)
	}
}

// iterationTable shows iterations, the latest first.
func (i *invocation) iterationTable(iterations []contract.Iteration) *table {
	const shown = 10
	t := newTable("NUMBER", "START", "TOOK", "RESULT")
	for n := len(iterations) - 1; n >= 0 && len(t.rows) < shown; n-- {
		it := iterations[n]
		text := it.Message
		switch {
		case it.Error != "":
			text = it.Class + ": " + it.Error
		case it.Stopped && text == "":
			text = "stopped"
		}
		t.add(fmt.Sprint(it.Number), i.when(it.Start), took(it.Duration.Std()), text)
	}
	return t
}

// since is the duration of a run, up to now if it has not ended.
func (i *invocation) since(run client.Run) time.Duration {
	if run.Ended.IsZero() {
		return i.Now().Sub(run.Started)
	}
	return run.Ended.Sub(run.Started)
}
