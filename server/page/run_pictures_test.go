package page_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server/page"
)

// Spans stand where their times are. What takes no time is a mark.
func TestSpansOnALine(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	at := func(seconds int) *timestamppb.Timestamp {
		return timestamppb.New(now.Add(time.Duration(seconds) * time.Second))
	}
	view := page.NewSpans(&jobsv1.Run{Spans: []*jobsv1.RunSpan{
		{Kind: jobsv1.RunSpanKind_RUN_SPAN_KIND_RAN, Attempt: 1, StartTime: at(-20), EndTime: at(-15), ErrorClass: "NoAnswer"},
		{Kind: jobsv1.RunSpanKind_RUN_SPAN_KIND_BACKED_OFF, StartTime: at(-15), EndTime: at(-10)},
		{Kind: jobsv1.RunSpanKind_RUN_SPAN_KIND_MOVED, StartTime: at(-10), EndTime: at(-10), Worker: "w"},
		{Kind: jobsv1.RunSpanKind_RUN_SPAN_KIND_RAN, Attempt: 2, StartTime: at(-10)},
	}}, now)
	require.True(t, view.Open)
	require.Len(t, view.Bars, 4)
	for i, want := range [][4]string{{"0.00", "25.00", "span-failed", "1"}, {"25.00", "25.00", "span-waits", ""}, {"50.00", "0.00", "span-moved", ""}, {"50.00", "50.00", "span-runs", "2"}} {
		bar := view.Bars[i]
		require.Equal(t, want, [4]string{bar.X, bar.Width, bar.Class, bar.Number})
	}
	require.True(t, view.Bars[2].Mark)
	require.Equal(t, "attempt 2, 10 s", view.Bars[3].Title)
	require.Nil(t, page.NewSpans(&jobsv1.Run{}, now))
}

func TestDurationsOfRuns(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	run := func(name string, seconds int, status jobsv1.RunStatus) *jobsv1.Run {
		return &jobsv1.Run{
			Name: name, Status: status, RunTimeout: durationpb.New(time.Minute), StartTime: timestamppb.New(now),
			EndTime: timestamppb.New(now.Add(time.Duration(seconds) * time.Second)),
		}
	}
	const completed, failed, held = jobsv1.RunStatus_RUN_STATUS_COMPLETED, jobsv1.RunStatus_RUN_STATUS_FAILED, jobsv1.RunStatus_RUN_STATUS_HELD_BACK
	this := run("this", 40, failed)
	others := []*jobsv1.Run{this, run("d", 0, held), run("c", 12, completed), run("b", 10, completed), run("a", 8, completed)}
	view := page.NewDurations(this, others, now)
	require.Equal(t, "It took 40 s, 4.0 times the usual 10 s.", view.Says)
	require.Len(t, view.Bars, 4, "one that was held back did nothing")
	require.True(t, view.Bars[3].This)
	require.Equal(t, "run-F", view.Bars[3].Class)
	require.Equal(t, []string{"0.00", "83.33"}, []string{view.Limit, view.Usual}, "the limit is the top: it is not far")
	require.False(t, view.Older)

	old := run("old", 3, completed)
	view = page.NewDurations(old, others[2:], now)
	require.True(t, view.Older)
	require.True(t, view.Bars[0].This)
	require.True(t, view.Above, "a limit that is far above leaves the bars their height")
	require.Empty(t, view.Limit)
	require.Equal(t, "It took 3 s, less than half the usual 10 s.", view.Says)
	require.Equal(t, "It took 12 s, about the usual 10 s.", page.NewDurations(others[2], others, now).Says)
	require.Nil(t, page.NewDurations(others[1], others, now), "it was held back")
	require.Nil(t, page.NewDurations(this, []*jobsv1.Run{this}, now), "there is no other")
}
