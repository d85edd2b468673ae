package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// recentFor is how long a value of a [Recent] is served after it was set.
const recentFor = 2 * time.Minute

// Recent is a gauge of what may move to another process, such as a load. A value that is
// not set again is no longer served after two minutes.
type Recent struct{ *recent }

type recent struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu     sync.Mutex
	values map[string]recentValue // by the joined values of the labels
}

type recentValue struct {
	labels []string
	value  float64
	at     time.Time
}

func recently(name, help string, labels ...string) Recent {
	d := define("gauge", name, help, labels)
	r := &recent{desc: prometheus.NewDesc(d.Name, help, labels, nil), now: time.Now, values: map[string]recentValue{}}
	process.registry.MustRegister(r)
	return Recent{r}
}

// Set sets the value of a series.
func (r *recent) Set(value float64, labels ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[strings.Join(labels, "\x00")] = recentValue{labels, value, r.now()}
}

// Describe implements prometheus.Collector.
func (r *recent) Describe(descs chan<- *prometheus.Desc) { descs <- r.desc }

// Collect implements prometheus.Collector.
func (r *recent) Collect(metrics chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, v := range r.values {
		if r.now().Sub(v.at) > recentFor {
			delete(r.values, key)
			continue
		}
		metrics <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, v.value, v.labels...)
	}
}
