package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server/page"
)

// The script writes durations as package wording does: by the same table.
func TestTheScriptWritesTheSameDurations(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../job/wording/testdata/spans.json")
	require.NoError(t, err)
	var table []struct {
		Seconds    float64
		Span, Away string
	}
	require.NoError(t, json.Unmarshal(text, &table))
	built := api.Build(api.BuildOptions{EntryPoints: []string{"ts/spans.ts"}, Bundle: true, Format: api.FormatIIFE, GlobalName: "spans"})
	require.Empty(t, built.Errors)
	b := newTab(t, 800, 600)
	b.do(chromedp.Navigate("about:blank"))
	for _, row := range table {
		wrote := is[[]string](b, fmt.Sprintf("%s; [spans.span(%[2]v), spans.away(%[2]v)]", built.OutputFiles[0].Contents, row.Seconds))
		require.Equal(t, []string{row.Span, row.Away}, wrote, "%v seconds", row.Seconds)
	}
}

// People choose the zone of times. It stays chosen, and holds for what comes later.
func TestTheZoneOfTimes(t *testing.T) {
	t.Parallel()
	d := tell(t, 3)
	began := time.Date(2026, 1, 2, 23, 30, 5, 0, time.UTC)
	d.is.Alerts[0].FireTime = timestamppb.New(began)
	d.is.Alerts[0].Text = "Nothing since 2026-01-02 23:30:05 UTC, <b>it</b> says."
	require.Contains(t, string(getPlain(t, d.url+"/")), `Nothing since <time datetime="2026-01-02T23:30:05Z" class="stamp">2026-01-02 23:30:05 UTC</time>, &lt;b&gt;`)

	b := newTab(t, 400, 800)
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Prague"})
		return err
	}))
	const title, inText = `document.querySelector("#needs-you small time").title`, `document.querySelector("#needs-you time.stamp").textContent`
	b.open(d.url + "/")
	require.Equal(t, "2026-01-02 23:30:05 UTC", is[string](b, title))
	require.Equal(t, "UTC", is[string](b, `document.querySelector("#zone").textContent`))
	require.Regexp(t, `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$`, is[string](b, `document.querySelector("#grid time").title`), "the time itself is at hand")
	b.click("#zone")
	require.Equal(t, "2026-01-03 00:30:05 GMT+1", is[string](b, title))
	require.Equal(t, "2026-01-03 00:30:05 GMT+1", is[string](b, inText))
	b.open(d.url + "/?q=station")
	require.Equal(t, "2026-01-03 00:30:05 GMT+1", is[string](b, inText), "it stays chosen")
	b.until("the stream of changes", `document.querySelector("#link-state").textContent === "Live"`)
	d.change(1, func(*jobsv1.JobOverview) { d.is.Alerts[0].Text = "Something since 2026-01-02 23:30:06 UTC." })
	b.until("the change in the chosen zone", inText+` === "2026-01-03 00:30:06 GMT+1"`)
	b.click("#freeze")
	require.Regexp(t, `^Shows \d\d:\d\d:\d\d$`, is[string](b, `document.querySelector("#link-state").textContent`))
	b.click("#zone")
	require.Equal(t, "2026-01-02 23:30:06 UTC", is[string](b, inText), "also while it is frozen")
	require.LessOrEqual(t, is[int64](b, "document.documentElement.scrollWidth"), int64(400))
	b.requireCalm()
}

// Starts that are held back are not said to be the next.
func TestStartsThatAreHeldBack(t *testing.T) {
	t.Parallel()
	at := func(minute int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2026, 1, 2, 6, minute, 0, 0, time.UTC))
	}
	next := []*timestamppb.Timestamp{at(1), at(2), at(3)}
	for _, c := range []struct {
		until      *timestamppb.Timestamp
		starts     int
		isHeldBack bool
	}{{nil, 3, false}, {at(1), 3, false}, {at(2), 2, true}, {at(9), 0, true}} {
		starts, until := page.StartsFrom(next, c.until)
		require.Len(t, starts, c.starts)
		require.Equal(t, c.isHeldBack, until != nil)
	}
	require.Equal(t, "2026-01-02 07:01:00 Europe/Prague", page.StampIn(at(1), "Europe/Prague"))
	require.Equal(t, "2026-01-02 06:01:00 UTC", page.StampIn(at(1), "Nowhere"))
}
