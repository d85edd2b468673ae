package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/wording"
)

// MissedReason says why a start of a recurring job has no run.
type MissedReason string

// The reasons. They are concluded from what Temporal still knows; where that is not
// enough, the reason is unknown.
const (
	MissedOverlap    MissedReason = "overlap"       // a run was under way
	MissedPaused     MissedReason = "paused"        // the schedule was paused
	MissedSkipped    MissedReason = "skipped"       // someone had the schedule leave it out
	MissedServerLate MissedReason = "server_late"   // the run of another start was made late, for both
	MissedWindow     MissedReason = "missed_window" // the server was away, or behind, for longer than the catch-up window
	MissedBuffer     MissedReason = "buffer_full"   // more starts waited than a schedule keeps
	MissedSuperseded MissedReason = "superseded"    // its run gave way to a later start, as misfire has it
	MissedFailing    MissedReason = "failing"       // its run was held back: the job was failing, and not to be tried yet
	MissedUnknown    MissedReason = "unknown"
)

// LeftOut reports whether nobody waits for the run of such a start: people have paused the job or
// skipped the start, or its run was made, and did nothing since the definition says so.
// Every other start without a run is missed.
func (r MissedReason) LeftOut() bool {
	switch r {
	case MissedPaused, MissedSkipped, MissedSuperseded, MissedFailing:
		return true
	default:
		return false
	}
}

// MissedStart is a start of a recurring job that has no run, or one that did nothing.
type MissedStart struct {
	JobID     string       `json:"job_id"`
	Type      string       `json:"type"`
	Owner     string       `json:"owner,omitempty"`
	Scheduled time.Time    `json:"scheduled"`
	Reason    MissedReason `json:"reason"`
	// Detail says what the reason was concluded from.
	Detail string `json:"detail,omitempty"`
}

// JobStarts sums up the starts of one recurring job.
type JobStarts struct {
	JobID string `json:"job_id"`
	// From is when the report begins: what was asked for, or the time since which
	// the job is known to have the definition that is in force.
	From time.Time `json:"from"`
	// Scheduled counts the starts of the definition since, Runs those that have a run,
	// Waiting those that wait for a run under way to end, LeftOut those that nobody waits
	// for, and Missed the others.
	Scheduled int `json:"scheduled"`
	Runs      int `json:"runs"`
	Waiting   int `json:"waiting,omitempty"`
	LeftOut   int `json:"left_out,omitempty"`
	Missed    int `json:"missed"`
}

// StartsReport accounts for the starts of recurring jobs in a time.
type StartsReport struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Missed are the starts without a run that someone waits for, the latest first.
	Missed []MissedStart `json:"missed"`
	// LeftOut are those that nobody waits for, the latest first.
	LeftOut []MissedStart `json:"left_out"`
	// Jobs are those that were looked at, by id.
	Jobs []JobStarts `json:"jobs"`
}

// MissedFilter says which starts to look at. Empty fields do not narrow.
type MissedFilter struct {
	JobID string
	Type  string
	Owner string
	Tags  map[string]string
	Since time.Time // required
	// Until defaults to ten seconds ago: by then a run is in the lists.
	Until time.Time
}

// maxReportedStarts bounds the starts that one report looks at.
const maxReportedStarts = 10_000

// maxReportedRuns bounds the runs that are compared with them. There are more runs
// than starts where people have triggered jobs.
const maxReportedRuns = 4 * maxReportedStarts

// MissedAfter is how long after its time a start is looked at: by then a run of it is
// in the list.
const MissedAfter = 10 * time.Second

// Missed accounts for every start of recurring jobs since a time: it compares the
// times that their definitions name with the runs that there are. At most
// maxReportedStarts starts are looked at; more are an error.
func (c *JobClient) Missed(ctx context.Context, filter MissedFilter) (*StartsReport, error) {
	report := &StartsReport{Since: filter.Since, Until: filter.Until}
	if report.Until.IsZero() {
		report.Until = time.Now().Add(-MissedAfter)
	}
	lives, err := c.recurringJobs(ctx, filter)
	if err != nil || len(lives) == 0 {
		return report, err
	}
	runs, err := c.reportedRuns(ctx, filter)
	if err != nil {
		return nil, err
	}
	starts := 0
	for _, live := range lives {
		facts, err := live.StartFacts()
		if err != nil {
			return nil, err
		}
		account, err := AccountStarts(&live.Job, facts, runs[live.Job.ID], report.Since, report.Until, maxReportedStarts-starts)
		if err != nil {
			return nil, err
		}
		starts += account.Scheduled
		report.Missed = append(report.Missed, account.MissedStarts...)
		report.LeftOut = append(report.LeftOut, account.LeftOutStarts...)
		report.Jobs = append(report.Jobs, account.JobStarts)
	}
	sortLatestFirst(report.Missed)
	sortLatestFirst(report.LeftOut)
	return report, nil
}

