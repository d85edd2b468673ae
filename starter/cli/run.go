package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

func (i *invocation) runCommand() *cobra.Command {
	var ad adHoc
	var file string
	var detach bool
	var again bool
	var start startTime
	cmd := &cobra.Command{
		Use:   "run JOB | --type TYPE",
		Short: "Run a job now and wait for its end",
		Long: `run starts a job now, one that is in Temporal or, with -f, one of a jobs file, and
waits for the end of the run. What is started depends on the job's mode:

  one-shot     another run of it
  recurring    a run besides its schedule, which does not change
  continuous   the next iteration, at once instead of after the interval
  queued       its run, after the items before it in its queue

With --at or --in, a one-shot starts later: its run waits in Temporal, where runs
list shows it and runs cancel cancels it. A one-shot has one run at a time: the same
command given twice starts one run.

With --type the command defines and runs a one-shot. It checks the spec first and
shows all problems. With --key the job runs once: if a run with that key and that
spec is running or has completed, the command shows that run, so that a script may
repeat it. A run that failed or was canceled starts again, as every run does with
--again. Another spec under the same key is refused.

Ctrl-C ends the waiting, not the run. With --detach the command does not wait.

Exit codes: 0 the run completed; 1 it failed, was canceled or could not be started,
or the waiting was interrupted.`,
		Example: `  starter run live_load_influx_v1.common
  starter run --type GeneratePhotoVariantsToMinio --spec '{"bucket": "uploads", "key": "a.jpg"}'
  starter run --type GeneratePhotoVariantsToMinio --key a --spec '{"bucket": "uploads", "key": "a.jpg"}'`,
		Args:              arguments("[JOB]"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkRunArguments(cmd, args, &ad); err != nil {
				return err
			}
			at, err := start.time(cmd, i.Now())
			if err != nil {
				return err
			}
			started, err := i.startRun(cmd.Context(), args, ad, file, oneShotStart{at: at, once: ad.key != "" && !again})
			if err != nil {
				return err
			}
			if detach || !at.IsZero() && !started.Completed {
				return i.reportStarted(started)
			}
			return i.await(cmd.Context(), started)
		},
	}
	ad.register(i, cmd)
	cmd.Flags().VarP(textValue{&file, argumentFile}, "file", "f", "take the job from this jobs file, not from Temporal")
	start.register(cmd)
	cmd.Flags().BoolVar(&again, "again", false, "run a job defined with --type and --key again although it has completed, or, once it has ended, with another spec")
	cmd.Flags().BoolVar(&detach, "detach", false, "print what was started, and do not wait")
	return cmd
}

func checkRunArguments(cmd *cobra.Command, args []string, ad *adHoc) error {
	if (len(args) == 1) == (ad.typeName != "") {
		return misuse(cmd, "give either JOB or --type")
	}
	if ad.typeName != "" && cmd.Flags().Changed("file") {
		return misuse(cmd, "-f goes with JOB, not with --type")
	}
	if cmd.Flags().Changed("again") && ad.key == "" {
		return misuse(cmd, "--again goes with --type and --key")
	}
	return needsType(cmd, ad)
}

func needsType(cmd *cobra.Command, ad *adHoc) error {
	for _, name := range ad.flagNames() {
		if ad.typeName == "" && cmd.Flags().Changed(name) {
			return misuse(cmd, "--%s goes with --type", name)
		}
	}
	return nil
}

// started is what run or trigger started: exactly one of Run, Iteration and Receipt is
// set.
type started struct {
	Job job.Job `json:"job"`
	// Run is a run that was started, or that was under way already.
	Run *client.RunRef `json:"run,omitempty"`
	// Iteration is the number of a continuous job's iteration.
	Iteration int64 `json:"iteration,omitempty"`
	// Receipt is the place in the queue.
	Receipt *contract.EnqueueReceipt `json:"receipt,omitempty"`
	// At is when the run begins, if that is later.
	At time.Time `json:"at,omitzero"`
	// Completed says that the run had completed already: nothing was started.
	Completed bool `json:"already_completed,omitempty"`

	client *client.Client
}

// oneShotStart is how a one-shot is started.
type oneShotStart struct {
	at   time.Time // zero: now
	once bool      // unless it has completed
}

func (i *invocation) startRun(ctx context.Context, args []string, ad adHoc, file string, start oneShotStart) (*started, error) {
	var j job.Job
	switch {
	case ad.typeName != "":
		defined, err := i.defineOneShot(ad)
		if err != nil {
			return nil, err
		}
		j = defined
	case file != "":
		declared, err := i.declared(file, args[0])
		if err != nil {
			return nil, err
		}
		j = declared
	}
	c, err := i.connect(ctx)
	if err != nil {
		return nil, err
	}
	if j.ID == "" {
		live, err := c.Jobs.Live(ctx, args[0])
		if err != nil {
			return nil, aboutJob(c, args[0], err)
		}
		j = live.Job
	}
	return i.trigger(ctx, c, j, start)
}

func (i *invocation) defineOneShot(ad adHoc) (job.Job, error) {
	j, checker, err := i.definition(ad, job.Trigger{OneShot: &job.OneShot{}})
	if err != nil {
		return job.Job{}, err
	}
	spec, err := i.readSpec(ad.spec)
	if err != nil {
		return job.Job{}, err
	}
	j, problems := checker.complete(j, ad.key, spec)
	if len(problems) == 0 {
		return j, nil
	}
	errs := make([]error, len(problems))
	for n, problem := range problems {
		errs[n] = fmt.Errorf("job type %s: %s", j.Type, problem)
	}
	return job.Job{}, errors.Join(errs...)
}

