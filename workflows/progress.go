package workflows

import (
	"fmt"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// progress is the last that a workflow has heard of its run. It is shown, and
// decides nothing.
type progress struct {
	contract.ProgressReport
	at time.Time
}

// hear takes in what the worker tells of the run with the id that current
// gives, and shows it.
func (p *progress) hear(ctx workflow.Context, current func() string, show func()) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		reports := workflow.GetSignalChannel(ctx, contract.SignalProgress)
		for {
			var report contract.ProgressReport
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
	last := contract.LastOutput(err)
	if last.Worker == "" {
		return
	}
	p.ProgressReport = contract.ProgressReport{Worker: last.Worker, Progress: last.Progress, Cursor: last.Result.Cursor}
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