func sortLatestFirst(starts []MissedStart) {
	slices.SortStableFunc(starts, func(a, b MissedStart) int {
		return cmp.Or(b.Scheduled.Compare(a.Scheduled), strings.Compare(a.JobID, b.JobID))
	})
}

// recurringJobs describes the recurring jobs that match, in the order of their ids.
func (c *conn) recurringJobs(ctx context.Context, filter MissedFilter) ([]*Live, error) {
	if filter.JobID != "" {
		live, err := c.jobs().Live(ctx, filter.JobID)
		if err != nil {
			return nil, err
		}
		if live.Schedule == nil {
			return nil, &UnsupportedError{Action: "accounting for starts", JobID: filter.JobID, Mode: live.Job.Mode()}
		}
		return []*Live{live}, nil
	}
	jobs, _, err := c.scanSchedules(ctx, "")
	if err != nil {
		return nil, err
	}
	var ids []string
	for id, facts := range jobs {
		if (filter.Type == "" || filter.Type == facts.Type) && (filter.Owner == "" || filter.Owner == facts.Owner) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	lives := make([]*Live, len(ids))
	err = temporalclient.Each(len(ids), 0, func(i int) (err error) {
		lives[i], err = c.jobs().LiveSchedule(ctx, ids[i])
		return err
	})
	return slices.DeleteFunc(lives, func(live *Live) bool {
		return live == nil || live.Job.Recurring == nil || !hasTags(live.Job.Options.Tags, filter.Tags)
	}), err
}

// DefinedRun is a run of a recurring job with the hash of its definition.
type DefinedRun struct {
	Run
	DefinitionHash string
}

// reportedRuns lists the runs of recurring jobs that were under way since a time, by
// job, in the order of their starts.
func (c *conn) reportedRuns(ctx context.Context, filter MissedFilter) (map[string][]DefinedRun, error) {
	since := quote(filter.Since.UTC().Format(time.RFC3339Nano))
	query := RunFilter{JobID: filter.JobID, Type: filter.Type, Owner: filter.Owner, Mode: job.ModeRecurring}.query() +
		fmt.Sprintf(" AND (StartTime >= %s OR CloseTime >= %s OR ExecutionStatus = 'Running')", since, since)
	runs, count := map[string][]DefinedRun{}, 0
	err := c.eachWorkflow(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) error {
		if count++; count > maxReportedRuns {
			return stateErrorf("there are more than %d runs since %s: look at one job, or a shorter time",
				maxReportedRuns, filter.Since.UTC().Format(time.RFC3339))
		}
		run := DefinedRun{newRun(info), temporalclient.Attribute(info.GetSearchAttributes(), contract.AttributeDefinitionHash.GetName())}
		runs[run.JobID] = append(runs[run.JobID], run)
		return nil
	})
	for _, list := range runs {
		slices.SortFunc(list, func(a, b DefinedRun) int { return a.Started.Compare(b.Started) })
	}
	return runs, err
}

// StartFacts are what the account of a job's starts needs of its schedule.
type StartFacts struct {
	// DefinitionHash is that of the definition in force.
	DefinitionHash string
	Paused         bool
	created        time.Time
	// changed is when the schedule was last changed or made.
	changed  time.Time
	pauses   []pauseSpan
	excluded []*schedulepb.StructuredCalendarSpec
	zone     *time.Location
	buffered int64
	// The server's own counts, since the schedule was made: of starts outside the catch-up
	// window, and of those that found the buffer full.
	window, buffer int64
}

// StartFacts gives those of a recurring job.
func (l *Live) StartFacts() (*StartFacts, error) {
	info, schedule := l.Schedule.GetInfo(), l.Schedule.GetSchedule()
	zone, err := time.LoadLocation(schedule.GetSpec().GetTimezoneName())
	if err != nil {
		return nil, fmt.Errorf("job %s: time zone: %w", l.Job.ID, err)
	}
	facts := &StartFacts{
		DefinitionHash: l.DefinitionHash, Paused: l.Paused, created: info.GetCreateTime().AsTime(), pauses: pausesOf(schedule),
		excluded: schedule.GetSpec().GetExcludeStructuredCalendar(), zone: zone, buffered: info.GetBufferSize(),
		window: info.GetMissedCatchupWindow(), buffer: info.GetBufferDropped(),
	}
	facts.changed = facts.created
	if info.GetUpdateTime() != nil {
		facts.changed = later(facts.created, info.GetUpdateTime().AsTime())
	}
	return facts, nil
}