// declared finds a job in a jobs file.
func (i *invocation) declared(file, jobID string) (job.Job, error) {
	jobs, err := i.load(file)
	if err != nil {
		return job.Job{}, err
	}
	for _, j := range jobs {
		if j.ID == jobID {
			return j, nil
		}
	}
	return job.Job{}, fmt.Errorf("%s declares no job %s", file, jobID)
}

// trigger starts a run of a job, in the way of its mode.
func (i *invocation) trigger(ctx context.Context, c *client.Client, j job.Job, start oneShotStart) (*started, error) {
	s := &started{Job: j, At: start.at, client: c}
	if !start.at.IsZero() && j.Mode() != job.ModeOneShot {
		return nil, fmt.Errorf("job %s is %s: only a one-shot can be started for later", j.ID, j.Mode())
	}
	if j.Mode() == job.ModeContinuous {
		number, err := c.Jobs.TriggerIteration(ctx, j.ID)
		s.Iteration = number
		return s, aboutJob(c, j.ID, err)
	}
	var underWay string
	if j.Mode() == job.ModeOneShot {
		var err error
		if underWay, err = i.checkOneShot(ctx, c, j); err != nil {
			return nil, err
		}
	}
	if err := i.startJob(ctx, s, start); err != nil {
		return nil, err
	}
	// Not earlier: a start for another time than that of the run that waits is refused.
	if underWay != "" && !s.Completed {
		i.note("%s", underWay)
	}
	return s, nil
}

// startJob starts a run of a job that has runs.
func (i *invocation) startJob(ctx context.Context, s *started, start oneShotStart) error {
	if start.once {
		return i.runOnce(ctx, s)
	}
	if !start.at.IsZero() {
		ref, err := s.client.Runs.StartAt(ctx, s.Job, contract.StartedByHand, start.at, "")
		s.Run = &ref
		return err
	}
	triggered, err := s.client.Jobs.TriggerJob(ctx, s.Job)
	if err != nil {
		return aboutJob(s.client, s.Job.ID, err)
	}
	if s.Receipt = triggered.Receipt; s.Receipt == nil {
		s.Run = &triggered.Run
	}
	return nil
}

// runOnce starts a one-shot unless it has completed.
func (i *invocation) runOnce(ctx context.Context, s *started) error {
	once, err := s.client.Runs.StartOnce(ctx, s.Job, contract.StartedByHand, s.At)
	if err != nil {
		return aboutKey(err)
	}
	s.Run, s.Completed = &once.RunRef, once.ExistedBefore && once.Status == client.RunCompleted
	if s.Completed {
		i.note("Job %s has completed already; this is its run. With --again it runs again.", s.Job.ID)
	}
	return nil
}

// aboutKey adds to an error how to run a key with another spec.
func aboutKey(err error) error {
	if errors.Is(err, client.ErrOtherSpec) {
		return fmt.Errorf("%w than this one; give another --key, or --again to run this one under it", err)
	}
	return err
}

// errUnderWay refuses a spec other than that of the run that has not ended.
func errUnderWay(jobID string) error {
	return fmt.Errorf("a run of job %s with another spec is running: wait for its end, or stop it", jobID)
}

// checkOneShot refuses a start if the id of a one-shot belongs to another job. If a run
// of the job has not ended, a start returns that run: the result is a note about it.
func (i *invocation) checkOneShot(ctx context.Context, c *client.Client, j job.Job) (underWay string, err error) {
	live, err := c.Jobs.LiveSchedule(ctx, j.ID)
	if err == nil && live == nil {
		live, err = c.Jobs.LiveWorkflow(ctx, j.ID)
	}
	switch {
	case err != nil || live == nil:
		return "", err
	case live.Schedule == nil && !live.Workflow.Open() && live.Job.Provider == j.Provider:
		return "", nil
	case live.Job.Mode() != job.ModeOneShot || live.Job.Provider != j.Provider:
		return "", fmt.Errorf("job %s exists already, %s and from provider %s: starter run %s runs it",
			j.ID, live.Job.Mode(), live.Job.Provider, j.ID)
	}
	if err := live.CheckSpec(j); errors.Is(err, client.ErrOtherSpec) {
		return "", errUnderWay(j.ID)
	} else if err != nil {
		return "", err
	}
	if begins := live.Workflow.Begins; begins.After(i.Now()) {
		return fmt.Sprintf("A run of job %s waits already, until %s; no other is started.", j.ID, i.when(begins)), nil
	}
	return fmt.Sprintf("A run of job %s is running already; no other is started.", j.ID), nil
}

// startTime are the flags for a later start.
type startTime struct {
	at string
	in job.Duration
}

func (s *startTime) register(cmd *cobra.Command) {
	cmd.Flags().Var(textValue{&s.at, "TIME"}, "at", "begin at this time, as 2026-05-01T12:00:00Z, and do not wait for it")
	cmd.Flags().Var(durationOf(&s.in), "in", "begin after this long, as PT30M or 30m, and do not wait for it")
}

// time is the zero time if no flag was given.
func (s *startTime) time(cmd *cobra.Command, now time.Time) (time.Time, error) {
	switch {
	case s.at != "" && s.in != 0:
		return time.Time{}, misuse(cmd, "give either --at or --in")
	case s.in != 0:
		return now.Add(s.in.Std()), nil
	case s.at == "":
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, s.at)
	switch {
	case err != nil:
		return at, misuse(cmd, "--at %q is not a time such as 2026-05-01T12:00:00Z", s.at)
	case at.Before(now):
		return at, misuse(cmd, "--at %s is in the past", s.at)
	}
	return at, nil
}
