package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) jobsDescribeCommand() *cobra.Command {
	var asTOML bool
	cmd := &cobra.Command{
		Use:   "describe JOB",
		Short: "Show the definition, status and runs of a job",
		Long: `describe shows the definition of a job as it is in Temporal, its status, and its
latest runs. For a continuous job it needs a running worker. With --toml it writes the
table of a jobs file that declares the job.`,
		Args:              arguments("JOB"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asTOML && i.format != formatTable {
				return misuse(cmd, "give either --toml or -o %s", i.format)
			}
			response, err := i.api.Jobs.GetJob(cmd.Context(), &jobsv1.GetJobRequest{Id: args[0]})
			if err != nil {
				return err
			}
			j := response.GetJob()
			if asTOML {
				return i.writeTOML(j)
			}
			return i.emit(j, func(w io.Writer) error {
				runs, err := latestRuns(cmd.Context(), i.api, j)
				if err != nil {
					return err
				}
				return i.writeJob(w, j, runs, i.startsOf(cmd.Context(), j))
			})
		},
	}
	cmd.Flags().BoolVar(&asTOML, "toml", false, "write the table of a jobs file that declares the job")
	return cmd
}

// writeTOML writes the definition of a job as jobs.toml has it.
func (i *invocation) writeTOML(m *jobsv1.Job) error {
	j, err := definitionOf(m)
	if err != nil {
		return err
	}
	text, err := jobsfile.TOML(j)
	if err != nil {
		return err
	}
	_, err = io.WriteString(i.Stdout, text)
	return err
}

func definitionOf(m *jobsv1.Job) (job.Job, error) {
	j, problems := api.Definition(m)
	if len(problems) > 0 {
		return j, fmt.Errorf("the definition of job %s cannot be read: %s", m.GetId(), problems[0])
	}
	return j, nil
}

// latestShown is how many runs or iterations describe shows.
const latestShown = 10

// latestRuns are the latest runs or iterations of a job. The iterations of a continuous job
// are not known while no worker answers, or when it is stopped.
func latestRuns(ctx context.Context, c *api.Clients, j *jobsv1.Job) ([]*jobsv1.Run, error) {
	if api.ModeOf(j) == job.ModeContinuous && j.GetState().GetContinuous() == nil {
		return nil, nil
	}
	q := &query{}
	q.is("job_id", j.GetId())
	listed, err := c.Runs.ListRuns(ctx, &jobsv1.ListRunsRequest{Filter: q.String(), PageSize: latestShown})
	return listed.GetRuns(), err
}

// startsOf sums up the starts of a recurring job of the last day.
func (i *invocation) startsOf(ctx context.Context, j *jobsv1.Job) string {
	if api.ModeOf(j) != job.ModeRecurring {
		return ""
	}
	q := &query{}
	q.is("id", j.GetId())
	report, err := i.api.Jobs.ListMissedStarts(ctx, &jobsv1.ListMissedStartsRequest{
		StartTime: timestamppb.New(time.Now().Add(-missedSince)), Filter: q.String(),
	})
	if err != nil {
		return "not counted: " + strings.Join(i.sentences(err), "; ")
	}
	if len(report.GetCounts()) == 0 {
		return ""
	}
	return i.startCounts(report.GetCounts()[0])
}

func (i *invocation) writeJob(w io.Writer, j *jobsv1.Job, runs []*jobsv1.Run, starts string) error {
	var s sheet
	definition, err := definitionOf(j)
	if err != nil {
		return err
	}
	i.addDefinition(&s, definition)
	i.addStatus(&s, j.GetState())
	s.add("Starts", "%s", starts)
	if state := j.GetState().GetContinuous(); state != nil {
		i.addContinuous(&s, state)
	}
	s.add("Note", "%s", j.GetState().GetNote())
	if err := s.write(w); err != nil {
		return err
	}
	if api.ModeOf(j) == job.ModeContinuous {
		return i.iterationTable(runs).section(w, "Latest iterations")
	}
	return i.runTable(runs, false).section(w, "Latest runs")
}