// StartsAccount accounts for the starts of one job.
type StartsAccount struct {
	JobStarts
	// MissedStarts and LeftOutStarts are in the order of time.
	MissedStarts, LeftOutStarts []MissedStart
}

// accounting makes the account of one job.
type accounting struct {
	job *job.Job
	*StartFacts
	runs []DefinedRun

	report  JobStarts
	without []MissedStart
}

// ErrTooManyStarts says that there are more starts than an account may have.
var ErrTooManyStarts = stateErrorf("too many starts")

// AccountStarts compares the starts of a job since a time and until another with its runs,
// of which it takes those that were under way since then, in the order of their starts. All
// that counts or shows missed starts asks it. More starts than most are [ErrTooManyStarts].
func AccountStarts(j *job.Job, facts *StartFacts, runs []DefinedRun, since, until time.Time, most int) (*StartsAccount, error) {
	b := &accounting{job: j, StartFacts: facts, runs: runs}
	b.report = JobStarts{JobID: j.ID, From: later(since, b.definedSince())}
	times, err := j.Recurring.Times(j.ID)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", j.ID, err)
	}
	ran := map[int64]bool{}
	for _, run := range runs {
		if run.SupersededBy.IsZero() && run.HeldUntil.IsZero() {
			ran[run.Scheduled.UnixNano()] = true
		}
	}
	until = until.Add(-j.Recurring.Jitter.Std())
	var without []time.Time
	for at := range times.After(b.report.From.Add(-time.Nanosecond)) {
		if at.After(until) {
			break
		}
		if b.report.Scheduled++; b.report.Scheduled > most {
			return nil, fmt.Errorf("%w: there are more than %d since %s; look at one job, or a shorter time",
				ErrTooManyStarts, maxReportedStarts, since.UTC().Format(time.RFC3339))
		}
		if ran[at.UnixNano()] {
			b.report.Runs++
		} else {
			without = append(without, at)
		}
	}
	b.explain(without)
	account := &StartsAccount{}
	for _, start := range b.without {
		if start.Reason.LeftOut() {
			account.LeftOutStarts = append(account.LeftOutStarts, start)
		} else {
			account.MissedStarts = append(account.MissedStarts, start)
		}
	}
	b.report.Missed, b.report.LeftOut = len(account.MissedStarts), len(account.LeftOutStarts)
	account.JobStarts = b.report
	return account, nil
}

// definedSince is the time since which the definition in force is taken to be so:
// the first run that has its hash, after the last that has another. If
// there is none, it is when the schedule was last changed, unless that was but a
// pause or a resume.
func (b *accounting) definedSince() time.Time {
	since := b.changed
	if len(b.pauses) > 0 {
		latest := later(b.pauses[0].From, b.pauses[0].To)
		if since.Sub(latest).Abs() < pauseLag && !slices.ContainsFunc(b.runs, b.ofAnother) {
			since = b.created
		}
	}
	for _, run := range slices.Backward(b.runs) {
		if b.ofAnother(run) {
			break
		}
		if begin := run.dueOrStarted(); begin.Before(since) {
			since = begin
		}
	}
	return later(since, b.created)
}

// pauseLag is how far apart the time of a pause, as it is kept, and the server's time
// of the change may be.
const pauseLag = 2 * time.Second

// ofAnother reports whether a run had another definition.
func (b *accounting) ofAnother(run DefinedRun) bool {
	return run.DefinitionHash != b.DefinitionHash
}

func (r DefinedRun) dueOrStarted() time.Time {
	if r.Scheduled.IsZero() {
		return r.Started
	}
	return r.Scheduled
}

// explain finds reasons for the starts that have no run.
func (b *accounting) explain(starts []time.Time) {
	buffered := b.buffered
	for _, at := range starts {
		reason, detail := b.reason(at)
		if reason == MissedOverlap && buffered > 0 && b.afterLatest(at) {
			buffered--
			b.report.Waiting++
			continue
		}
		b.without = append(b.without, MissedStart{
			JobID: b.job.ID, Type: b.job.Type, Owner: b.job.Options.Owner.String(),
			Scheduled: at, Reason: reason, Detail: detail,
		})
	}
	b.missedWindow()
	for i, start := range b.without {
		if start.Reason == MissedUnknown {
			b.without[i].Reason, b.without[i].Detail = b.shortlyBefore(start.Scheduled)
		}
	}
}

