package page_test

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// TestTheLatestValueIsNotTheLargest: a queue that has just become empty is said to be so, though
// the point of its week is the largest value of a quarter of an hour.
func TestTheLatestValueIsNotTheLargest(t *testing.T) {
	t.Parallel()
	d := tell(t, 1)
	now := time.Now()
	d.page.Sample(queuesAt(now, 1, func(int) int { return 900 }), now.Add(-time.Second))
	d.is.Queues = queuesAt(now, 1, func(int) int { return 0 }).GetQueues()
	require.Regexp(t, `id="values-q00-0">Latest 0; largest 900, <time`, string(getPlain(t, d.url+"/queues?span=week")))
	require.Contains(t, string(getPlain(t, d.url+"/queues?span=week")), "There are samples since <time")

	d.is.Workers = []*jobsv1.Worker{{Type: "load", Running: 2, Slots: 8}}
	require.Contains(t, string(getPlain(t, d.url+"/workers")), "Latest 2 of 8; largest 2 of 8,")
	d.is.Workers[0].Status = jobsv1.WorkerStatus_WORKER_STATUS_LOST
	require.Contains(t, string(getPlain(t, d.url+"/workers")), "Latest none; largest 2 of 8,")
}

// changeQueues has the page show other queues.
func (d *told) changeQueues(queues ...*jobsv1.Queue) {
	d.change(0, func(*jobsv1.JobOverview) { d.is.Queues = queues })
}

// TestChartsFollow: queues that come have charts, and those that go have none. Charts fit the
// window, are in the zone that people chose, and the cursor of keys stays at its time.
func TestChartsFollow(t *testing.T) {
	t.Parallel()
	d := tell(t, 1)
	d.is.Queues = nil
	now := time.Now()
	for at := now.Add(-time.Hour); !at.After(now); at = at.Add(10 * time.Second) {
		d.page.Sample(queuesAt(at, 1, func(int) int { return 5 }), at)
	}
	b := newTab(t, 400, 900)
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Prague"})
		return err
	}))
	b.open(d.url + "/queues")
	b.until("the stream of changes", `document.querySelector("#link-state").textContent === "Live"`)
	require.True(t, is[bool](b, `document.querySelector("#charts-of").hidden`), "there is nothing to show")
	d.changeQueues(queuesAt(now, 2, func(int) int { return 7 }).GetQueues()...)
	b.until("charts of both queues", `document.querySelectorAll("#charts figure").length === 4`)
	b.until("the first one is drawn", `document.querySelector(".chart canvas")`)
	d.changeQueues(&jobsv1.Queue{Name: "q00", Waiting: 3})
	b.until("charts of one queue", `document.querySelectorAll("#charts figure").length === 2`)
	b.until("its latest value", `document.querySelector(".values").textContent.startsWith("Latest 3; largest 7,")`)

	// The answers are a minute later from now on.
	const read = `document.querySelector(".read").textContent`
	b.tabTo(".chart")
	b.do(chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.PageUp))
	b.until("a value of before", read+`.endsWith(" UTC: 5")`)
	before := is[string](b, read)
	b.script(`window.later = 0; const get = window.fetch; window.fetch = async (address, options) => {
		const answer = await get(address, options);
		if (!String(address).startsWith("/samples")) return answer;
		const samples = await answer.json();
		samples.start += 3 * samples.step;
		for (const name of Object.keys(samples.series)) samples.series[name] = samples.series[name].map((values) => values.slice(3).concat([8, 8, 8]));
		window.later++;
		return { ok: true, json: async () => samples };
	}`)
	d.changeQueues(&jobsv1.Queue{Name: "q00", Waiting: 4})
	b.until("values of later", `window.later > 0 && document.querySelector(".values").textContent.startsWith("Latest 4;")`)
	b.script(`requestAnimationFrame(() => requestAnimationFrame(() => { window.drawn = true; }))`)
	b.until("the drawing", `window.drawn`)
	require.Equal(t, before, is[string](b, read), "the cursor stays at its time")
	b.do(chromedp.KeyEvent(kb.End))
	b.until("the latest value", read+`.endsWith(": 8")`)

	b.script(`window.fetch = async () => ({ ok: false })`) // No later values draw anything.
	picture := is[string](b, `document.querySelector(".chart canvas").toDataURL()`)
	b.click("#zone")
	b.until("the zone below", read+`.includes(" GMT+1: ")`)
	b.until("the zone at the axis", `document.querySelector(".chart canvas").toDataURL() !== `+"`"+picture+"`")
	b.do(chromedp.EmulateViewport(800, 900))
	b.until("a chart as wide as its place", `(place => place.clientWidth > 600 && place.querySelector(".u-wrap").clientWidth === place.clientWidth)(document.querySelector(".chart"))`)
	b.requireCalm()
}
