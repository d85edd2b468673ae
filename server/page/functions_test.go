package page_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/server/page"
)

func TestProgressHasOneCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		progress *jobsv1.RunProgress
		want     string
	}{
		{&jobsv1.RunProgress{Done: 3}, "3 done"},
		{&jobsv1.RunProgress{Done: 3, Message: "points"}, "3 done points"},
		{&jobsv1.RunProgress{Done: 728, Message: "728 messages"}, "728 messages"},
	} {
		require.Equal(t, c.want, page.DoneText(c.progress))
	}
}

// TestTimeToGo: a young queue is measured from its first item on.
func TestTimeToGo(t *testing.T) {
	t.Parallel()
	now := time.Now()
	since := func(ago time.Duration) *timestamppb.Timestamp { return timestamppb.New(now.Add(-ago)) }
	for _, c := range []struct {
		queue *jobsv1.Queue
		want  string
	}{
		{&jobsv1.Queue{}, "not known: none ran in the last hour"},
		{&jobsv1.Queue{RanLastMinute: 3, RanLastHour: 3, RanSinceTime: since(time.Minute)}, "in 1 h 39 min"},
		{&jobsv1.Queue{RanLastMinute: 10, RanLastHour: 10, RanSinceTime: since(20 * time.Second)}, "in 9 min"},
		{&jobsv1.Queue{RanLastMinute: 10, RanLastHour: 100, RanSinceTime: since(20 * time.Minute)}, "in 29 min"},
		{&jobsv1.Queue{RanLastHour: 60, RanSinceTime: since(2 * time.Hour)}, "in 4 h 57 min"},
	} {
		require.Equal(t, c.want, page.ToGo(c.queue, 297, now), "%v", c.queue)
	}
}

// TestSilencedAlertsDoNotNeedYou: they are shown and marked, and not counted.
func TestSilencedAlertsDoNotNeedYou(t *testing.T) {
	t.Parallel()
	d := tell(t, 1)
	text := string(getPlain(t, d.url+"/"))
	require.Contains(t, text, "<title>(1) Jobs")
	require.NotContains(t, text, "silenced")
	alert := d.is.GetAlerts()[0]
	alert.Silence, alert.SilencedBy, alert.SilencedUntil = "quiet", "ana", timestamppb.New(time.Date(2027, 2, 3, 4, 5, 6, 0, time.UTC))
	text = string(getPlain(t, d.url+"/"))
	require.Contains(t, text, "<title>Jobs")
	require.Contains(t, text, "Nothing needs you.")
	require.Regexp(t, `silenced by ana\s+until <time [^>]+>2027-02-03 04:05:06 UTC`, text)
	require.NotContains(t, text, "Needs you")
}

// TestAContinuousJobFailsUncounted: its iterations that failed are not counted, so no number is shown.
func TestAContinuousJobFailsUncounted(t *testing.T) {
	t.Parallel()
	d := tell(t, 2)
	for i, failures := range []int32{0, 3} {
		d.is.Jobs[i].Status, d.is.Jobs[i].Failing = jobsv1.JobStatus_JOB_STATUS_FAILING, &jobsv1.Failing{Failures: failures}
	}
	text := string(getPlain(t, d.url+"/"))
	require.Contains(t, text, "failing <small>3×</small>")
	require.NotContains(t, text, "0×")
}

// TestSentences: what follows an error begins a new sentence, and names break after slashes.
func TestSentences(t *testing.T) {
	t.Parallel()
	d := tell(t, 1)
	d.is.Loads = []*jobsv1.Load{{
		Location: "common1", Flow: "live", Mirror: "default", ErrorMessage: "connection refused", NextAttemptTime: timestamppb.New(time.Now().Add(time.Hour)),
	}}
	text := string(getPlain(t, d.url+"/loads"))
	require.Regexp(t, `connection refused\. It is tried again <time`, text)
	require.Contains(t, text, "common1/<wbr>live/<wbr>default")
}

// TestABrowserThatLeaves is no reason to warn.
func TestABrowserThatLeaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		leaves bool
		level  string
	}{{true, "DEBUG"}, {false, "WARN"}} {
		var log strings.Builder
		p := page.New(page.Config{
			API:    &api.Clients{Overview: jobsv1connect.NewOverviewServiceClient(connect.NewClient(connectinprocess.New(connect.NewServer())))},
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		ctx, cancel := context.WithCancel(t.Context())
		if c.leaves {
			cancel()
		}
		p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/loads", nil))
		cancel()
		require.Contains(t, log.String(), "level="+c.level)
		require.Equal(t, 1, strings.Count(log.String(), "level="))
	}
}