// missedWindow gives that reason to the starts that nothing else explains, and after which the
// schedule made no run within the catch-up window, if the server counts as many. It counts
// since the schedule was made: those of long ago are no reason for a start of today.
func (b *accounting) missedWindow() {
	catchup := b.job.Recurring.Catchup().Std()
	var away []int
	counted := b.window
	for i, start := range b.without {
		if start.Reason == MissedWindow {
			counted--
		}
		if start.Reason == MissedUnknown && !slices.ContainsFunc(b.runs, func(run DefinedRun) bool {
			return !run.Scheduled.IsZero() && !run.Started.Before(start.Scheduled) && run.Started.Sub(start.Scheduled) <= catchup
		}) {
			away = append(away, i)
		}
	}
	if int64(len(away)) > counted {
		return
	}
	for _, i := range away {
		b.without[i].Reason = MissedWindow
		b.without[i].Detail = fmt.Sprintf("no run was made within the catch-up window, %s, and the server counts %d starts outside of it since %s",
			wording.Span(b.job.Recurring.Catchup().Std()), b.window, wording.Stamp(b.created))
	}
}

// afterLatest reports whether no run of a later start has begun.
func (b *accounting) afterLatest(at time.Time) bool {
	return !slices.ContainsFunc(b.runs, func(run DefinedRun) bool { return run.Scheduled.After(at) })
}

func (b *accounting) reason(at time.Time) (MissedReason, string) {
	for _, run := range b.runs {
		switch {
		case !run.Scheduled.Equal(at):
		case !run.HeldUntil.IsZero():
			return MissedFailing, "its run was held back until " + wording.Stamp(run.HeldUntil)
		default:
			return MissedSuperseded, "its run gave way to the start of " + wording.Stamp(run.SupersededBy)
		}
	}
	if calendar := b.excludes(at); calendar != nil {
		return MissedSkipped, calendar.GetComment()
	}
	for _, span := range b.pauses {
		if span.covers(at) {
			return MissedPaused, "paused at " + wording.Stamp(span.From)
		}
	}
	if b.Paused && at.After(b.changed) {
		return MissedPaused, "paused, and not changed since " + wording.Stamp(b.changed)
	}
	if reason, detail := b.overlap(at); reason != "" {
		return reason, detail
	}
	if run := b.madeLateFor(at); run != nil {
		return MissedServerLate, fmt.Sprintf("the start of %s was only made at %s, and makes up for it",
			wording.Stamp(run.Scheduled), wording.Stamp(run.Started))
	}
	if run := b.madeTooLateFor(at); run != nil {
		return MissedWindow, fmt.Sprintf("the start of %s was only made at %s, when the catch-up window of this one, %s, was over",
			wording.Stamp(run.Scheduled), wording.Stamp(run.Started), wording.Span(b.job.Recurring.Catchup().Std()))
	}
	return MissedUnknown, ""
}

// surelyLate is by how much a run is late that a server in good health makes sooner.
const surelyLate = time.Second

// madeLateFor finds the run of another start that was made when this one was due as well, and
// so for both: of starts that are due at once, a schedule makes the first, or the last where
// each ends the one before.
func (b *accounting) madeLateFor(at time.Time) *DefinedRun {
	for i := range b.runs {
		if run := &b.runs[i]; !run.Scheduled.IsZero() && run.Scheduled.Before(at) && !run.Started.Before(at) {
			return run
		}
	}
	policy := b.job.Recurring.OverlapPolicy()
	if policy != job.OverlapCancelOther && policy != job.OverlapTerminateOther {
		return nil
	}
	if next := b.lateAfter(at, surelyLate); next != nil && next.Started.Sub(at) <= b.job.Recurring.Catchup().Std() {
		return next
	}
	return nil
}

// madeTooLateFor finds the run of the next start, if it was made late, and when the catch-up
// window of this one was over: the server was away or busy, or this one waited for others too
// long. The server does not count all such starts: one that it failed to make is in no count.
func (b *accounting) madeTooLateFor(at time.Time) *DefinedRun {
	if next := b.lateAfter(at, scheduleLag); next != nil && next.Started.Sub(at) > b.job.Recurring.Catchup().Std() {
		return next
	}
	return nil
}

// lateAfter is the run of the next start that has one, if it was made that late.
func (b *accounting) lateAfter(at time.Time, by time.Duration) (next *DefinedRun) {
	for i := range b.runs {
		if run := &b.runs[i]; run.Scheduled.After(at) && (next == nil || run.Scheduled.Before(next.Scheduled)) {
			next = run
		}
	}
	if next == nil || next.Started.Sub(next.Scheduled) < b.job.Recurring.Jitter.Std()+by {
		return nil
	}
	return next
}

