package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func jobStatuses() []string { return wordsOf(jobsv1.JobStatus(0)) }

func (i *invocation) jobsCommand() *cobra.Command {
	return group("jobs", "List, describe and change jobs", append(i.jobVerbCommands(),
		i.jobsListCommand(), i.jobsDescribeCommand(), i.jobsNextCommand(), i.skipNextCommand(), i.backfillCommand())...)
}

func (i *invocation) jobsListCommand() *cobra.Command {
	var filter jobFilters
	var page paging
	var since, until time.Time
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the jobs in Temporal",
		Long: `list shows the jobs in Temporal, in the order of their ids: all recurring ones, and
the others as long as their latest run is within the retention of the namespace. A
change may take a second to appear. Jobs that wait in a queue are listed only if a
worker is running.

Jobs that have ended are left out: one-shot and queued ones unless they failed, and
jobs that were deleted. --all lists them, and so does --status.

Whether a live worker serves a job is known of all. Of the first hundred jobs under way
the status also says whether one has taken the run, and whether it is being canceled.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := page.check(cmd); err != nil {
				return err
			}
			q := filter.query(i)
			q.bound("last_start_time", since, until)
			found, err := i.findJobs(cmd.Context(), &filter, &jobsv1.ListJobsRequest{
				Filter: q.String(), LeaveOutEnded: !all && filter.status == "", PageToken: page.token,
			}, page.limit)
			if err != nil {
				return err
			}
			i.noteEmpty("job", len(found.GetJobs()))
			if err := i.emit(found, func(w io.Writer) error { return i.writeJobs(w, found.GetJobs()) }); err != nil {
				return err
			}
			i.noteMore(found.GetNextPageToken())
			if left := int(found.GetEndedLeftOut()); left > 0 {
				i.note("%s left out: --all lists them.", plural(left, "job that has ended is", "jobs that have ended are"))
			}
			return nil
		},
	}
	filter.register(i, cmd)
	page.register(cmd, "jobs", 0)
	cmd.Flags().Var(sinceValue{&since, i.Now}, "since", "only jobs whose latest run started since: 2026-05-01T12:00:00Z, or PT1H for the last hour")
	cmd.Flags().Var(sinceValue{&until, i.Now}, "until", "only jobs whose latest run started before")
	cmd.Flags().BoolVar(&all, "all", false, "also jobs that have ended")
	return cmd
}

// jobFilters are the flags by which jobs are found.
type jobFilters struct {
	filters
	status string
	queue  string
}

func (f *jobFilters) register(i *invocation, cmd *cobra.Command) {
	f.filters.register(i, cmd, "jobs", job.Modes()...)
	cmd.Flags().Var(choose(&f.status, jobStatuses()...), "status", "only jobs with this status: "+strings.Join(jobStatuses(), ", "))
	cmd.Flags().Var(nameValue{&f.queue}, "queue", "only jobs of this queue")
	completeFixed(cmd, "status", jobStatuses()...)
	f.names = append(f.names, "status", "queue")
}

// query is the filter of the Job API that the flags make.
func (f *jobFilters) query(i *invocation) *query {
	q := f.filters.query(i)
	q.is("status", f.status)
	q.is("queue", f.queue)
	return q
}

// findJobs lists the jobs that match, up to a limit, and notes the queues that could not be
// read.
func (i *invocation) findJobs(ctx context.Context, f *jobFilters, request *jobsv1.ListJobsRequest, limit int) (*jobsv1.ListJobsResponse, error) {
	found, err := listSome(ctx, i.api.Jobs.ListJobs, request, limit, func(r *jobsv1.ListJobsResponse) int { return len(r.GetJobs()) })
	if err != nil {
		return nil, err
	}
	slices.Sort(found.Unreachable) // Each page names them.
	found.Unreachable = slices.Compact(found.Unreachable)
	for _, queue := range found.GetUnreachable() {
		i.note("The items that wait in queue %s are not shown: the queue does not answer.", queue)
	}
	return found, f.checkMatch(i, len(found.GetJobs()))
}

// briefNote is how many characters of a note a table shows; describe has all.
const briefNote = 60

func inBrief(note string) string { return shortened(note, briefNote) }

func (i *invocation) writeJobs(w io.Writer, jobs []*jobsv1.Job) error {
	t := newTable("JOB", "MODE", "STATUS", "LAST START", "NEXT", "OWNER", "NOTE").spare("OWNER", "MODE", "LAST START", "NEXT", "NOTE")
	for _, j := range jobs {
		state := j.GetState()
		t.add(j.GetId(), string(api.ModeOf(j)), wordOf(state.GetStatus()), i.when(toTime(state.GetLastStartTime())),
			i.when(toTime(state.GetNextStartTime())), j.GetOptions().GetOwner(), i.jobNote(j))
	}
	return t.write(w)
}

// jobNote is the cell NOTE of a job: its queue, and why it is in its status.
func (i *invocation) jobNote(j *jobsv1.Job) string {
	why := j.GetState().GetReason()
	if queue := j.GetQueued().GetQueue(); queue != "" {
		if why = strings.TrimSuffix("queue "+queue+": "+why, ": "); j.GetState().GetErrorMessage() == "" {
			return why
		}
	}
	return inBrief(why)
}

// errorText is an error with its class, if it has one.
func errorText(class, message string) string {
	if class == "" || message == "" {
		return message
	}
	return class + ": " + message
}
