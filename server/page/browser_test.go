package page_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// tab is a tab of a browser.
type tab struct {
	context.Context
	t *testing.T

	mu     sync.Mutex
	errors []string // of the console
}

// browser is the one of all tests of the package. It ends with the process that started it.
// Chromium's headless shell needs half of the time of a whole Chromium, which otherwise begins
// another renderer in advance for each tab.
var browser = sync.OnceValues(func() (context.Context, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless,
			chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,SpareRendererForSitePerProcess"), chromedp.WSURLReadTimeout(2*time.Minute))
		ctx, _ := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, _ = chromedp.NewContext(ctx)
		stopBrowser = func() { _ = chromedp.Cancel(ctx) }
		return ctx, chromedp.Do(ctx)
	}
	return nil, exec.ErrNotFound
})

var stopBrowser = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	stopBrowser()
	os.Exit(code) //nolint:forbidigo // A test's main has no other way to tell.
}

// newTab opens a tab of the size of a window.
func newTab(t *testing.T, width, height int64) *tab {
	t.Helper()
	ctx, err := browser()
	if err == exec.ErrNotFound { //nolint:errorlint // It is returned as it is.
		t.Skip("no browser: install chromium-headless-shell or chromium to have the page's tests run")
	}
	require.NoError(t, err)
	// Tabs of one browser context share six connections to a server. Each has a stream.
	ctx, closeTab := chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	b := &tab{Context: ctx, t: t}
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			b.errors = append(b.errors, fmt.Sprintf("%+v", event.ExceptionDetails))
		case *runtime.EventConsoleAPICalled:
			if event.Type == runtime.ConsoleAPICalledTypeError {
				b.errors = append(b.errors, event.Args[0].Value.String())
			}
		}
	}))
	b.do(chromedp.EmulateViewport(width, height))
	return b
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b, actions...))
}

// open shows an address, and waits until the script has begun.
func (b *tab) open(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url))
	b.until("the script to begin", `document.documentElement.classList.contains("js")`)
}

// is evaluates an expression.
func is[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return value
}

// script runs a script to its end.
func (b *tab) script(text string) {
	b.t.Helper()
	_, err := chromedp.Run(b, chromedp.Evaluate[any](text+"; undefined"))
	require.NoError(b.t, err, text)
}

// until waits for an expression to be true of a document that was read to its end: of one that
// comes slowly, the first elements are there before the others.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	stacktest.WaitWithin(b.t, 90*time.Second, what, func() (bool, error) {
		return chromedp.Run(b, chromedp.Evaluate[bool](`document.readyState !== "loading" && !!(`+expression+")"))
	})
}

// click clicks the first element that a selector fits.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.until("an element "+selector, fmt.Sprintf("document.querySelector(%q)", selector))
	b.script(fmt.Sprintf("document.querySelector(%q).click()", selector))
}

// tap touches the middle of the first element that a selector fits.
func (b *tab) tap(selector string) {
	b.t.Helper()
	at := is[[]float64](b, fmt.Sprintf(`(box => [box.x + box.width / 2, box.y + box.height / 2])(document.querySelector(%q).getBoundingClientRect())`, selector))
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		down := input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: []*input.TouchPoint{{X: at[0], Y: at[1]}}}
		if _, err := cdp.Call(ctx, target, input.DispatchTouchEvent, down); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}})
		return err
	}))
}

// tabTo presses Tab until an element that a selector fits has the focus.
func (b *tab) tabTo(selector string, options ...chromedp.KeyOption) {
	b.t.Helper()
	for range 100 {
		if is[bool](b, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			return
		}
		b.do(chromedp.KeyEvent(kb.Tab, options...))
	}
	require.Fail(b.t, "Tab does not lead there", selector)
}

// requireCalm requires that the console has no errors.
func (b *tab) requireCalm() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, strings.Join(b.errors, "\n"), "errors of the console")
}

// shown are the ids of the rows that are shown.
func (b *tab) shown() []string {
	b.t.Helper()
	return is[[]string](b, `Array.from(document.querySelectorAll("#grid .jobs tr:not([hidden])")).map(r => r.id.slice(2))`)
}
