package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// A message that a validator refuses leaves no trace in the history. So one that
// would change nothing is refused as well, with the answer that it would have had:
// a workflow run takes 2,000 updates, and a job that someone pauses every minute
// must not use them up.

// unchanged refuses a message that would change nothing.
func (l *loop) unchanged() error {
	return temporal.NewApplicationError(fmt.Sprintf("job %s stands so already", l.Job.ID), contract.ErrorTypeUnchanged, l.ContinuousState)
}

// unless refuses a message if it would change nothing.
func (l *loop) unless(same bool) error {
	if same {
		return l.unchanged()
	}
	return nil
}

func (l *loop) checkStop(contract.StopRequest) error { return l.unless(l.Stop) }

// checkRestart answers a request to a job that is being stopped with the state: it
// says so, and the caller starts the job again when it has ended.
func (l *loop) checkRestart(contract.RestartRequest) error {
	if l.Stop {
		return l.unchanged()
	}
	if err := l.checkGoing(); err != nil {
		return err
	}
	return l.unless(l.Restart && l.Trigger)
}

func (l *loop) checkPause(in contract.PauseRequest) error {
	if err := l.checkAlive(); err != nil {
		return err
	}
	return l.unless(l.Paused && !l.PausedItself && l.PauseReason == job.Cut(in.Reason, maxPauseReason))
}

func (l *loop) checkResume(contract.ResumeRequest) error {
	if err := l.checkAlive(); err != nil {
		return err
	}
	return l.unless(!l.Paused && !l.BacksOff())
}

func (l *loop) checkTrigger(contract.TriggerRequest) error {
	if err := l.checkGoing(); err != nil {
		return err
	}
	return l.unless(l.Trigger)
}

// checkAlive refuses what would come after a request to stop.
func (l *loop) checkAlive() error {
	if l.Stop {
		return fmt.Errorf("job %s is being stopped; restart it when it has ended", l.Job.ID)
	}
	return nil
}

func (l *loop) checkGoing() error {
	if err := l.checkAlive(); err != nil {
		return err
	}
	if l.Paused {
		return fmt.Errorf("job %s is paused (%s): resume it first", l.Job.ID, l.PauseReason)
	}
	return nil
}

func (l *loop) checkSetJob(in contract.SetJobRequest) error {
	if in.Job.ID != l.Job.ID || in.Job.Mode() != job.ModeContinuous {
		return fmt.Errorf("%s in mode %s is not a definition of the continuous job %s", in.Job.ID, in.Job.Mode(), l.Job.ID)
	}
	if problems := in.Job.Validate(); len(problems) > 0 {
		return fmt.Errorf("job %s does not take the definition: %s", l.Job.ID, problems[0])
	}
	current, err := l.Job.DefinitionHash()
	if err != nil {
		return err
	}
	wanted, err := in.Job.DefinitionHash()
	if err != nil {
		return err
	}
	if err := l.checkReplaces(in, current, wanted); err != nil {
		return err
	}
	if err := l.checkAlive(); err != nil {
		return err
	}
	return l.unless(current == wanted && !l.BacksOff() && (l.Restart || !in.Restart) && (!in.EndFailurePause || !l.PausedItself))
}

// checkReplaces refuses a definition that was made without knowing the one in
// force. One that is in force already is taken again.
func (l *loop) checkReplaces(in contract.SetJobRequest, current, wanted string) error {
	if in.Was != "" && current != in.Was && current != wanted {
		return temporal.NewApplicationError(fmt.Sprintf("job %s has another definition by now", l.Job.ID), contract.ErrorTypeOtherDefinition)
	}
	return nil
}
