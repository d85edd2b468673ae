package page

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/job/wording"
)

// valueOf is one of the values of a series.
type valueOf struct {
	Label string
	// Seconds says that it is a duration.
	Seconds bool
}

// values are those of the series of a kind.
var values = map[string][2]valueOf{
	loadSeries:   {{Label: "points a second"}, {Label: "behind", Seconds: true}},
	queueSeries:  {{Label: "waiting"}, {Label: "oldest", Seconds: true}},
	workerSeries: {{Label: "slots in use"}, {Label: "slots"}},
}

// chartsView are the charts of a view.
type chartsView struct {
	// Of is the kind of the series: load, queue or worker.
	Of      string
	Period  string
	Periods []choice
	Charts  []chart
	// Since is when the samples of the period begin, if that is later than the period.
	Since *timestamppb.Timestamp
}

// chart is the chart of one value. Limit says that the other value is drawn as a line.
type chart struct {
	Name, Label string
	Value       int
	Seconds     bool
	Limit       bool
	// Latest and Largest are texts, "" if there is none.
	Latest, Largest string
	LargestTime     *timestamppb.Timestamp
}

// charts are those of what has names, in the period that an address asks for.
func (p *Page) charts(r *http.Request, kind string, names ...string) *chartsView {
	at := readPeriod(r.URL.Query())
	view := &chartsView{Of: strings.TrimSuffix(kind, "/"), Period: periods[at].Name}
	for i, p := range periods {
		view.Periods = append(view.Periods, choice{Label: p.Label, Link: "?" + url.Values{"span": {p.Name}}.Encode(), Chosen: i == at})
	}
	all, first := p.samples.of(kind, at), int64(math.MaxInt64)
	for _, name := range names {
		points := all[name]
		if len(points) > 0 {
			first = min(first, points[0].At)
		}
		for i, value := range values[kind] {
			if kind == workerSeries && i == 1 {
				continue // It is the limit of the first.
			}
			one := newChart(name, i, value, points, kind == workerSeries)
			if v, ok := p.samples.now(kind + name); ok && len(points) > 0 {
				one.Latest = one.text(v)
			}
			view.Charts = append(view.Charts, one)
		}
	}
	if begin := time.Now().Add(-periods[at].long + 2*periods[at].step); first < math.MaxInt64 && first > begin.Unix() {
		view.Since = timestamppb.New(time.Unix(first, 0))
	}
	return view
}

func newChart(name string, i int, value valueOf, points []point, limit bool) chart {
	c := chart{Name: name, Label: value.Label, Value: i, Seconds: value.Seconds, Limit: limit}
	if len(points) == 0 {
		return c
	}
	largest := slices.MaxFunc(points, func(a, b point) int { return cmp.Compare(a.V[i], b.V[i]) })
	c.Largest = c.text(largest.V)
	c.LargestTime = timestamppb.New(time.Unix(largest.At, 0))
	return c
}

func (c chart) text(v [2]float64) string {
	if c.Seconds {
		return wording.Span(time.Duration(v[c.Value] * float64(time.Second)))
	}
	text := strconv.FormatFloat(round(v[c.Value]), 'f', -1, 64)
	if c.Limit {
		text += " of " + strconv.FormatFloat(round(v[1]), 'f', -1, 64)
	}
	return text
}

// round leaves one decimal.
func round(value float64) float64 { return math.Round(value*10) / 10 }

// readPeriod is the place of the period that an address asks for: by default the first.
func readPeriod(values url.Values) int {
	return max(0, slices.IndexFunc(periods, func(p period) bool { return p.Name == values.Get("span") }))
}

// seriesJSON are the points of a series, as charts take them: null where there is none.
type seriesJSON [2][]*float64

// samplesJSON answers with the points of the series of a kind: of one, if it is named. Times are
// in seconds since 1970.
func (p *Page) samplesJSON(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	at, now := readPeriod(query), time.Now()
	step := int64(periods[at].step / time.Second)
	last := now.Truncate(periods[at].step).Unix()
	first := last - int64(periods[at].long/time.Second) + step
	answer := struct {
		Start  int64                 `json:"start"`
		Step   int64                 `json:"step"`
		Count  int64                 `json:"count"`
		Series map[string]seriesJSON `json:"series"`
	}{first, step, (last-first)/step + 1, map[string]seriesJSON{}}
	for name, points := range p.samples.of(query.Get("of")+"/", at) {
		if wanted := query["name"]; len(wanted) > 0 && !slices.Contains(wanted, name) {
			continue
		}
		series := seriesJSON{make([]*float64, answer.Count), make([]*float64, answer.Count)}
		for _, one := range points {
			if n := (one.At - first) / step; one.At >= first && n < answer.Count {
				for i := range series {
					series[i][n] = new(round(one.V[i]))
				}
			}
		}
		answer.Series[name] = series
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		p.Logger.DebugContext(r.Context(), "samples could not be sent", "error", err)
	}
}
