package page_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// screenshots is a folder, absolute. docs/status-page.md has the command.
var screenshots = flag.String("screenshots", "", "folder for pictures of the page")

// axeFile is what looks for barriers; make axe installs it.
const axeFile = "axe/node_modules/axe-core/axe.min.js"

var axe = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile(axeFile)
	return string(text), err
})

// TestAxe says that the other tests look for barriers, or that they do not.
func TestAxe(t *testing.T) {
	t.Parallel()
	if _, err := axe(); err != nil {
		t.Skip("axe-core is not installed, so no view is searched for barriers: make axe")
	}
	// A page that has some is found out.
	b := newTab(t, 1280, 900)
	b.open(tell(t, 1).url)
	b.script(`document.querySelector("#main").innerHTML = "<img src='/static/icon.svg'><button></button>"`)
	require.Contains(t, strings.Join(b.barriers(), "\n"), "button-name")
}

// lookAt opens addresses, wide and narrow, light and dark. It requires that there are no serious
// barriers for people, if axe-core is installed, and takes pictures, if they are asked for.
func lookAt(t *testing.T, address string, paths map[string]string) {
	t.Helper()
	if _, err := axe(); err != nil && *screenshots == "" {
		return
	}
	for name, path := range paths {
		for _, width := range []int64{1280, 400} {
			for _, scheme := range []string{"light", "dark"} {
				t.Run(fmt.Sprintf("look at %s %d %s", name, width, scheme), func(t *testing.T) { //nolint:paralleltest // A tab is closed before the next.
					b := newTab(t, width, 900)
					b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
						_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
							Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
						})
						return err
					}))
					b.open(address + path)
					b.until("what is drawn later", `!document.querySelector(".o") || document.querySelector(".o .c") || document.querySelector(".o").scrollIntoView()`)
					b.until("charts", `!document.querySelector(".chart") || document.querySelector(".chart canvas") || scrollTo(0, document.querySelector(".chart").offsetTop - 500)`)
					b.script(`document.querySelector(".chart") || scrollTo(0, 0)`)
					b.picture(fmt.Sprintf("page-%s-%d-%s", name, width, scheme))
					require.Empty(t, strings.Join(b.barriers(), "\n"), "barriers")
				})
			}
		}
	}
}

// barriers are what axe-core finds in a view that is serious or critical; none if it is not
// installed.
func (b *tab) barriers() []string {
	b.t.Helper()
	text, err := axe()
	if err != nil {
		return nil
	}
	b.script(text)
	b.script(`axe.run(document, { resultTypes: ["violations"] }).then((found) => {
		window.barriers = found.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) =>
			v.id + ": " + v.help + "\n" + v.nodes.slice(0, 3).map((n) => "  " + n.html.slice(0, 300) + "\n  " + n.failureSummary).join("\n"))
	})`)
	b.until("the search for barriers", `window.barriers`)
	return is[[]string](b, `window.barriers`)
}

// picture takes a picture of a tab as it is.
func (b *tab) picture(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	picture, err := chromedp.Run(b, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o600))
}

// Loads have charts of their points, and of how far behind they were.
func TestLoadsHaveCharts(t *testing.T) {
	t.Parallel()
	d := tell(t, 40)
	now := time.Now()
	loads := func(at time.Time, n float64) []*jobsv1.Load {
		behind := time.Duration(20*(1+math.Sin(n/20))) * time.Second
		return []*jobsv1.Load{
			{
				Location: "main", Flow: "live", Mirror: "default", Status: jobsv1.LoadStatus_LOAD_STATUS_OK, Waiting: 3,
				OldestTime: timestamppb.New(at.Add(-behind)), PointsPerSecond: 812.5, LastWriteTime: timestamppb.New(at), JobId: "load_influx.main",
			},
			{
				Location: "main", Flow: "test", Mirror: "default", Status: jobsv1.LoadStatus_LOAD_STATUS_REFUSING, Quarantined: 12,
				RefusingTime: timestamppb.New(now.Add(-time.Hour)), RecentPoints: 20, RecentRefusedPoints: 12, RefusalClass: "RefusedPoint",
				RefusalMessage: "field type conflict: input field \"v\" on measurement \"m\" is type string, already exists as type float",
			}, {
				Location: "main", Flow: "live", Mirror: "backup", Status: jobsv1.LoadStatus_LOAD_STATUS_DOWN, Waiting: 4821, Failures: 7, HeldSequence: 99,
				OldestTime: timestamppb.New(now.Add(-40 * time.Minute)), ErrorMessage: "the server answers with 503.", LastWriteTime: timestamppb.New(now.Add(-41 * time.Minute)),
				NextAttemptTime: timestamppb.New(now.Add(40 * time.Second)),
			},
		}
	}
	for n := range 340 {
		at := now.Add(time.Duration(n-340) * 10 * time.Second)
		d.page.Sample(&jobsv1.Overview{Loads: loads(at, float64(n))}, at)
	}
	d.mu.Lock()
	d.is.Loads = loads(now, 340)
	d.mu.Unlock()
	b := newTab(t, 1280, 900)
	b.open(d.url + "/loads")
	b.until("charts", `document.querySelectorAll(".chart canvas").length >= 3`)
	require.Contains(t, is[string](b, "document.querySelector('main').innerText"), "main/live/backup")
	require.Contains(t, is[string](b, "document.querySelector('main').innerText"), "12 of the latest 20 points are in quarantine")
	b.requireCalm()
	lookAt(t, d.url, map[string]string{"loads": "/loads"})
}
