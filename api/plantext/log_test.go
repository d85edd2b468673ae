package plantext_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func TestLogLine(t *testing.T) {
	t.Parallel()
	attributes, err := structpb.NewStruct(map[string]any{
		"one": "one", "two": "two <words>", "many": map[string]any{"a": 1}, "stack": "main.main()\n\tmain.go:7\n", "worker": "w", "trace_id": "t",
	})
	require.NoError(t, err)
	line := &jobsv1.LogLine{Time: timestamppb.New(time.UnixMilli(1000)), Level: "WARN", Attempt: 2, Message: "odd\x1b", Attributes: attributes, Sequence: 7}
	require.Equal(t, "1970-01-01 00:00:01.000 WARN  attempt 2: odd  many={\"a\":1} one=one two=\"two <words>\"\n  stack:\n    main.main()\n      main.go:7",
		plantext.LogLine(line, time.UTC))
	text, err := plantext.LogJSON(line)
	require.NoError(t, err)
	require.NotContains(t, string(text), "\n")
	require.Contains(t, string(text), `"sequence":"7"`)
}

func TestSpans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		span     *jobsv1.RunSpan
		did, why string
	}{
		{&jobsv1.RunSpan{Kind: jobsv1.RunSpanKind_RUN_SPAN_KIND_RAN, Attempt: 2, Worker: "load@a", ErrorClass: "NoAnswer", Reason: "it is away"}, "attempt 2 on load@a", "NoAnswer: it is away"},
		{&jobsv1.RunSpan{Kind: jobsv1.RunSpanKind_RUN_SPAN_KIND_RAN, Attempt: 1}, "attempt 1", ""},
		{&jobsv1.RunSpan{Kind: jobsv1.RunSpanKind_RUN_SPAN_KIND_MOVED, Worker: "load@b", Reason: "load@a fell silent"}, "moved to load@b", "load@a fell silent"},
		{&jobsv1.RunSpan{Kind: jobsv1.RunSpanKind_RUN_SPAN_KIND_WAITED, Reason: "for its turn in queue q"}, "waited for its turn in queue q", ""},
		{&jobsv1.RunSpan{Kind: jobsv1.RunSpanKind_RUN_SPAN_KIND_WAITED_FOR_WORKER, Reason: "none serves it"}, "waited for a worker", "none serves it"},
		{&jobsv1.RunSpan{Kind: jobsv1.RunSpanKind_RUN_SPAN_KIND_BACKED_OFF}, "backed off", ""},
		{&jobsv1.RunSpan{Kind: jobsv1.RunSpanKind_RUN_SPAN_KIND_HELD_BACK, Reason: "3 failures"}, "held back", "3 failures"},
	} {
		require.Equal(t, c.did, plantext.SpanDid(c.span))
		require.Equal(t, c.why, plantext.SpanWhy(c.span))
	}
}
