package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

func (i *invocation) runCommand() *cobra.Command {
	var ad adHoc
	var file string
	var detach bool
	var again bool
	var start startTime
	var flags verbFlags
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

At a server that knows its callers, --type and -f need the role admin: they bring a
definition. JOB alone needs the role operator.

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
			request := &jobsv1.RunJobRequest{Once: ad.key != "" && !again, Reason: flags.reason}
			if !at.IsZero() {
				request.StartTime = timestamppb.New(at)
			}
			started, err := i.startRun(cmd.Context(), args, ad, file, request)
			if err != nil {
				return err
			}
			if detach || !at.IsZero() && !started.completed() {
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
	flags.register(cmd, verbs.RunJob)
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

// started is what run started.
type started struct {
	*jobsv1.RunJobResponse
	done verbs.Done
	// definition is set if it is not that in Temporal.
	definition *jobsv1.Job
}

// completed reports whether the job had completed already: nothing was started.
func (s *started) completed() bool {
	return s.GetExistingStatus() == jobsv1.RunStatus_RUN_STATUS_COMPLETED
}

func (i *invocation) startRun(ctx context.Context, args []string, ad adHoc, file string, request *jobsv1.RunJobRequest) (*started, error) {
	switch {
	case ad.typeName != "":
		defined, err := i.defined(ad, job.Trigger{OneShot: &job.OneShot{}})
		if err != nil {
			return nil, err
		}
		request.Job = api.JobMessage(defined)
	case file != "":
		declared, err := i.declared(file, args[0])
		if err != nil {
			return nil, err
		}
		request.Job = api.JobMessage(declared)
	default:
		request.Id = args[0]
	}
	return i.trigger(ctx, request)
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
func (i *invocation) trigger(ctx context.Context, request *jobsv1.RunJobRequest) (*started, error) {
	done, err := verbs.RunJob.Do(ctx, i.api.Calls, verbs.Args{With: request})
	if err != nil {
		return nil, aboutKey(err)
	}
	response, _ := done.Answer.(*jobsv1.RunJobResponse) // The row has this type.
	switch response.GetExistingStatus() {
	case jobsv1.RunStatus_RUN_STATUS_UNSPECIFIED:
	case jobsv1.RunStatus_RUN_STATUS_COMPLETED:
		i.note("Job %s has completed already; this is its run. With --again it runs again.", response.GetJobId())
	case jobsv1.RunStatus_RUN_STATUS_WAITING:
		i.note("A run of job %s waits already, until %s; no other is started.", response.GetJobId(), i.when(toTime(response.GetBeginTime())))
	default:
		i.note("A run of job %s is running already; no other is started.", response.GetJobId())
	}
	return &started{RunJobResponse: response, done: done, definition: request.GetJob()}, nil
}

// aboutKey adds to an error how to run a key with another spec.
func aboutKey(err error) error {
	if api.HasRunOtherSpec(err) {
		return fmt.Errorf("%s than this one; give another --key, or --again to run this one under it", apiText(err))
	}
	return err
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