// scheduleLag is how late a schedule may take note of the end of a run, or of a
// resume: on a busy server, and above all after a crash of it.
const scheduleLag = 10 * time.Second

// lostTaskLag is that of a schedule that made its next run late: a task of it may have been
// lost, which Temporal gives out anew after ten seconds.
const lostTaskLag = 15 * time.Second

// maxChangeLag is how long a change of a schedule may wait for a server that is away.
const maxChangeLag = time.Minute

// shortlyBefore finds what a schedule may not have noted yet at a start.
func (b *accounting) shortlyBefore(at time.Time) (MissedReason, string) {
	lag := scheduleLag
	if b.lateAfter(at, surelyLate) != nil {
		lag = lostTaskLag
	}
	lately := func(ended time.Time) bool { return !ended.After(at) && at.Sub(ended) < lag }
	for i, span := range b.pauses {
		// The server may have taken the last change long after it was asked for.
		waited := i == 0 && at.Before(b.changed) && b.changed.Sub(span.To) < maxChangeLag
		if !span.To.IsZero() && !at.Before(span.To) && (lately(span.To) || waited) {
			return MissedPaused, "paused at " + wording.Stamp(span.From) + ", and resumed shortly before"
		}
	}
	switch b.job.Recurring.OverlapPolicy() {
	case job.OverlapSkip, job.OverlapBufferOne:
		for _, run := range b.runs {
			if run.Scheduled.IsZero() || !lately(run.Ended) {
				continue
			}
			if at.Before(run.HeldUntil) {
				return MissedFailing, heldBackWith(run)
			}
			if at.After(run.Scheduled) {
				return MissedOverlap, fmt.Sprintf("run %s had ended shortly before", run.WorkflowID)
			}
		}
	}
	return MissedUnknown, ""
}

// heldBackWith is the detail of a start that a run kept from taking place which was held back
// itself.
func heldBackWith(run DefinedRun) string {
	return fmt.Sprintf("run %s was held back until %s", run.WorkflowID, wording.Stamp(run.HeldUntil))
}

// overlap finds a run that kept a start from taking place.
func (b *accounting) overlap(at time.Time) (MissedReason, string) {
	policy := b.job.Recurring.OverlapPolicy()
	if policy == job.OverlapAllowAll {
		return "", ""
	}
	due := at.Add(b.job.Recurring.Jitter.Std())
	for _, run := range b.runs {
		if run.Started.After(due) || !run.Ended.IsZero() && run.Ended.Before(at) || run.Scheduled.IsZero() {
			continue
		}
		if at.Before(run.HeldUntil) {
			return MissedFailing, heldBackWith(run) // It would have been held back as well.
		}
		if policy == job.OverlapBufferAll && b.buffer > 0 {
			return MissedBuffer, fmt.Sprintf("the server counts %d starts that found the buffer full", b.buffer)
		}
		if policy == job.OverlapBufferAll && !b.afterLatest(at) {
			return "", "" // It waited, and was given up for another reason.
		}
		return MissedOverlap, fmt.Sprintf("run %s was under way", run.WorkflowID)
	}
	return "", ""
}

// excludes gives the calendar that keeps a start from taking place.
func (b *accounting) excludes(at time.Time) *schedulepb.StructuredCalendarSpec {
	local := at.In(b.zone)
	for _, calendar := range b.excluded {
		if inRanges(calendar.GetSecond(), local.Second(), false) && inRanges(calendar.GetMinute(), local.Minute(), false) &&
			inRanges(calendar.GetHour(), local.Hour(), false) && inRanges(calendar.GetDayOfMonth(), local.Day(), true) &&
			inRanges(calendar.GetMonth(), int(local.Month()), true) && inRanges(calendar.GetDayOfWeek(), int(local.Weekday()), true) &&
			inRanges(calendar.GetYear(), local.Year(), true) {
			return calendar
		}
	}
	return nil
}

// inRanges reports whether a value is in one of the ranges of a calendar's field. No
// ranges are every value where a field is of a date, and zero where it is of a
// clock.
func inRanges(ranges []*schedulepb.Range, value int, date bool) bool {
	if len(ranges) == 0 {
		return date || value == 0
	}
	for _, r := range ranges {
		start, end, step := int(r.GetStart()), max(int(r.GetEnd()), int(r.GetStart())), max(int(r.GetStep()), 1)
		if value >= start && value <= end && (value-start)%step == 0 {
			return true
		}
	}
	return false
}
