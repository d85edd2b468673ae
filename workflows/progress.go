package workflows

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// SignalProgress tells RunJob or ContinuousJob how far a run is, which it shows in
// its current details and nowhere else. The payload is a ProgressReport. The host
// sends few: each costs some four events.
const SignalProgress = "progress"

// ProgressReport is what the worker of a run tells of it.
type ProgressReport struct {
	// RunID is the one of the ActivityInput.
	RunID    string       `json:"run_id"`
	Worker   string       `json:"worker"`
	Progress job.Progress `json:"progress"`
	// Cursor is the position of the last checkpoint, if it is short.
	Cursor json.RawMessage `json:"cursor,omitempty"`
}

// progress is the last that a workflow has heard of its run. It is shown, and
// decides nothing.
type progress struct {
	ProgressReport
	at time.Time
}

// hear takes in what the worker tells of the run with the id that current
// gives, and shows it.
func (p *progress) hear(ctx workflow.Context, current func() string, show func()) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		reports := workflow.GetSignalChannel(ctx, SignalProgress)
		for {
			var report ProgressReport
			if !reports.Receive(ctx, &report) {
				return
			}
			if report.RunID != current() {
				continue // Of one that has ended.
			}
			p.ProgressReport, p.at = report, workflow.Now(ctx)
			show()
		}
	})
}

// learn takes in how far an attempt was that has failed, or was lost.
func (p *progress) learn(ctx workflow.Context, err error) {
	last := lastOutput(err)
	if last.Worker == "" {
		return
	}
	p.ProgressReport = ProgressReport{Worker: last.Worker, Progress: last.Progress, Cursor: last.Result.Cursor}
	p.at = workflow.Now(ctx)
}

// details is a text in Markdown, "" if nothing is known.
func (p *progress) details() string {
	if p.at.IsZero() {
		return ""
	}
	var b strings.Builder
	if p.Progress != (job.Progress{}) {
		fmt.Fprintf(&b, "\n\nprogress: **%s**", shorten(p.Progress.String()))
	}
	if len(p.Cursor) > 0 {
		fmt.Fprintf(&b, "\n\ncursor: `%s`", job.Cut(string(p.Cursor), maxShownCursor))
	}
	fmt.Fprintf(&b, "\n\nas of %s, on %s", p.at.UTC().Format(time.DateTime), p.Worker)
	return b.String()
}

// maxShownCursor bounds the cursor in current details.
const maxShownCursor = 200
