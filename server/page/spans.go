package page

import (
	"strconv"
	"time"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/job/wording"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// spansView is what a run did, on one line of time and as a list.
type spansView struct {
	From, To time.Time
	// Open says that it goes on.
	Open bool
	Bars []spanBar
	List []spanRow
}

// spanBar is a span on the line. X and Width are hundredths of the line.
type spanBar struct {
	Class, X, Width, Middle, Title string
	// Number is that of an attempt, where there is room for it.
	Number string
	// Mark says that it takes no time.
	Mark bool
}

// spanRow is a span of the list.
type spanRow struct {
	*jobsv1.RunSpan
	Class, Did, Took, Why string
}

// leastRoom is the width of a bar that has room for its number.
const leastRoom = 4.0

// newSpans puts what a run did on a line. It gives nil if nothing is known.
func newSpans(run *jobsv1.Run, now time.Time) *spansView {
	spans := run.GetSpans()
	if len(spans) == 0 {
		return nil
	}
	end := func(span *jobsv1.RunSpan) time.Time {
		if span.GetEndTime() == nil {
			return now
		}
		return span.GetEndTime().AsTime()
	}
	last := spans[len(spans)-1]
	view := &spansView{From: spans[0].GetStartTime().AsTime(), To: end(last), Open: last.GetEndTime() == nil}
	whole := max(view.To.Sub(view.From), time.Millisecond)
	for _, span := range spans {
		from, to := span.GetStartTime().AsTime(), end(span)
		row := spanRow{RunSpan: span, Class: spanClass(span), Did: plantext.SpanDid(span), Why: plantext.SpanWhy(span)}
		moved := span.GetKind() == jobsv1.RunSpanKind_RUN_SPAN_KIND_MOVED
		if !moved {
			row.Took = wording.Span(to.Sub(from))
		}
		x, width := hundredths(from.Sub(view.From), whole), hundredths(to.Sub(from), whole)
		bar := spanBar{Class: row.Class, X: svgNumber(x), Width: svgNumber(width), Middle: svgNumber(x + width/2), Mark: moved}
		bar.Title = row.Did
		if row.Took != "" {
			bar.Title += ", " + row.Took
		}
		if row.Why != "" {
			bar.Title += ": " + row.Why
		}
		if width >= leastRoom && span.GetAttempt() > 0 {
			bar.Number = strconv.Itoa(int(span.GetAttempt()))
		}
		view.Bars, view.List = append(view.Bars, bar), append(view.List, row)
	}
	return view
}

// spanClass is the class of a span: it decides on its sign and color.
func spanClass(span *jobsv1.RunSpan) string {
	switch span.GetKind() {
	case jobsv1.RunSpanKind_RUN_SPAN_KIND_RAN:
		switch {
		case span.GetEndTime() == nil:
			return "span-runs"
		case span.GetErrorClass() != "":
			return "span-failed"
		case span.GetReason() != "":
			return "span-cut"
		}
		return "span-done"
	case jobsv1.RunSpanKind_RUN_SPAN_KIND_MOVED:
		return "span-moved"
	case jobsv1.RunSpanKind_RUN_SPAN_KIND_WAITED_FOR_WORKER:
		return "span-worker"
	}
	return "span-waits"
}

// hundredths is a part of a whole in hundredths.
func hundredths(part, whole time.Duration) float64 {
	return 100 * min(max(float64(part)/float64(whole), 0), 1)
}

// svgNumber is a number of an SVG.
func svgNumber(n float64) string { return strconv.FormatFloat(n, 'f', 2, 64) }
