package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// Run is one run of a job, or in continuous mode an iteration.
type Run struct {
	RunRef
	JobID  string    `json:"job_id"`
	Type   string    `json:"type"`
	Mode   job.Mode  `json:"mode"`
	Queue  string    `json:"queue,omitempty"`
	Owner  string    `json:"owner,omitempty"`
	Status RunStatus `json:"status"`
	// Build is the build that the run is pinned to, as DEPLOYMENT:BUILD; empty if workers are
	// not versioned, or none has taken it yet.
	Build string `json:"build,omitempty"`
	// WaitReason says what a run waits for that is to run now. Lists do not know it unless
	// they have looked at the run, see [RunClient.AddProgress].
	WaitReason string `json:"wait_reason,omitempty"`
	// Iteration is the number of a continuous job's iteration; 0 of a run.
	Iteration int64 `json:"iteration,omitempty"`
	// Scheduled is when the run was due: a recurring one, or one for later.
	Scheduled time.Time `json:"scheduled,omitzero"`
	// Started is when the run was started, Taken when a worker took it: lists
	// know that of runs that have ended.
	Started time.Time `json:"started"`
	Taken   time.Time `json:"taken,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Took is how long a run that has ended was under way.
	Took job.Duration `json:"duration,omitempty"`
	// LastUpdate is the latest sign of life that is known.
	LastUpdate time.Time `json:"last_update"`
	// Lateness is how much later than it was due the run was taken by a worker,
	// or, until that is known, started.
	Lateness job.Duration `json:"lateness,omitempty"`
	// Attempts counts the tries, Handovers those of them that a worker began
	// since another had shut down or died.
	Attempts  int    `json:"attempts,omitempty"`
	Handovers int    `json:"handovers,omitempty"`
	Worker    string `json:"worker,omitempty"`
	// Progress is that of a run under way, if it was asked for.
	Progress *job.Progress `json:"progress,omitempty"`
	// Message and Counts are the result; Class and Error say why there is none.
	Message string           `json:"message,omitempty"`
	Counts  map[string]int64 `json:"counts,omitempty"`
	Class   string           `json:"class,omitempty"`
	Error   string           `json:"error,omitempty"`
	// SupersededBy is the start that the run gave way to without doing anything.
	SupersededBy time.Time `json:"superseded_by,omitzero"`
	// HeldUntil is the next run of the job, of a run that was held back.
	HeldUntil time.Time `json:"held_until,omitzero"`
	// RetryOf is the run id of the run that this one was started in place of.
	RetryOf string `json:"retry_of,omitempty"`
}

// Duration is how long the run has taken so far.
func (r Run) Duration() time.Duration {
	if r.Ended.IsZero() {
		return max(time.Since(r.Started), 0)
	}
	return max(r.Ended.Sub(r.Started), 0)
}

// Delayed reports whether the run waits for its time.
func (r *Run) Delayed() bool { return r.Status == RunWaiting && r.WaitReason == "" }

// scheduledStart is the search attribute of a run's nominal time, which
// schedules set.
const scheduledStart = "TemporalScheduledStartTime"

func newRun(info *workflowpb.WorkflowExecutionInfo) Run {
	attributes := info.GetSearchAttributes()
	run := Run{
		RunRef:  RunRef{WorkflowID: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId()},
		JobID:   temporalclient.Attribute(attributes, contract.AttributeJobID.GetName()),
		Type:    temporalclient.Attribute(attributes, contract.AttributeJobType.GetName()),
		Mode:    job.Mode(temporalclient.Attribute(attributes, contract.AttributeJobMode.GetName())),
		Queue:   temporalclient.Attribute(attributes, contract.AttributeQueue.GetName()),
		Owner:   temporalclient.Attribute(attributes, contract.AttributeOwner.GetName()),
		Build:   temporalclient.Attribute(attributes, deploymentVersion),
		Status:  runStatus(info.GetStatus()),
		Started: info.GetStartTime().AsTime(),
	}
	if payload, ok := attributes.GetIndexedFields()[scheduledStart]; ok {
		if err := temporalclient.DecodePayload(payload, &run.Scheduled); err != nil {
			run.Scheduled = time.Time{}
		}
	}
	// Both times are of one clock: they differ by the delay that was asked for.
	if begins := info.GetExecutionTime(); begins != nil && begins.AsTime().After(run.Started) {
		run.Scheduled = begins.AsTime()
		if ended := info.GetCloseTime(); ended == nil || ended.AsTime().After(run.Scheduled) {
			run.Started = run.Scheduled // Else it was taken back before.
		}
		if run.Status == RunRunning && time.Now().Before(run.Started) {
			run.Status = RunWaiting
		}
	}
	if run.LastUpdate = run.Started; run.Status == RunWaiting {
		run.LastUpdate = info.GetStartTime().AsTime() // When it was asked for.
	}
	if t := info.GetCloseTime(); t != nil {
		run.Ended, run.LastUpdate = t.AsTime(), t.AsTime()
		run.Took = job.Duration(run.Duration())
	}
	run.addMemo(info)
	if !run.Scheduled.IsZero() && run.Status != RunWaiting {
		run.Lateness = job.Duration(max(later(run.Started, run.Taken).Sub(run.Scheduled), 0))
	}
	return run
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// addMemo adds what the run itself has left in its memo.
func (r *Run) addMemo(info *workflowpb.WorkflowExecutionInfo) {
	if !temporalclient.MemoField(info.GetMemo(), contract.MemoRetryOf, &r.RetryOf) {
		r.RetryOf = ""
	}
	if info.GetMemo().GetFields()[contract.MemoEnd] == nil {
		return // The row has what the list itself knows.
	}
	end := endOf(info)
	r.Taken, r.Attempts, r.Handovers, r.Worker = end.Taken, end.Attempts, end.Handovers, end.Worker
	r.SupersededBy, r.HeldUntil = end.SupersededBy, end.HeldUntil
	switch {
	case !r.HeldUntil.IsZero():
		r.Status = RunHeldBack
	case !r.SupersededBy.IsZero():
		r.Status = RunSuperseded
	}
	r.Message, r.Counts, r.Class, r.Error = end.Message, end.Counts, end.Class, end.Error
}

// endOf is how a run has ended, as its memo has it.
func endOf(info *workflowpb.WorkflowExecutionInfo) contract.RunEnd {
	var end contract.RunEnd
	if !temporalclient.MemoField(info.GetMemo(), contract.MemoEnd, &end) {
		return contract.RunEnd{}
	}
	return end
}

// List lists runs, the latest first. A run that was started within the last
// second may be missing: the list is eventually consistent. With a job of
// continuous mode it lists the iterations that the job remembers, for which a
// live worker has to answer.
func (c *RunClient) List(ctx context.Context, filter RunFilter) ([]Run, error) {
	if filter.JobID != "" && (filter.Mode == "" || filter.Mode == job.ModeContinuous) {
		live, err := c.jobs().LiveWorkflow(ctx, filter.JobID)
		if err != nil && !errors.Is(err, ErrNotOurs) {
			return nil, err
		}
		if live != nil && live.Workflow.Type == contract.ContinuousJobType {
			return c.iterations(ctx, live, filter)
		}
	}
	return c.listRuns(ctx, filter)
}

// listRuns lists the runs that are workflows.
func (c *conn) listRuns(ctx context.Context, filter RunFilter) ([]Run, error) {
	var runs []Run
	err := c.scanRuns(ctx, filter, func(run Run, _ *workflowpb.WorkflowExecutionInfo) { runs = append(runs, run) })
	return runs, err
}

// scanRuns goes through the runs that match, at most as many as the limit says.
func (c *conn) scanRuns(ctx context.Context, filter RunFilter, visit func(Run, *workflowpb.WorkflowExecutionInfo)) error {
	if filter.impossible() {
		return nil
	}
	if !filter.needsLook() {
		return c.listWorkflows(ctx, filter.query(), filter.Limit, func(info *workflowpb.WorkflowExecutionInfo) {
			visit(newRun(info), info)
		})
	}
	found := 0
	enough := errors.New("enough")
	err := c.eachWorkflow(ctx, filter.query(), 0, func(info *workflowpb.WorkflowExecutionInfo) error {
		run := newRun(info)
		if filter.asksHowOpen() && run.Status == RunRunning {
			runs := []Run{run}
			if _, err := c.runs().lookAtRuns(ctx, runs); err != nil {
				return err
			}
			run = runs[0]
		}
		if !filter.matches(run, info) {
			return nil
		}
		visit(run, info)
		if found++; found == filter.Limit {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		return nil
	}
	return err
}

// AddProgress adds attempts, worker and progress to the runs of a list that are
// under way, and whether they wait for a worker or are being canceled, which lists do not
// know: one short call for each, for the first 100.
func (c *RunClient) AddProgress(ctx context.Context, runs []Run) error {
	details, err := c.lookAtRuns(ctx, runs)
	if err != nil {
		return err
	}
	return c.serveRuns(ctx, details...)
}

// lookAtRuns is AddProgress without the reasons that follow from what live workers serve. It gives
// what it has found.
func (c *RunClient) lookAtRuns(ctx context.Context, runs []Run) ([]waitingRun, error) {
	var open []int
	for i, run := range runs {
		if run.Status == RunRunning && run.Iteration == 0 && len(open) < MaxLooks {
			open = append(open, i)
		}
	}
	looked := make([]waitingRun, len(open))
	err := temporalclient.Each(len(open), 0, func(n int) error {
		run := &runs[open[n]]
		detail, err := c.look(ctx, run.RunRef)
		if errors.Is(err, ErrNotFound) {
			return nil // Its history was deleted since.
		}
		if err == nil {
			*run = detail.Run
			looked[n] = waitingRun{run, detail.need()}
		}
		return err
	})
	return slices.DeleteFunc(looked, func(w waitingRun) bool { return w.run == nil || w.run.WaitReason == "" }), err
}

// waitingRun is a run that no worker has taken, with what it needs of one.
type waitingRun struct {
	run  *Run
	need Need
}

// need is what the run needs of a worker.
func (d *RunDetail) need() Need {
	n := Need{Type: d.Type, Build: d.Build}
	if d.Job != nil {
		n.Bind = d.Job.Options.Bind
	}
	return n
}

// serveRuns has runs that wait say whether a live worker serves them, as their jobs do. Where
// workers cannot be read, that is not known.
func (c *RunClient) serveRuns(ctx context.Context, waiting ...waitingRun) error {
	if len(waiting) == 0 {
		return nil
	}
	services, err := (&WorkerClient{c.conn}).Services(ctx, time.Time{})
	if errors.Join(err, services.Unreadable) != nil {
		return ctx.Err()
	}
	for _, w := range waiting {
		w.run.WaitReason = cmp.Or(w.need.unserved(services.Live), w.run.WaitReason)
	}
	return nil
}
