package alerttest_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// scrapeInterval is how much later each scrape is than the one before, for the rules.
const scrapeInterval = 15 * time.Second

// rule is an alert rule.
type rule struct {
	Alert string `yaml:"alert"`
	Expr  string `yaml:"expr"`
	For   string `yaml:"for"`
}

func readRules(t *testing.T, path string) []rule {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.Len(t, file.Groups, 1)
	return file.Groups[0].Rules
}

// prometheus scrapes targets and evaluates rules, as a Prometheus server does.
type prometheus struct {
	*testing.T
	engine  *promql.Engine
	rules   []rule
	targets map[string]string // URLs by their instance

	now     time.Time
	series  map[string]*promql.Series
	last    map[string]bool                         // the series of the last scrape
	pending map[string]map[string]time.Time         // by rule and labels: true since
	firing  map[string]map[string]map[string]string // the labels, by rule and labels
}

func newPrometheus(t *testing.T, rules []rule) *prometheus {
	t.Helper()
	return &prometheus{
		T: t, rules: rules, targets: map[string]string{},
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
		}),
		now:    time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
		series: map[string]*promql.Series{}, last: map[string]bool{},
		pending: map[string]map[string]time.Time{}, firing: map[string]map[string]map[string]string{},
	}
}

// scrape reads all targets and evaluates all rules. A target that does not answer has no
// series, as one that is gone.
func (p *prometheus) scrape() {
	p.Helper()
	p.now = p.now.Add(scrapeInterval)
	found := map[string]bool{}
	for _, instance := range slices.Sorted(maps.Keys(p.targets)) {
		p.scrapeTarget(instance, found)
	}
	for key := range p.last {
		if !found[key] { // Stale: Prometheus marks the end of a series.
			p.add(key, p.series[key].Metric, math.Float64frombits(value.StaleNaN))
		}
	}
	p.last = found
	for _, r := range p.rules {
		p.evaluate(r)
	}
}

func (p *prometheus) scrapeTarget(instance string, found map[string]bool) {
	p.Helper()
	request, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.targets[instance], nil)
	require.NoError(p, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return
	}
	defer func() { require.NoError(p, response.Body.Close()) }()
	text := expfmt.NewTextParser(model.UTF8Validation)
	families, err := text.TextToMetricFamilies(response.Body)
	if err != nil {
		return // It ended meanwhile.
	}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var number float64
			switch {
			case m.GetCounter() != nil:
				number = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				number = m.GetGauge().GetValue()
			default:
				continue // No rule looks at histograms.
			}
			pairs := map[string]string{model.MetricNameLabel: name, "instance": instance}
			for _, l := range m.GetLabel() {
				pairs[l.GetName()] = l.GetValue()
			}
			of := labels.FromMap(pairs)
			p.add(of.String(), of, number)
			found[of.String()] = true
		}
	}
}

func (p *prometheus) add(key string, of labels.Labels, number float64) {
	if p.series[key] == nil {
		p.series[key] = &promql.Series{Metric: of}
	}
	p.series[key].Floats = append(p.series[key].Floats, promql.FPoint{T: p.now.UnixMilli(), F: number})
}

func (p *prometheus) evaluate(r rule) {
	p.Helper()
	query, err := p.engine.NewInstantQuery(p.Context(), p, nil, r.Expr, p.now)
	require.NoError(p, err, r.Alert)
	defer query.Close()
	result := query.Exec(p.Context())
	require.NoError(p, result.Err, r.Alert)
	vector, err := result.Vector()
	require.NoError(p, err, r.Alert)
	wait, err := model.ParseDuration(r.For)
	require.NoError(p, err, r.Alert)
	since, firing := map[string]time.Time{}, map[string]map[string]string{}
	for _, sample := range vector {
		key := sample.Metric.String()
		since[key] = p.now
		if before, ok := p.pending[r.Alert][key]; ok {
			since[key] = before
		}
		if p.now.Sub(since[key]) >= time.Duration(wait) {
			firing[key] = sample.Metric.Map()
		}
	}
	p.pending[r.Alert], p.firing[r.Alert] = since, firing
}

// fires reports whether a rule fires with these labels.
func (p *prometheus) fires(alert string, want map[string]string) bool {
	for _, got := range p.firing[alert] {
		all := true
		for name, text := range want {
			all = all && got[name] == text
		}
		if all {
			return true
		}
	}
	return false
}

// Querier implements storage.Queryable.
func (p *prometheus) Querier(_, _ int64) (storage.Querier, error) { return querier{p}, nil }

type querier struct{ of *prometheus }

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{at: -1}
	for _, key := range slices.Sorted(maps.Keys(q.of.series)) {
		s := q.of.series[key]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Metric.Get(m.Name)) }) {
			set.series = append(set.series, promql.NewStorageSeries(*s))
		}
	}
	return set
}

var errNotAsked = errors.New("no expression asks for this")

// LabelValues implements storage.Querier.
func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errNotAsked
}

// LabelNames implements storage.Querier.
func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errNotAsked
}

// Close implements storage.Querier.
func (querier) Close() error { return nil }

type seriesSet struct {
	series []storage.Series
	at     int
}

// Next implements storage.SeriesSet.
func (s *seriesSet) Next() bool {
	s.at++
	return s.at < len(s.series)
}

// At implements storage.SeriesSet.
func (s *seriesSet) At() storage.Series { return s.series[s.at] }

// Err implements storage.SeriesSet.
func (s *seriesSet) Err() error { return nil }

// Warnings implements storage.SeriesSet.
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// state lists what fires, for messages.
func (p *prometheus) state() string {
	var firing []string
	for alert, all := range p.firing {
		for key := range all {
			firing = append(firing, alert+key)
		}
	}
	slices.Sort(firing)
	return strings.Join(firing, ", ")
}
