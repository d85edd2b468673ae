package plantext

import (
	"cmp"
	"fmt"
	"strings"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// SpanDid says what a run did in a span.
func SpanDid(span *jobsv1.RunSpan) string {
	switch span.GetKind() {
	case jobsv1.RunSpanKind_RUN_SPAN_KIND_RAN:
		return fmt.Sprintf("attempt %d", span.GetAttempt()) + onWorker(span)
	case jobsv1.RunSpanKind_RUN_SPAN_KIND_MOVED:
		return Clean("moved to " + span.GetWorker())
	case jobsv1.RunSpanKind_RUN_SPAN_KIND_WAITED:
		return Clean("waited " + cmp.Or(span.GetReason(), "for its time"))
	case jobsv1.RunSpanKind_RUN_SPAN_KIND_WAITED_FOR_WORKER:
		return "waited for a worker"
	}
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(span.GetKind().String(), "RUN_SPAN_KIND_"), "_", " "))
}

func onWorker(span *jobsv1.RunSpan) string {
	if span.GetWorker() == "" {
		return ""
	}
	return Clean(" on " + span.GetWorker())
}

// SpanWhy says why, "" if there is nothing to say.
func SpanWhy(span *jobsv1.RunSpan) string {
	if span.GetKind() == jobsv1.RunSpanKind_RUN_SPAN_KIND_WAITED {
		return "" // What it did says it.
	}
	if span.GetErrorClass() == "" {
		return Clean(span.GetReason())
	}
	return Clean(span.GetErrorClass() + ": " + span.GetReason())
}
