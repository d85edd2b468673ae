package page

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/job/wording"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// durationRuns is how many runs of a job a run is compared with: the latest.
const durationRuns = 100

// fewRuns is how many bars a picture has room for at least: few ones stay narrow.
const fewRuns = 20

// durationsView is how long a run took, among the latest of its job.
type durationsView struct {
	Bars []durationBar
	// Says compares the run with the usual duration, which is the median of the completed ones.
	Says string
	// Usual and Limit are heights of lines, "" without one. Above says that the limit is above
	// the picture.
	Usual, Limit         string
	UsualText, LimitText string
	Above                bool
	// Older says that the run is older than the others.
	Older bool
}

// durationBar is how long a run took. The numbers are hundredths of the picture.
type durationBar struct {
	X, Width, Y, Height, Middle, Class, Title string
	This                                      bool
}

// durations compares a run with the latest of its job, with one call. It gives nil if there is
// nothing to compare with.
func (p *Page) durations(ctx context.Context, run *jobsv1.Run, now time.Time) (*durationsView, error) {
	answer, err := p.API.Runs.ListRuns(ctx, &jobsv1.ListRunsRequest{PageSize: durationRuns, Filter: jobFilter(run.GetJobId())})
	if err != nil {
		return nil, err
	}
	return newDurations(run, answer.GetRuns(), now), nil
}

// newDurations compares a run with others. The list begins with the latest.
func newDurations(run *jobsv1.Run, others []*jobsv1.Run, now time.Time) *durationsView {
	took := func(r *jobsv1.Run) time.Duration {
		if r.GetEndTime() != nil {
			return max(r.GetEndTime().AsTime().Sub(r.GetStartTime().AsTime()), 0)
		}
		return max(now.Sub(r.GetStartTime().AsTime()), 0)
	}
	view := &durationsView{Older: true}
	var runs []*jobsv1.Run
	var usual []time.Duration
	for _, other := range slices.Backward(others) {
		this := other.GetName() == run.GetName()
		if this {
			view.Older = false
		}
		if this || did(other) {
			runs = append(runs, other)
		}
		if !this && other.GetStatus() == jobsv1.RunStatus_RUN_STATUS_COMPLETED {
			usual = append(usual, took(other))
		}
	}
	if !did(run) {
		return nil
	}
	if view.Older {
		runs = append([]*jobsv1.Run{run}, runs...)
	}
	if len(runs) < 2 {
		return nil
	}
	top := time.Millisecond
	for _, one := range runs {
		top = max(top, took(one))
	}
	limit := run.GetRunTimeout().AsDuration()
	const far = 3 // times the longest run: a limit beyond would leave specks of bars
	if view.Above = limit > far*top; !view.Above {
		top = max(top, limit)
	}
	if limit > 0 {
		view.LimitText = wording.Span(limit)
		if !view.Above {
			view.Limit = svgNumber(100 - hundredths(limit, top))
		}
	}
	width := 100 / float64(max(len(runs), fewRuns))
	for i, one := range runs {
		height := max(hundredths(took(one), top), 1)
		x := float64(i) * width
		view.Bars = append(view.Bars, durationBar{
			X: svgNumber(x), Width: svgNumber(width * 0.8), Y: svgNumber(100 - height), Height: svgNumber(height), Middle: svgNumber(x + width*0.4),
			Class: "run-" + verbs.Letter(one.GetStatus()), This: one.GetName() == run.GetName(),
			Title: fmt.Sprintf("%s, %s, %s", wording.Span(took(one)), word(one.GetStatus()), wording.Stamp(one.GetStartTime().AsTime())),
		})
	}
	if len(usual) == 0 {
		view.Says = "No other run has completed."
		return view
	}
	slices.Sort(usual)
	median := usual[len(usual)/2]
	view.Usual, view.UsualText = svgNumber(100-hundredths(median, top)), wording.Span(median)
	view.Says = compared(took(run), median, run.GetEndTime() != nil)
	return view
}

// did reports whether a run tells how long its job takes: it has begun, and was neither held
// back nor gave way.
func did(run *jobsv1.Run) bool {
	switch run.GetStatus() {
	case jobsv1.RunStatus_RUN_STATUS_HELD_BACK, jobsv1.RunStatus_RUN_STATUS_SUPERSEDED, jobsv1.RunStatus_RUN_STATUS_WAITING:
		return false
	}
	return run.GetStartTime() != nil
}

// compared says how a duration is beside the usual one.
func compared(took, usual time.Duration, ended bool) string {
	const (
		much = 2.0
		even = 0.25
	)
	begins := "It took "
	if !ended {
		begins = "It has taken "
	}
	times := float64(took) / float64(max(usual, time.Millisecond))
	switch {
	case times >= much:
		return fmt.Sprintf("%s%s, %.1f times the usual %s.", begins, wording.Span(took), times, wording.Span(usual))
	case !ended:
		return fmt.Sprintf("%s%s so far; the usual is %s.", begins, wording.Span(took), wording.Span(usual))
	case times <= 1/much:
		return fmt.Sprintf("%s%s, less than half the usual %s.", begins, wording.Span(took), wording.Span(usual))
	case times > 1-even && times < 1+even:
		return fmt.Sprintf("%s%s, about the usual %s.", begins, wording.Span(took), wording.Span(usual))
	}
	return fmt.Sprintf("%s%s; the usual is %s.", begins, wording.Span(took), wording.Span(usual))
}
