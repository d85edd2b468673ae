package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/dendrascience/dendra-jobs/server/page"
)

// Bounds of what a browser is asked for.
const (
	pageLoads  = 5 // of the grid, each in a tab of its own
	scrolls    = 3 * time.Second
	pageAnswer = time.Minute
)

// pageFigures are those of the status page's grid.
type pageFigures struct {
	plain, gzip int
	answered    []time.Duration // from the request to the end of the answer
	streamed    int64           // bytes that a viewer got in a second while jobs changed
	browser     string          // why there are no figures of a browser
	grid, empty shown           // the grid, and for comparison a view with nothing in it
	heap        mebibytes       // of the script
	elements    int
}

// shown is how fast a browser shows a view.
type shown struct {
	painted []time.Duration // first contentful paint
	frames  []time.Duration // between two frames, while scrolling
}

// serveGrid serves the status page over the viewing's API.
func (v *viewing) serveGrid(ctx context.Context) (address string, closeServer func(), err error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: page.New(page.Config{API: v.api}), ReadHeaderTimeout: pageAnswer}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // It ends when it is closed.
	}()
	return "http://" + listener.Addr().String(), func() {
		_ = server.Close() // Nobody waits for its answers.
		<-done
	}, nil
}

// page measures the grid as it is sent, and as a browser shows it.
func (v *viewing) page(ctx context.Context, f *pageFigures, address string) error {
	for range pageLoads {
		begin := time.Now()
		body, err := download(ctx, address)
		if err != nil {
			return err
		}
		f.answered = append(f.answered, time.Since(begin))
		f.gzip = len(body)
		unpacked, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("the page is not compressed: %w", err)
		}
		text, err := io.ReadAll(unpacked)
		if err != nil {
			return err
		}
		f.plain = len(text)
	}
	return f.show(ctx, address)
}

// download reads an address as browsers do, compressed.
func download(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the page answers %s", response.Status)
	}
	return body, err
}

// show opens the grid in a browser, if there is one.
func (f *pageFigures) show(ctx context.Context, address string) error {
	path, err := exec.LookPath("chromium")
	if err != nil {
		f.browser = "chromium is not installed"
		return nil
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless)
	ctx, closeBrowser := chromedp.NewExecAllocator(ctx, options...)
	defer closeBrowser()
	ctx, closeFirst := chromedp.NewContext(ctx)
	defer closeFirst()
	if err := chromedp.Do(ctx); err != nil {
		return err
	}
	for n := range pageLoads {
		for _, view := range []struct {
			path string
			into *shown
		}{{"/", &f.grid}, {"/queues", &f.empty}} {
			tab, closeTab := chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
			err := f.look(tab, address+view.path, view.into, n == pageLoads-1)
			closeTab()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// look opens a view in a tab. Of the last one the frames are measured, while it is scrolled to its
// end and back.
func (f *pageFigures) look(tab context.Context, address string, into *shown, last bool) error {
	tab, cancel := context.WithTimeout(tab, pageAnswer)
	defer cancel()
	err := chromedp.Do(tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(address))
	if err != nil {
		return err
	}
	const paint = `new Promise((done) => new PerformanceObserver((list) => {
		for (const entry of list.getEntriesByName("first-contentful-paint")) done(entry.startTime);
	}).observe({ type: "paint", buffered: true }))`
	painted, err := chromedp.Run(tab, chromedp.Evaluate[float64](paint, chromedp.EvalAwaitPromise))
	if err != nil {
		return err
	}
	into.painted = append(into.painted, milliseconds(painted))
	if !last {
		return nil
	}
	scroll := fmt.Sprintf(`new Promise((done) => {
		const frames = [], began = performance.now();
		let before = began, by = 120;
		requestAnimationFrame(function next(now) {
			frames.push(now - before);
			before = now;
			const y = scrollY;
			scrollBy(0, by);
			if (scrollY === y) by = -by;
			if (now - began < %d) requestAnimationFrame(next); else done(frames.slice(1));
		});
	})`, scrolls.Milliseconds())
	frames, err := chromedp.Run(tab, chromedp.Evaluate[[]float64](scroll, chromedp.EvalAwaitPromise))
	if err != nil {
		return err
	}
	for _, took := range frames {
		into.frames = append(into.frames, milliseconds(took))
	}
	if into != &f.grid {
		return nil
	}
	heap, err := chromedp.Run(tab, chromedp.Evaluate[float64](`performance.memory.usedJSHeapSize / 1048576`))
	if err != nil {
		return err
	}
	f.heap = mebibytes(heap)
	f.elements, err = chromedp.Run(tab, chromedp.Evaluate[int](`document.querySelectorAll("*").length`))
	return err
}

func milliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// follow has a viewer follow the grid, as a browser does, and counts the bytes that come.
func follow(ctx context.Context, address string, count func(int)) (ended <-chan struct{}, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+page.EventsPath+"?view=home&runs=30", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // Whoever reads it does.
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = response.Body.Close() }() // Nobody reads it any more.
		buffer := make([]byte, 64<<10)
		for {
			n, err := response.Body.Read(buffer)
			count(n)
			if err != nil {
				return // It ends with the context.
			}
		}
	}()
	return done, nil
}
