package client

import (
	"cmp"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// Facts are what is known of a job, from lists, from a description or from what a reader
// has kept of both. [Facts.Row] says the status of the job; nothing else does.
type Facts struct {
	ID             string
	Type           string
	Mode           job.Mode
	Queue          string
	Owner          string
	Provider       job.Provider
	Tags           map[string]string
	DefinitionHash string
	// Bind are the tags that a worker has to have, as far as the definition is known.
	Bind map[string]string
	// Schedule is that of a recurring job.
	Schedule *ScheduleFacts
	// Own is the latest workflow that bears the id of the job: every mode but recurring.
	Own *OwnFacts
	// Waits says that an item of the job waits in Queue.
	Waits bool
	// Run is the latest run under way of a recurring job, and Latest the latest of its runs
	// that did something.
	Run    *RunFacts
	Latest LatestRun
	// Failing are the failures in a row that the ended runs of a recurring job have left,
	// or those of a continuous job's iterations.
	Failing *contract.Failing
	// Look is what a look at the run under way has found, nil if nobody has looked.
	Look *Look
	// Unserved is why no live worker can have taken the run under way, "" if one can, or if
	// nobody knows, see [Facts.Serve]. A look that finds a worker at it knows better.
	Unserved string
}

// ScheduleFacts are those of a schedule.
type ScheduleFacts struct {
	Paused bool
	// PauseReason and PauseEnd are set of a paused schedule, the latter if the pause ends by
	// itself.
	PauseReason string
	PauseEnd    time.Time
	// LastStart is the latest start, and LastRun the run of it.
	LastStart time.Time
	LastRun   RunRef
	// Next are the coming starts, also of a schedule that is paused.
	Next []time.Time
}

// OwnFacts are those of the workflow that bears the id of a job.
type OwnFacts struct {
	Run
	// Opened is when the workflow was made.
	Opened time.Time
	// Pause and Stopped are what the memo of a continuous job says.
	Pause   contract.Pause
	Stopped contract.Stopped
}

// RunFacts are those of a run under way.
type RunFacts struct {
	RunRef
	Started time.Time
	Build   string // as in [Run]
}

// LatestRun is what a job's latest run tells of it.
type LatestRun struct {
	Status  RunStatus
	Started time.Time
}

// see notes a run of a recurring job.
func (f *Facts) see(run Run) {
	if run.Status.Open() && (f.Run == nil || run.RunRef != f.Run.RunRef && run.Started.After(f.Run.Started)) {
		f.Run = &RunFacts{run.RunRef, run.Started, run.Build}
	}
	if f.Run != nil && f.Run.RunRef == run.RunRef {
		f.Run.Build = run.Build // Schedules do not know it.
	}
	if run.Status.Did() && !run.Started.Before(f.Latest.Started) {
		f.Latest = LatestRun{run.Status, run.Started}
	}
}

// Serve notes whether one of the live services serves the job.
func (f *Facts) Serve(services []LiveService) {
	n := Need{Type: f.Type, Bind: f.Bind}
	switch {
	case f.Run != nil:
		n.Build = f.Run.Build
	case f.Own != nil:
		n.Build = f.Own.Build
	}
	f.Unserved = n.unserved(services)
}

// Look is what the description of a workflow under way says, and lists do not.
type Look struct {
	// Ended says that it has ended since it was listed.
	Ended bool
	// Canceling says that it was asked to stop.
	Canceling bool
	// Taken says that a worker is at it, and WaitReason what it waits for.
	Taken      bool
	WaitReason string
	// Progresses says that the attempt has reported that something is done.
	Progresses bool
	// Blocked is why it is tried again until a person does something, nil if it is not.
	Blocked *contract.Failing
}

// Row is the job as a list shows it.
func (f *Facts) Row(now time.Time) JobRow {
	row := JobRow{
		ID: f.ID, Type: f.Type, Mode: f.Mode, Queue: f.Queue, Owner: f.Owner, Provider: f.Provider, Tags: f.Tags,
		Status: f.status(now), WaitReason: f.waitReason(now), UnderWay: f.underWay(now), LatestRun: f.latestRun(),
	}
	switch {
	case f.Schedule != nil:
		f.addSchedule(&row)
	case f.Own != nil && !f.waitsInQueue():
		f.addOwn(&row, now)
	}
	f.addFailing(&row)
	row.Reason = row.reason()
	return row
}

// status is that of the job. The order of the cases is the order of what people have to
// know first.
func (f *Facts) status(now time.Time) JobStatus {
	switch {
	case f.hasEnded():
		return endStatus(f.Own)
	case f.paused():
		return JobPaused
	case f.failing() != nil:
		return JobFailing // Also while a run is under way.
	case f.underWay(now) && f.Look != nil && f.Look.Canceling:
		return JobCanceling
	case f.waitReason(now) != "":
		return JobWaiting
	case f.underWay(now):
		return JobRunning
	case f.Schedule != nil:
		return JobScheduled
	default:
		return JobWaiting // For its turn, or for its time.
	}
}

// known reports whether there is a job, and not just a run of one that there was.
func (f *Facts) known() bool { return f.Schedule != nil || f.Own != nil || f.Waits }

// waitsInQueue reports whether the job waits for its turn. While a run of it is under way, what
// waits is a repeat, which is skipped at its turn.
func (f *Facts) waitsInQueue() bool {
	return f.Schedule == nil && f.Waits && (f.Own == nil || !f.Own.Status.Open())
}

// hasEnded reports whether the workflow that bears the job's id has ended, and that nothing else
// comes.
func (f *Facts) hasEnded() bool {
	return f.Schedule == nil && f.Own != nil && !f.Own.Status.Open() && !f.Waits
}

func (f *Facts) paused() bool {
	if f.Schedule != nil {
		return f.Schedule.Paused
	}
	return f.Own != nil && f.Own.Status.Open() && f.Own.Pause.Paused
}

// failing is how the job fails, nil if it does not.
func (f *Facts) failing() *contract.Failing {
	switch {
	case f.Schedule != nil:
		return f.Failing
	case f.Own == nil || !f.Own.Status.Open():
		return nil
	case f.Look != nil && f.Look.Blocked != nil:
		return f.Look.Blocked
	case f.Look != nil && f.Look.Progresses:
		return nil // Whatever the iterations before were.
	default:
		return f.Failing
	}
}

// underWay reports whether a run, or a continuous job, is at work or could be.
func (f *Facts) underWay(now time.Time) bool {
	if f.Schedule != nil {
		return f.Run != nil && (f.Look == nil || !f.Look.Ended)
	}
	return f.Own != nil && f.Own.Status.Open() && !f.Own.Pause.Paused && !now.Before(f.Own.Started)
}

// UnderWay names the run under way, or the workflow of the continuous job, for a look at
// it; false if there is none.
func (f *Facts) UnderWay(now time.Time) (RunRef, bool) {
	switch {
	case !f.underWay(now):
		return RunRef{}, false
	case f.Schedule != nil:
		return f.Run.RunRef, true
	default:
		return RunRef{WorkflowID: contract.JobWorkflowID(f.ID)}, true // Whichever goes on with it.
	}
}

// waitReason is what the run under way waits for.
func (f *Facts) waitReason(now time.Time) string {
	switch {
	case !f.underWay(now):
		return ""
	case f.Look == nil:
		return f.Unserved
	case f.Look.Taken:
		return ""
	default:
		return cmp.Or(f.Unserved, f.Look.WaitReason) // The same whether someone has looked.
	}
}

// latestRun is the status of the latest run that did something, "" of a continuous job.
func (f *Facts) latestRun() RunStatus {
	switch {
	case f.Schedule == nil && f.Own != nil && f.Own.Mode != job.ModeContinuous:
		return f.Own.Status
	case f.Schedule != nil && f.Latest.Status == "" && f.Failing != nil:
		return RunFailed // Schedules know their latest runs, which were all held back.
	default:
		return f.Latest.Status
	}
}

func (f *Facts) addSchedule(row *JobRow) {
	row.LastStart = f.Schedule.LastStart
	// A run that was started for another one is not among those of the schedule.
	if f.Run != nil && f.Run.RunRef != f.Schedule.LastRun && f.Run.Started.After(row.LastStart) {
		row.LastStart = f.Run.Started
	}
	if f.Schedule.Paused {
		row.PauseReason, row.PauseEnd = f.Schedule.PauseReason, f.Schedule.PauseEnd
	} else if len(f.Schedule.Next) > 0 {
		row.Next = f.Schedule.Next[0]
	}
}

// addOwn notes when the workflow that bears the job's id has begun, and how it has ended.
func (f *Facts) addOwn(row *JobRow, now time.Time) {
	own := f.Own
	row.LastStart, row.Ended = own.Started, own.Ended
	if own.Status.Open() && now.Before(own.Started) {
		row.LastStart, row.Next = time.Time{}, own.Started
	}
	switch row.Status {
	case JobPaused:
		row.PauseReason, row.PauseEnd = own.Pause.Reason, own.Pause.End
	case JobFailed:
		if row.Class, row.Error = own.Class, own.Error; row.Error == "" {
			row.Error = "the run " + strings.ReplaceAll(string(own.Status), "_", " ") // It was cut off.
		}
	case JobStopped, JobDeleted:
		row.StopReason = own.Stopped.Reason
	}
}

// addFailing notes how the job fails, and when it is tried again.
func (f *Facts) addFailing(row *JobRow) {
	failing := f.failing()
	if failing == nil {
		return
	}
	told := *failing
	if row.Failing = &told; row.Status == JobPaused {
		told.NextRun = time.Time{} // Nothing is tried until it is resumed.
		return
	}
	told.NextRun = later(told.NextRun, row.Next)
	row.Next = told.NextRun
}

// endStatus is the status of a job whose workflow has ended.
func endStatus(own *OwnFacts) JobStatus {
	continuous := own.Mode == job.ModeContinuous
	switch own.Status {
	case RunCompleted:
		switch {
		case continuous && own.Stopped.Deleted:
			return JobDeleted
		case continuous:
			return JobStopped
		}
		return JobCompleted
	case RunFailed, RunTimedOut:
		return JobFailed
	case RunTerminated:
		return JobTerminated
	default:
		if continuous && own.Stopped.Deleted {
			return JobDeleted
		}
		return JobStopped
	}
}

// LatestEnd is the latest ended run that tells whether a recurring job is failing. Its zero
// value knows of no run.
type LatestEnd struct {
	opened     time.Time
	definition string
	left       *contract.Failing
}

// Take notes a run. Those that were terminated leave what was before, and so do those that
// were tried again by hand and have not completed: the schedule takes no notice of them.
func (l *LatestEnd) Take(run SeenRun) {
	switch run.Status {
	case RunCompleted, RunFailed, RunCanceled, RunHeldBack, RunSuperseded:
	default:
		return
	}
	if run.Mode != job.ModeRecurring || run.Opened.Before(l.opened) || run.RetryOf != "" && run.Status != RunCompleted {
		return
	}
	*l = LatestEnd{opened: run.Opened, definition: run.DefinitionHash, left: run.Left}
}

// Failing are the failures in a row that a job with a definition has, nil if there are none.
func (l *LatestEnd) Failing(definition string) *contract.Failing {
	if l.definition != definition {
		return nil
	}
	return l.left
}
