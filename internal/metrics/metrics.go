// Package metrics has the metrics of a process: one list, which the code counts with, a
// registry serves and docs/reference.md shows.
//
// A label has few values: job types, worker types, locations, mirrors, classes. Ids of jobs
// and runs, and texts, belong into logs and traces.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Prefix begins the names of all metrics of this project. Those of the Temporal SDK begin
// with temporal_, and those of the process with go_ and process_.
const Prefix = "dendra_jobs_"

// Definition describes a metric.
type Definition struct {
	Name   string   // with its prefix and unit
	Kind   string   // counter, gauge or histogram
	Labels []string // in the order of the values that With takes
	Help   string   // one sentence without its full stop
}

// set is the registry with its definitions. A process has one.
type set struct {
	registry    *prometheus.Registry
	definitions []Definition
}

var process = newSet()

func newSet() *set {
	s := &set{registry: prometheus.NewRegistry()}
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// Definitions lists the metrics of this project, in the order of the code.
func Definitions() []Definition { return process.definitions }

// Register adds metrics of others, such as those of the Temporal SDK, to what is served.
func Register(c prometheus.Collector) error { return process.registry.Register(c) }

// Handler serves the metrics in the formats of Prometheus.
func Handler() http.Handler {
	return promhttp.HandlerFor(process.registry, promhttp.HandlerOpts{Timeout: 10 * time.Second, EnableOpenMetrics: true})
}

// Counter is a number that only grows.
type Counter struct{ vector *prometheus.CounterVec }

// Add adds n, which is not negative, to the series with these values of the labels.
func (c Counter) Add(n int64, values ...string) { c.vector.WithLabelValues(values...).Add(float64(n)) }

// Inc adds one.
func (c Counter) Inc(values ...string) { c.vector.WithLabelValues(values...).Inc() }

// Gauge is a number that rises and falls.
type Gauge struct{ vector *prometheus.GaugeVec }

// Add adds n, which may be negative.
func (g Gauge) Add(n int64, values ...string) { g.vector.WithLabelValues(values...).Add(float64(n)) }

// Histogram counts durations by their lengths.
type Histogram struct{ vector *prometheus.HistogramVec }

// Observe counts a duration.
func (h Histogram) Observe(d time.Duration, values ...string) {
	h.vector.WithLabelValues(values...).Observe(d.Seconds())
}

func define(kind, name, help string, labels []string) Definition {
	d := Definition{Name: Prefix + name, Kind: kind, Labels: labels, Help: help}
	process.definitions = append(process.definitions, d)
	return d
}

func counter(name, help string, labels ...string) Counter {
	d := define("counter", name, help, labels)
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: help}, labels)
	process.registry.MustRegister(v)
	return Counter{v}
}

func gauge(name, help string, labels ...string) Gauge {
	d := define("gauge", name, help, labels)
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: help}, labels)
	process.registry.MustRegister(v)
	return Gauge{v}
}

func histogram(name, help string, labels ...string) Histogram {
	d := define("histogram", name, help, labels)
	// In seconds: from a quick handler to one of hours.
	bounds := []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400}
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: help, Buckets: bounds}, labels)
	process.registry.MustRegister(v)
	return Histogram{v}
}
