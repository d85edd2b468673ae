package page

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// SampleStore keeps samples by the names of their series, so that a restart goes on with them.
// Replicas share it: they take the same samples, and the last one to write wins.
type SampleStore interface {
	Load(ctx context.Context) (map[string][]byte, error)
	Save(ctx context.Context, name string, value []byte) error
}

// What the names of series begin with.
const (
	loadSeries   = "load/"
	queueSeries  = "queue/"
	workerSeries = "worker/"
)

// period is a span of time that charts show, and how near its points are to each other.
type period struct {
	Name, Label string
	long, step  time.Duration
}

// periods are those to choose from.
var periods = []period{
	{"hour", "Hour", time.Hour, 20 * time.Second}, // two samples each
	{"day", "Day", 24 * time.Hour, 5 * time.Minute},
	{"week", "Week", 7 * 24 * time.Hour, 15 * time.Minute},
}

// maxSeries bounds the series. Those that come later are left out.
const maxSeries = 300

// saveEvery is how often samples are kept: a server that is killed loses those since.
const saveEvery = 5 * time.Minute

// point is the largest of each value within a step.
type point struct {
	At int64      `json:"t"` // when the step began, in seconds since 1970
	V  [2]float64 `json:"v"`
}

// samples are how loads, queues and workers were: for each series the points of each period.
type samples struct {
	mu     sync.Mutex
	series map[string][][]point
	// latest are the values that were taken last: those of points are the largest of a step.
	latest map[string][2]float64
}

// take notes how an overview is.
func (s *samples) take(o *jobsv1.Overview, now time.Time) {
	all := map[string][2]float64{}
	for _, l := range o.GetLoads() {
		lag := 0.0
		if l.GetOldestTime() != nil && l.GetWaiting() > 0 {
			lag = max(0, now.Sub(l.GetOldestTime().AsTime()).Seconds())
		}
		all[loadSeries+loadName(l)] = [2]float64{l.GetPointsPerSecond(), lag}
	}
	for _, q := range o.GetQueues() {
		age := 0.0
		if q.GetOldestTime() != nil && q.GetWaiting() > 0 {
			age = max(0, now.Sub(q.GetOldestTime().AsTime()).Seconds())
		}
		all[queueSeries+q.GetName()] = [2]float64{float64(q.GetWaiting()), age}
	}
	for _, w := range o.GetWorkers() {
		if w.GetStatus() == jobsv1.WorkerStatus_WORKER_STATUS_LOST {
			continue
		}
		name := workerSeries + w.GetType()
		sum := all[name]
		all[name] = [2]float64{sum[0] + float64(w.GetRunning()), sum[1] + float64(w.GetSlots())}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = all
	for name, v := range all {
		s.add(name, v, now)
	}
	for name, kept := range s.series { // What is gone has no points any more in time.
		empty := true
		for i, p := range periods {
			first := now.Add(-p.long).Unix()
			n := slices.IndexFunc(kept[i], func(one point) bool { return one.At > first })
			if n < 0 {
				n = len(kept[i])
			}
			kept[i] = slices.Delete(kept[i], 0, n)
			empty = empty && len(kept[i]) == 0
		}
		if empty {
			delete(s.series, name)
		}
	}
}

func (s *samples) add(name string, v [2]float64, now time.Time) {
	kept, known := s.series[name]
	if !known {
		if len(s.series) >= maxSeries {
			return
		}
		kept = make([][]point, len(periods))
		if s.series == nil {
			s.series = map[string][][]point{}
		}
		s.series[name] = kept
	}
	for i, p := range periods {
		at := now.Truncate(p.step).Unix()
		if n := len(kept[i]); n > 0 && kept[i][n-1].At >= at {
			last := &kept[i][n-1].V
			last[0], last[1] = max(last[0], v[0]), max(last[1], v[1])
			continue
		}
		kept[i] = append(kept[i], point{at, v})
	}
}

// now are the values of a series that were taken last. It reports whether there were any.
func (s *samples) now(name string) (v [2]float64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok = s.latest[name]
	return v, ok
}

// of are the points of the series of a kind in a period, by the names of what they are of.
func (s *samples) of(kind string, p int) map[string][]point {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string][]point{}
	for name, kept := range s.series {
		if of, ok := strings.CutPrefix(name, kind); ok {
			all[of] = slices.Clone(kept[p])
		}
	}
	return all
}

// load puts what a store has before what was taken since.
func (s *samples) load(ctx context.Context, store SampleStore) error {
	all, err := store.Load(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, text := range all {
		var older [][]point
		unzip, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil || json.NewDecoder(unzip).Decode(&older) != nil || len(older) != len(periods) {
			continue // Another version wrote it.
		}
		since := s.series[name]
		for i := range since {
			if len(since[i]) > 0 {
				older[i] = slices.DeleteFunc(older[i], func(one point) bool { return one.At >= since[i][0].At })
				older[i] = append(older[i], since[i]...)
			}
		}
		if s.series == nil {
			s.series = map[string][][]point{}
		}
		if since != nil || len(s.series) < maxSeries {
			s.series[name] = older
		}
	}
	return nil
}

// save gives all series to a store.
func (s *samples) save(ctx context.Context, store SampleStore) error {
	s.mu.Lock()
	texts := map[string][]byte{}
	for name, kept := range s.series {
		var text bytes.Buffer
		zip := gzip.NewWriter(&text)
		if json.NewEncoder(zip).Encode(kept) == nil && zip.Close() == nil {
			texts[name] = text.Bytes()
		}
	}
	s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := store.Save(ctx, name, texts[name]); err != nil {
			return err
		}
	}
	return nil
}

func loadName(l *jobsv1.Load) string {
	return l.GetLocation() + "/" + l.GetFlow() + "/" + l.GetMirror()
}

// Run notes how loads, queues and workers are until the context ends, so that charts have a
// past. Without it they have what was there while someone looked.
func (p *Page) Run(ctx context.Context) error {
	tick := time.NewTicker(p.SampleEvery)
	defer tick.Stop()
	loaded, saved := p.Samples == nil, time.Now()
	for {
		if !loaded {
			err := p.samples.load(ctx, p.Samples)
			loaded = err == nil // Until then nothing is saved over what is there.
			p.noteSamples(ctx, "read", err)
		}
		if _, err := p.readOverview(ctx, 1); err != nil && ctx.Err() == nil {
			p.Logger.WarnContext(ctx, "loads cannot be read for their charts", "error", err)
		}
		if p.Samples != nil && loaded && time.Since(saved) >= saveEvery {
			saved = time.Now()
			p.noteSamples(ctx, "kept", p.samples.save(ctx, p.Samples))
		}
		select {
		case <-ctx.Done():
			if p.Samples != nil && loaded {
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveAtEnd)
				defer cancel()
				p.noteSamples(last, "kept", p.samples.save(last, p.Samples))
			}
			return nil
		case <-tick.C:
		}
	}
}

// saveAtEnd is how long a server that stops may take for that.
const saveAtEnd = 3 * time.Second

// noteSamples tells of samples that could not be read or kept: charts begin anew then.
func (p *Page) noteSamples(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		level := slog.LevelDebug // What cannot be read is tried again every ten seconds.
		if what == "kept" {
			level = slog.LevelWarn
		}
		p.Logger.Log(ctx, level, "samples of charts could not be "+what, "error", err)
	}
}