func (i *invocation) addDefinition(s *sheet, j job.Job) {
	s.add("Job", "%s", j.ID)
	s.add("Type", "%s", j.Type)
	s.add("Mode", "%s", modeText(j.Trigger))
	i.addRecurring(s, j.Recurring)
	s.add("Description", "%s", j.Options.Description)
	s.add("Owner", "%s", j.Options.Owner)
	s.add("Tags", "%s", job.TagsText(j.Options.Tags))
	s.add("Provider", "%s", j.Provider)
	s.add("Worker", "%s", j.Worker)
	if len(j.Options.Bind) > 0 {
		s.add("Bound to", "%s; failover: %s after %s", job.TagsText(j.Options.Bind), j.Options.FailoverPolicy(), j.Options.FailoverWait())
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

func (i *invocation) addStatus(s *sheet, state *jobsv1.JobState) {
	status := wordOf(state.GetStatus())
	if state.GetReason() != "" {
		status += ": " + state.GetReason()
	} else if state.GetStatus() == jobsv1.JobStatus_JOB_STATUS_WAITING && state.GetNextStartTime() == nil {
		status += fmt.Sprintf(", %d ahead", state.GetAhead())
	}
	s.add("Status", "%s", status)
	if state.GetWaitReason() != state.GetReason() {
		s.add("Run waits", "%s", state.GetWaitReason())
	}
	failing := state.GetFailing()
	if failing != nil {
		since := "since " + i.moment(toTime(failing.GetSince()))
		if state.GetStatus() != jobsv1.JobStatus_JOB_STATUS_FAILING {
			since += ": " + errorText(failing.GetErrorClass(), failing.GetErrorMessage())
		}
		s.add("Failing", "%s", since)
	}
	if failing.GetFailures() > 0 {
		s.add("Failures in a row", "%d", failing.GetFailures())
		s.add("Next run", "%s", i.when(toTime(failing.GetNextRunTime())))
	}
	s.add("Last start", "%s", i.when(toTime(state.GetLastStartTime())))
	s.add("Last end", "%s", i.when(toTime(state.GetLastEndTime())))
	const shown = 3
	next := make([]string, 0, shown)
	for n, at := range state.GetNextStartTimes() {
		if n == shown {
			break
		}
		next = append(next, i.when(toTime(at)))
	}
	s.add("Next", "%s", strings.Join(next, "\n"))
}

func (i *invocation) addContinuous(s *sheet, state *jobsv1.ContinuousState) {
	s.add("Phase", "%s", state.GetPhase())
	s.add("Iterations", "%d, %d failed, %d of these in a row", state.GetIterations(), state.GetFailed(), state.GetConsecutiveFailures())
	if state.GetInterrupted() > 0 {
		s.add("Interrupted", "%d", state.GetInterrupted())
	}
	if state.GetLostWorkers() > 0 {
		s.add("Lost workers", "%d, %d in a row", state.GetLostWorkers(), state.GetConsecutiveLostWorkers())
	}
	if since := toTime(state.GetFailingSinceTime()); !since.IsZero() {
		s.add("Failing", "since %s", i.when(since))
	}
	s.add("Totals", "%s", counts(state.GetTotals()))
	s.add("Next", "%s", i.when(toTime(state.GetNextTime())))
	s.add("Last success", "%s", i.when(toTime(state.GetLastSuccessTime())))
	s.add("Last error", "%s", state.GetLastError())
	i.addBinding(s, state.GetBinding())
}

// addBinding shows the service of a bound job, and its failovers.
func (i *invocation) addBinding(s *sheet, b *jobsv1.Binding) {
	s.add("Service", "%s", b.GetService())
	for _, rebind := range b.GetRebinds() {
		s.add("Rebound", "%s: %s → %s: %s", i.when(toTime(rebind.GetRebindTime())), rebind.GetOldService(), rebind.GetNewService(), rebind.GetReason())
	}
}

// iterationTable shows the iteration under way and those that have ended, the latest first.
func (i *invocation) iterationTable(iterations []*jobsv1.Run) *table {
	t := newTable("NUMBER", "STATUS", "START", "TOOK", "RESULT").spare("TOOK", "START")
	for _, it := range iterations {
		t.add(fmt.Sprint(it.GetIteration()), iterationWord(it), i.when(toTime(it.GetStartTime())), took(i.since(it)), resultText(it))
	}
	return t
}

// iterationWord is the status of an iteration.
func iterationWord(it *jobsv1.Run) string {
	if it.GetStatus() == jobsv1.RunStatus_RUN_STATUS_INTERRUPTED {
		return "cut short"
	}
	return wordOf(it.GetStatus())
}

// since is the duration of a run, up to now if it has not ended.
func (i *invocation) since(run *jobsv1.Run) time.Duration {
	end := toTime(run.GetEndTime())
	if end.IsZero() {
		end = i.Now()
	}
	return max(end.Sub(toTime(run.GetStartTime())), 0)
}
