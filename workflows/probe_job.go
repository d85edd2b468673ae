package workflows

import (
	"fmt"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// ProbeState is everything that a job's probe remembers: its input, what
// continue-as-new carries on, and the answer to QueryState.
type ProbeState struct {
	Job job.Job `json:"job"`
	// SpecHash and Pause are the mark and the note of the schedule as the failures
	// left it: a schedule with another one is in someone's hands.
	SpecHash string `json:"spec_hash"`
	Pause    string `json:"pause"`
	contract.Probe

	// What messages have set and the probe has not acted on yet.
	Look      bool `json:"look,omitempty"`
	Succeeded bool `json:"succeeded,omitempty"`
	// Ended says that the schedule is no longer the probe's concern, and why.
	Ended string `json:"ended,omitempty"`
}

// ProbeNews is the payload of SignalProbe.
type ProbeNews struct {
	// Start is another pause, which takes the place of the one at hand.
	Start *ProbeState `json:"start,omitempty"`
	// Succeeded says that a run of the job has succeeded.
	Succeeded bool `json:"succeeded,omitempty"`
	// Failed is the error of a run of the job that has failed.
	Failed string `json:"failed,omitempty"`
}

// ProbeOutput is the result of a probe.
type ProbeOutput struct {
	Tries int `json:"tries"`
	// Reason says what became of the schedule.
	Reason string `json:"reason"`
}

// ProbeJob tries a recurring job whose schedule was paused since its runs failed:
// it has the schedule start a run, after ever longer waits. When a run succeeds,
// whoever started it, it resumes the schedule and ends. A schedule in which
// someone has had a hand, by resuming it, by a pause with another note, by another
// definition or by deleting it, is left as it is, and the probe ends. It ends too
// when the job's end_at has passed.
//
// Canceling or terminating it leaves the schedule paused.
func ProbeJob(ctx workflow.Context, state ProbeState) (*ProbeOutput, error) {
	if state.Job.Recurring == nil {
		return nil, temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("job %.160q is not a recurring job", state.Job.ID), job.ClassInvalidSpec, nil)
	}
	p := &probe{ProbeState: state, news: workflow.GetSignalChannel(ctx, SignalProbe)}
	if err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (ProbeState, error) {
		return p.ProbeState, nil
	}); err != nil {
		return nil, fmt.Errorf("handle query %s: %w", contract.QueryState, err)
	}
	return p.watch(ctx)
}

type probe struct {
	ProbeState
	news workflow.ReceiveChannel
}

func (p *probe) watch(ctx workflow.Context) (*ProbeOutput, error) {
	for {
		p.read(ctx)
		now := workflow.Now(ctx)
		if p.NextAt.IsZero() {
			p.NextAt = now.Add(p.wait())
		}
		var err error
		switch {
		case p.Ended != "":
			workflow.SetCurrentDetails(ctx, p.details())
			return &ProbeOutput{Tries: p.Tries, Reason: p.Ended}, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			return nil, workflow.NewContinueAsNewError(ctx, contract.ProbeJobType, p.ProbeState)
		case p.Succeeded:
			err = p.resume(ctx)
		case p.over(now):
			p.Ended = "the job has no more starts: its end_at has passed"
		case p.Look || !now.Before(p.NextAt):
			err = p.try(ctx, !now.Before(p.NextAt))
		default:
			err = p.sleep(ctx)
		}
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
}

// read takes in what was signaled. The loop itself reads: a coroutine of its own
// could hold a signal while the loop continues as new.
func (p *probe) read(ctx workflow.Context) {
	for {
		var news ProbeNews
		if !p.news.ReceiveAsync(&news) {
			return
		}
		switch {
		case news.Start != nil:
			if news.Start.Pause != p.Pause && news.Start.Job.Recurring != nil { // Else the request was repeated.
				p.ProbeState = *news.Start
			}
		case news.Succeeded:
			p.Succeeded = true
		case news.Failed != "":
			p.LastError = news.Failed
			p.NextAt = workflow.Now(ctx).Add(p.wait())
		default:
			p.Look = true
		}
	}
}

// wait is the time until the next try.
func (p *probe) wait() time.Duration { return p.Job.Recurring.ProbeBackoff().Wait(p.Tries + 1) }

// over says that the schedule would start no more runs if it were resumed.
func (p *probe) over(now time.Time) bool {
	end := p.Job.Recurring.EndAt
	return !end.IsZero() && now.After(end)
}

// try has the schedule start a run if one is due, and finds out in any case
// whether the schedule is still as the failures left it.
func (p *probe) try(ctx workflow.Context, due bool) error {
	p.Look = false
	known := p.Pause
	var out TryPausedOutput
	err := workflow.ExecuteActivity(withScheduleActivity(ctx, 0), contract.TryPausedActivity, TryPausedInput{
		JobID: p.Job.ID, SpecHash: p.SpecHash, Pause: p.Pause, Start: due,
	}).Get(ctx, &out)
	if err != nil {
		return fmt.Errorf("try paused job %s: %w", p.Job.ID, err)
	}
	p.read(ctx)
	if p.Pause != known {
		return nil // Another pause has begun meanwhile.
	}
	p.Ended = out.Ended
	if due {
		if out.Started {
			p.Tries++
		}
		p.NextAt = workflow.Now(ctx).Add(p.wait())
	}
	return nil
}

// resume lets the schedule go on, if it is still as the failures left it.
func (p *probe) resume(ctx workflow.Context) error {
	p.Succeeded = false
	known := p.Pause
	var out ResumePausedOutput
	err := workflow.ExecuteActivity(withScheduleActivity(ctx, 0), contract.ResumePausedActivity, ResumePausedInput{
		JobID: p.Job.ID, SpecHash: p.SpecHash, Pause: p.Pause, Note: resumeNote(p.Tries, workflow.Now(ctx)),
	}).Get(ctx, &out)
	if err != nil {
		return fmt.Errorf("resume job %s: %w", p.Job.ID, err)
	}
	p.read(ctx)
	if p.Pause == known {
		p.Ended = out.Ended
	}
	return nil
}

// sleep waits for the next try or for news.
func (p *probe) sleep(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, p.details())
	if err := workflow.UpsertMemo(ctx, map[string]any{contract.MemoProbe: p.Probe}); err != nil {
		return fmt.Errorf("publish the tries of job %s: %w", p.Job.ID, err)
	}
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel() // News end the timer too: it would wake the probe for nothing.
	_, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout:      p.NextAt.Sub(workflow.Now(ctx)),
		TimerOptions: workflow.TimerOptions{Summary: "until the next try"},
	}, func() bool { return p.news.Len() > 0 })
	if err != nil && !temporal.IsCanceledError(err) {
		return fmt.Errorf("wait for the next try of job %s: %w", p.Job.ID, err)
	}
	return nil
}

// details is the text that the Web UI shows for the running workflow.
func (p *probe) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · `%s` · tries of a paused job\n\n%s\n\n", p.Job.ID, p.Job.Type, p.Pause)
	switch {
	case p.Ended != "":
		fmt.Fprintf(&b, "Ended after %s: %s", count(p.Tries, "try", "tries"), p.Ended)
	default:
		fmt.Fprintf(&b, "%s so far, the next at %s", count(p.Tries, "try", "tries"), p.NextAt.UTC().Format(time.RFC3339))
	}
	if p.LastError != "" {
		fmt.Fprintf(&b, "\n\nLast error: %s", p.LastError)
	}
	return b.String()
}
