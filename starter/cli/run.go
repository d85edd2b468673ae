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
		Long: `run runs a job now, one that Temporal has or, with -f, one of a jobs file, and
waits for the end of the run. What that is depends on the job's mode:

  one-shot     another run of it
  recurring    a run apart from its schedule, which stays as it is
  continuous   the next iteration, at once instead of after the interval
  queued       it is put into its queue again; the run comes when it is its turn

With --at or --in the run of a one-shot begins later: it waits in Temporal, where
runs list shows it and runs cancel takes it back. There is one run of a one-shot
at a time, so that asking twice for the same time makes one run.

With --type it defines and runs a one-shot of its own. Its spec is checked
before anything starts, and all that is wrong with it is shown. With --key it
does so once: if a run under that key and with that spec is under way or has
completed, the command is about that one, so that a script may repeat it. One
that failed or was canceled runs again, as every one does with --again; another
spec under the key is refused.

Ctrl-C ends the waiting, not the run. With --detach it does not wait at all.

Exit codes: 0 the run completed, 1 it failed or was canceled, or could not be
started, or the waiting was given up.`,
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
			if detach || !at.IsZero() && !started.Before {
				return i.reportStarted(started)
			}
			return i.await(cmd.Context(), started)
		},
	}
	ad.register(i, cmd)
	cmd.Flags().VarP(textValue{&file, argumentFile}, "file", "f", "take the job from this jobs file, not from Temporal")
	start.register(cmd)
	cmd.Flags().BoolVar(&again, "again", false, "run a job defined with --type and --key again although it has completed, or, once it has ended, with another spec")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait: print what was started")
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

// started is what run or trigger has set off: exactly one of Run, Iteration and
// Receipt is set.
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
	// Before says that the run had completed before: nothing was started.
	Before bool `json:"existed_before,omitempty"`

	client *client.Client
}

// oneShotStart says how a one-shot is started.
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
	jobs, _, err := i.load(file)
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

// trigger sets off a run of a job, in the way of its mode.
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
	if err := i.setOff(ctx, s, start); err != nil {
		return nil, err
	}
	// Not before: a start for another time than that of the run that waits is refused.
	if underWay != "" && !s.Before {
		i.note("%s", underWay)
	}
	return s, nil
}

// setOff starts a run of a job that has runs.
func (i *invocation) setOff(ctx context.Context, s *started, start oneShotStart) error {
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
	s.Run, s.Before = &once.RunRef, once.ExistedBefore && once.Status == client.RunCompleted
	if s.Before {
		i.note("Job %s has completed already; this is about that run. With --again it runs again.", s.Job.ID)
	}
	return nil
}

// aboutKey tells how to run work whose key has run with another spec.
func aboutKey(err error) error {
	if errors.Is(err, client.ErrOtherSpec) {
		return fmt.Errorf("%w than this one; give another --key, or --again to run this one under it", err)
	}
	return err
}

// errUnderWay refuses other work than that of a run that has not ended.
func errUnderWay(jobID string) error {
	return fmt.Errorf("a run of job %s with another spec is under way: wait for its end, or stop it", jobID)
}

// checkOneShot looks at what Temporal has under the id of a one-shot: starting
// it gives a run that is under way, whatever that is. What there is to say of such
// a run is given, "" if there is none.
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
		return "", fmt.Errorf("job %s is there already, %s and from provider %s: starter run %s runs it as it is",
			j.ID, live.Job.Mode(), live.Job.Provider, j.ID)
	}
	if err := live.CheckSpec(j); errors.Is(err, client.ErrOtherSpec) {
		return "", errUnderWay(j.ID)
	} else if err != nil {
		return "", err
	}
	if begins := live.Workflow.Begins; begins.After(i.Now()) {
		return fmt.Sprintf("A run of job %s waits already, until %s; this is about that one.", j.ID, i.when(begins)), nil
	}
	return fmt.Sprintf("A run of job %s is under way already; this is about that one.", j.ID), nil
}

// startTime are the flags that put a start off.
type startTime struct {
	at string
	in job.Duration
}

func (s *startTime) register(cmd *cobra.Command) {
	cmd.Flags().Var(textValue{&s.at, "TIME"}, "at", "begin at this time, as 2026-05-01T12:00:00Z, and do not wait for it")
	cmd.Flags().Var(durationOf(&s.in), "in", "begin after this long, as PT30M or 30m, and do not wait for it")
}

// time gives the zero time if no flag was given.
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
		return at, misuse(cmd, "--at %s is past", s.at)
	}
	return at, nil
}
