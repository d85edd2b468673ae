package page_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server/page"
)

// memoryStore keeps samples in memory.
type memoryStore map[string][]byte

func (m memoryStore) Load(context.Context) (map[string][]byte, error) { return m, nil }
func (m memoryStore) Save(_ context.Context, name string, value []byte) error {
	m[name] = value
	return nil
}

// sampled is what the page answers of samples.
type sampled struct {
	Start, Step, Count int64
	Series             map[string][2][]*float64
}

// at is the largest value within the step of a moment.
func (s sampled) at(t *testing.T, name string, value int, at time.Time) *float64 {
	t.Helper()
	n := (at.Unix() - s.Start) / s.Step
	require.Less(t, n, s.Count)
	if n < 0 {
		return nil
	}
	return s.Series[name][value][n]
}

func samplesOf(t *testing.T, p *page.Page, query string) (s sampled, size int) {
	t.Helper()
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/samples?"+query, nil))
	require.Equal(t, http.StatusOK, answer.Code)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, err := zip.Write(answer.Body.Bytes())
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &s))
	return s, zipped.Len()
}

// queuesAt is an overview of queues, each as deep as a function says.
func queuesAt(at time.Time, n int, depth func(i int) int) *jobsv1.Overview {
	o := &jobsv1.Overview{}
	for i := range n {
		q := &jobsv1.Queue{Name: fmt.Sprintf("q%02d", i), Waiting: int32(depth(i))}
		if q.GetWaiting() > 0 {
			q.OldestTime = timestamppb.New(at.Add(-time.Duration(depth(i)) * time.Second))
		}
		o.Queues = append(o.Queues, q)
	}
	return o
}

// TestSamplesOfAWeek notes a week in no time: each period has the largest value of its steps, a
// restart has what was kept, and the answer is small.
func TestSamplesOfAWeek(t *testing.T) {
	t.Parallel()
	const queues = 50
	store, draw := memoryStore{}, stacktest.Random(t)
	p := page.New(page.Config{Samples: store})
	now := time.Now()
	peak := now.Add(-50 * time.Hour)
	for at := now.Add(-9 * 24 * time.Hour); !at.After(now); at = at.Add(time.Minute) {
		p.Sample(queuesAt(at, queues, func(i int) int {
			if at.Sub(peak).Abs() < 30*time.Second {
				return 1000 + i
			}
			return draw.IntN(20)
		}), at)
	}
	week, size := samplesOf(t, p, "of=queue&span=week")
	t.Logf("a week of %d queues: %d bytes compressed", queues, size)
	require.Less(t, size, 30<<10)
	require.EqualValues(t, 7*24*4, week.Count)
	require.InDelta(t, 1007, *week.at(t, "q07", 0, peak), 0, "the largest of its step")
	require.InDelta(t, 1007, *week.at(t, "q07", 1, peak), 0, "and its age")
	require.Less(t, *week.at(t, "q07", 0, peak.Add(time.Hour)), 20.0)
	day, size := samplesOf(t, p, "of=queue&span=day")
	t.Logf("a day: %d bytes", size)
	require.Less(t, size, 30<<10)
	require.Nil(t, day.at(t, "q07", 0, peak))
	require.NotNil(t, day.at(t, "q07", 0, now.Add(-20*time.Hour)))
	one, _ := samplesOf(t, p, "of=queue&span=hour&name=q07")
	require.Len(t, one.Series, 1)

	require.NoError(t, p.SaveSamples(t.Context()))
	again := page.New(page.Config{Samples: store})
	again.Sample(queuesAt(now, 1, func(int) int { return 77 }), now)
	require.NoError(t, again.LoadSamples(t.Context()))
	kept, _ := samplesOf(t, again, "of=queue&span=week")
	require.Equal(t, week.Series["q07"], kept.Series["q07"])
	require.InDelta(t, 77, *kept.at(t, "q00", 0, now), 0, "what was noted since stays")
	require.NotNil(t, kept.at(t, "q00", 0, peak))

	// A week later nothing of it is left.
	later := now.Add(8 * 24 * time.Hour)
	again.Sample(&jobsv1.Overview{}, later)
	gone, _ := samplesOf(t, again, "of=queue&span=week")
	require.Empty(t, gone.Series)
}

// TestSeriesAreBounded: what comes later than the most is left out.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	p := page.New(page.Config{})
	now := time.Now()
	p.Sample(queuesAt(now, page.MaxSeries+10, func(int) int { return 1 }), now)
	all, _ := samplesOf(t, p, "of=queue")
	require.Len(t, all.Series, page.MaxSeries)
}

// TestChartsByKeys reads values of charts by keys alone, on a phone, over a day.
func TestChartsByKeys(t *testing.T) {
	t.Parallel()
	d := tell(t, 1)
	now := time.Now()
	for at := now.Add(-25 * time.Hour); !at.After(now); at = at.Add(time.Minute) {
		o := queuesAt(at, 2, func(i int) int { return 5 + i })
		o.Workers = []*jobsv1.Worker{{Type: "extract", Running: 3, Slots: 8}, {Type: "extract", Name: "b", Running: 1, Slots: 8}}
		d.page.Sample(o, at)
	}
	d.mu.Lock()
	d.is.Queues = queuesAt(now, 2, func(i int) int { return 5 + i }).GetQueues()
	d.is.Workers = []*jobsv1.Worker{{Type: "extract", Running: 4, Slots: 16}}
	d.mu.Unlock()
	b := newTab(t, 400, 900)
	b.open(d.url + "/queues")
	b.tabTo(`nav[aria-label="Span of the charts"] a[href^="?span=day"]`)
	b.do(chromedp.KeyEvent("\r"))
	b.until("the day", `document.querySelector("#charts-of[data-span=day] .chart canvas")`)
	require.Zero(t, is[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`))
	b.tabTo(".chart")
	read := `document.activeElement.parentElement.querySelector(".read").textContent`
	b.do(chromedp.KeyEvent(kb.End))
	b.until("the latest value", read+`.endsWith(" UTC: 5")`)
	last := is[string](b, read)
	b.do(chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft))
	b.until("a value before it", read+`.endsWith(" UTC: 5") && `+read+` !== "`+last+`"`)
	first, err := time.Parse("2006-01-02 15:04:05 MST", last[:len("2006-01-02 15:04:05 UTC")])
	require.NoError(t, err)
	before, err := time.Parse("2006-01-02 15:04:05 MST", is[string](b, read)[:len("2006-01-02 15:04:05 UTC")])
	require.NoError(t, err)
	require.Equal(t, 10*time.Minute, first.Sub(before), "two steps of a day")
	b.do(chromedp.KeyEvent("\t"))
	b.until("the next chart", `document.activeElement.querySelector("canvas")`)
	b.do(chromedp.KeyEvent(kb.End))
	b.until("the age of the oldest", `/ UTC: [0-9.]+ s$/.test(`+read+`)`)
	require.Contains(t, is[string](b, `document.querySelector(".values").textContent`), "Latest 5; largest 5, ")

	b.open(d.url + "/workers?span=day")
	b.tabTo(".chart")
	b.until("a chart", `document.querySelector(".chart canvas")`)
	b.do(chromedp.KeyEvent(kb.End))
	b.until("slots", read+`.endsWith(" UTC: 4 of 16")`)
	b.requireCalm()
	lookAt(t, d.url, map[string]string{"queues": "/queues?span=day", "slots": "/workers?span=day"})
}
