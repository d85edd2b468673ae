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
func (c *continuous) unchanged() error { return c.refused(c.ContinuousState) }

// refused is the refusal with an answer.
func (c *continuous) refused(answer any) error {
	return temporal.NewApplicationError(fmt.Sprintf("job %s is already in the requested state", c.Job.ID), contract.ErrorTypeUnchanged, answer)
}

// before is what a pause or a resume finds.
func (c *continuous) before(unchanged bool) contract.Before {
	return contract.Before{Paused: c.Paused, Reason: c.PauseReason, End: c.PauseEnd, BacksOff: c.BacksOff(), Unchanged: unchanged}
}

func (c *continuous) answer(before contract.Before) contract.ContinuousAnswer {
	return contract.ContinuousAnswer{ContinuousState: c.ContinuousState, Before: before}
}

// unless refuses a message if it would change nothing.
func (c *continuous) unless(same bool) error {
	if same {
		return c.unchanged()
	}
	return nil
}

func (c *continuous) checkStop(contract.StopRequest) error { return c.unless(c.Stop) }

// checkRestart answers a request to a job that is being stopped with the state: it
// says so, and the caller starts the job again when it has ended.
func (c *continuous) checkRestart(contract.RestartRequest) error {
	if c.Stop {
		return c.unchanged()
	}
	if err := c.checkGoing(); err != nil {
		return err
	}
	return c.unless(c.Restart && c.Trigger)
}

func (c *continuous) checkPause(in contract.PauseRequest) error {
	if err := c.checkAlive(); err != nil {
		return err
	}
	same := !c.PausedItself && c.PauseEnd.Equal(in.End) && c.PauseReason == contract.AddReason(c.PauseReason, in.Reason)
	if c.Paused && (same || in.UnlessPaused) {
		return c.refused(c.answer(c.before(true)))
	}
	return nil
}

func (c *continuous) checkResume(contract.ResumeRequest) error {
	if err := c.checkAlive(); err != nil {
		return err
	}
	if !c.Paused && !c.BacksOff() {
		return c.refused(c.answer(c.before(true)))
	}
	return nil
}

func (c *continuous) checkTrigger(contract.TriggerRequest) error {
	if err := c.checkGoing(); err != nil {
		return err
	}
	return c.unless(c.Trigger)
}

// checkAlive refuses what would come after a request to stop.
func (c *continuous) checkAlive() error {
	if c.Stop {
		return fmt.Errorf("job %s is being stopped; restart it when it has ended", c.Job.ID)
	}
	return nil
}

func (c *continuous) checkGoing() error {
	if err := c.checkAlive(); err != nil {
		return err
	}
	if c.Paused {
		return fmt.Errorf("job %s is paused (%s): resume it first", c.Job.ID, contract.PauseText(c.PauseReason, c.PauseEnd))
	}
	return nil
}

func (c *continuous) checkSetJob(in contract.SetJobRequest) error {
	if in.Job.ID != c.Job.ID || in.Job.Mode() != job.ModeContinuous {
		return fmt.Errorf("%s in mode %s is not a definition of the continuous job %s", in.Job.ID, in.Job.Mode(), c.Job.ID)
	}
	if problems := in.Job.Validate(); len(problems) > 0 {
		return fmt.Errorf("job %s does not take the definition: %s", c.Job.ID, problems[0])
	}
	current, err := c.Job.DefinitionHash()
	if err != nil {
		return err
	}
	wanted, err := in.Job.DefinitionHash()
	if err != nil {
		return err
	}
	if err := c.checkReplaces(in, current, wanted); err != nil {
		return err
	}
	if err := c.checkAlive(); err != nil {
		return err
	}
	return c.unless(current == wanted && !c.BacksOff() && (c.Restart || !in.Restart) && (!in.EndFailurePause || !c.PausedItself))
}

// checkReplaces refuses a definition that was made without knowing the one in
// force. One that is in force already is taken again.
func (c *continuous) checkReplaces(in contract.SetJobRequest, current, wanted string) error {
	if in.Was != "" && current != in.Was && current != wanted {
		return temporal.NewApplicationError(fmt.Sprintf("job %s has another definition by now", c.Job.ID), contract.ErrorTypeOtherDefinition)
	}
	return nil
}
