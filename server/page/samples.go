package page

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// keepSamples is how far back charts go, and closest how near samples may be to each other.
const (
	keepSamples = time.Hour
	closest     = 5 * time.Second
)

// samples are how loads were within the last hour.
type samples struct {
	mu    sync.Mutex
	loads map[string][]sample
}

// sample is how a load was.
type sample struct {
	at      time.Time
	lag     float64 // seconds since the oldest message that waits
	waiting int64
	rate    float64 // points in a second
}

// take notes how the loads of an overview are.
func (s *samples) take(o *jobsv1.Overview, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loads == nil {
		s.loads = map[string][]sample{}
	}
	for _, l := range o.GetLoads() {
		name := loadName(l)
		kept := s.loads[name]
		if n := len(kept); n > 0 && now.Sub(kept[n-1].at) < closest {
			continue
		}
		one := sample{at: now, waiting: l.GetWaiting(), rate: l.GetPointsPerSecond()}
		if l.GetOldestTime() != nil && l.GetWaiting() > 0 {
			one.lag = max(0, now.Sub(l.GetOldestTime().AsTime()).Seconds())
		}
		s.loads[name] = append(kept, one)
	}
	for name, kept := range s.loads {
		first := slices.IndexFunc(kept, func(one sample) bool { return now.Sub(one.at) <= keepSamples })
		if first < 0 {
			delete(s.loads, name)
		} else {
			s.loads[name] = slices.Delete(kept, 0, first)
		}
	}
}

func loadName(l *jobsv1.Load) string {
	return l.GetLocation() + "/" + l.GetFlow() + "/" + l.GetMirror()
}

// Run notes how loads are until the context ends, so that charts have a past. Without it
// they have what was there while someone looked.
func (p *Page) Run(ctx context.Context) error {
	tick := time.NewTicker(p.SampleEvery)
	defer tick.Stop()
	for {
		if _, err := p.readOverview(ctx, 1); err != nil && ctx.Err() == nil {
			p.Logger.WarnContext(ctx, "loads cannot be read for their charts", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// series are the samples of a load, as uPlot takes them.
type series struct {
	Times   []int64   `json:"times"` // in seconds since 1970
	Lag     []float64 `json:"lag"`
	Waiting []int64   `json:"waiting"`
	Rate    []float64 `json:"rate"`
}

// loadSamples answers with the samples of all loads.
func (p *Page) loadSamples(w http.ResponseWriter, r *http.Request) {
	all := map[string]series{}
	p.samples.mu.Lock()
	for name, kept := range p.samples.loads {
		var s series
		for _, one := range kept {
			s.Times, s.Lag = append(s.Times, one.at.Unix()), append(s.Lag, one.lag)
			s.Waiting, s.Rate = append(s.Waiting, one.waiting), append(s.Rate, one.rate)
		}
		all[name] = s
	}
	p.samples.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(all); err != nil {
		p.Logger.DebugContext(r.Context(), "samples could not be sent", "error", err)
	}
}
