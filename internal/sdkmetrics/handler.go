// Package sdkmetrics serves the metrics of the Temporal SDK as Prometheus metrics.
//
// The SDK tells names and tags as it goes, and one metric may have several sets of tags.
// Prometheus's vectors want one set for each metric, so that each series is a metric of
// its own here. The adapters of the SDK's contrib folder bring a metrics library each.
package sdkmetrics

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/internal/metrics"
)

// maxSeries bounds the series. What comes after them is not counted.
const maxSeries = 5000

// bounds are those of the buckets of the SDK's latencies, in seconds.
var bounds = []float64{0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 600}

// shared is the process's; it is registered once.
var shared = sync.OnceValues(func() (*collector, error) {
	c := &collector{series: map[string]prometheus.Metric{}}
	return c, metrics.Register(c)
})

// Handler gives what the SDK counts with, for the clients of this process.
func Handler() (client.MetricsHandler, error) {
	c, err := shared()
	return handler{collector: c}, err
}

// collector holds all series.
type collector struct {
	mu     sync.RWMutex
	series map[string]prometheus.Metric
}

// Describe implements prometheus.Collector. It tells nothing: what there will be is not known.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(found chan<- prometheus.Metric) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, m := range c.series {
		found <- m
	}
}

// of gives a series, nil if there are too many.
func (c *collector) of(name string, tags map[string]string, create func(prometheus.Opts) prometheus.Metric) prometheus.Metric {
	key := keyOf(name, tags)
	c.mu.RLock()
	m := c.series[key]
	c.mu.RUnlock()
	if m != nil {
		return m
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.series[key]; m != nil || len(c.series) >= maxSeries {
		return m
	}
	m = create(prometheus.Opts{
		Name: name, Help: "See the metrics reference of the Temporal SDKs.", ConstLabels: tags,
	})
	c.series[key] = m
	return m
}

func keyOf(name string, tags map[string]string) string {
	var b strings.Builder
	b.WriteString(name)
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		b.WriteString("\x00" + tag + "\x00" + tags[tag])
	}
	return b.String()
}

// handler is the metrics with some tags.
type handler struct {
	collector *collector
	tags      map[string]string
}

// WithTags implements client.MetricsHandler.
func (h handler) WithTags(tags map[string]string) client.MetricsHandler {
	all := maps.Clone(h.tags)
	if all == nil {
		all = map[string]string{}
	}
	for name, value := range tags {
		all[labelName(name)] = strings.ToValidUTF8(value, "?")
	}
	return handler{h.collector, all}
}

// Counter implements client.MetricsHandler.
func (h handler) Counter(name string) client.MetricsCounter {
	m := h.collector.of(labelName(name)+"_total", h.tags, func(o prometheus.Opts) prometheus.Metric {
		return prometheus.NewCounter(prometheus.CounterOpts(o))
	})
	c, _ := m.(prometheus.Counter)
	return counter{c}
}

// Gauge implements client.MetricsHandler.
func (h handler) Gauge(name string) client.MetricsGauge {
	m := h.collector.of(labelName(name), h.tags, func(o prometheus.Opts) prometheus.Metric {
		return prometheus.NewGauge(prometheus.GaugeOpts(o))
	})
	g, _ := m.(prometheus.Gauge)
	return gauge{g}
}

// Timer implements client.MetricsHandler.
func (h handler) Timer(name string) client.MetricsTimer {
	m := h.collector.of(labelName(name)+"_seconds", h.tags, func(o prometheus.Opts) prometheus.Metric {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: o.Name, Help: o.Help, ConstLabels: o.ConstLabels, Buckets: bounds})
	})
	t, _ := m.(prometheus.Histogram)
	return timer{t}
}

type counter struct{ prometheus.Counter }

// Inc implements client.MetricsCounter.
func (c counter) Inc(n int64) {
	if c.Counter != nil && n > 0 {
		c.Add(float64(n))
	}
}

type gauge struct{ prometheus.Gauge }

// Update implements client.MetricsGauge.
func (g gauge) Update(value float64) {
	if g.Gauge != nil {
		g.Set(value)
	}
}

type timer struct{ prometheus.Histogram }

// Record implements client.MetricsTimer.
func (t timer) Record(d time.Duration) {
	if t.Histogram != nil {
		t.Observe(d.Seconds())
	}
}

// labelName makes a name that Prometheus takes.
func labelName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}
