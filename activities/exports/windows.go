package exports

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dendrascience/dendra-jobs/internal/influx"
)

const (
	// countedAtOnce is the span of a query that counts values by days.
	countedAtOnce = 400 * day
	// maxWindow bounds the stored values of a window, however many may be read in a second.
	maxWindow = 500_000
)

// span is a time from a moment on, until another one.
type span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// counted is a span with the values that are stored in it, by column.
type counted struct {
	span
	values []int64
}

func (c counted) total() (n int64) {
	for _, of := range c.values {
		n += of
	}
	return n
}

// newReader makes the reader of a series.
func (e *export) newReader(of Series) *reader {
	return &reader{
		config: e.config, series: of, aggregate: e.spec.Aggregate, every: e.spec.Every.Std(), pace: e.pace,
		limit: min(e.pace.PerSecond, e.spec.PartPoints, maxWindow),
	}
}

// reader reads a series of InfluxDB.
type reader struct {
	config    influx.Config
	series    Series
	aggregate Aggregate
	every     time.Duration
	limit     int64 // of the stored values of a window
	pace      *influx.Pace
}

func (r *reader) rows(ctx context.Context, command string, take func(at int64, values []jsontext.Value) error) error {
	return influx.Rows(ctx, r.config, r.series.Database, command, len(r.series.Columns), take)
}

// selection selects the columns, with a function around each.
func (r *reader) selection(function string, of span) string {
	fields := make([]string, len(r.series.Columns))
	for i, c := range r.series.Columns {
		fields[i] = c.Field
	}
	return influx.Selection(function, fields, r.series.Measurement, of.From, of.To)
}

// grouped groups rows by steps that begin at whole steps since 1970.
func grouped(command string, step time.Duration) string {
	return fmt.Sprintf("%s GROUP BY time(%ds) fill(none)", command, step/time.Second)
}

// step is what days are counted by: a day, or a longer step of an aggregate.
func (r *reader) step() time.Duration { return max(day, r.every) }

// count counts the values of a span by steps, and calls take for those that have some.
func (r *reader) count(ctx context.Context, of span, take func(counted) error) error {
	for from := of.From; from.Before(of.To); {
		to := floor(from, r.step()).Add(countedAtOnce / r.step() * r.step())
		if !to.After(from) {
			to = from.Add(r.step())
		}
		part := span{from, earlier(to, of.To)}
		var days []counted
		read := int64(0)
		err := r.rows(ctx, grouped(r.selection("COUNT", part), r.step()), func(at int64, values []jsontext.Value) error {
			begin := time.Unix(0, at).UTC()
			c := counted{span{later(begin, part.From), earlier(begin.Add(r.step()), part.To)}, make([]int64, len(values))}
			for i, v := range values {
				if v.Kind() != 'n' {
					if err := json.Unmarshal(v, &c.values[i]); err != nil {
						return fmt.Errorf("a count is %.40s", v)
					}
				}
			}
			read += c.total()
			days = append(days, c)
			return nil
		})
		if err != nil {
			return err
		}
		if err := r.pace.Wait(ctx, read/countingIsCheaper); err != nil {
			return err
		}
		for _, d := range days {
			if err := take(d); err != nil {
				return err
			}
		}
		from = part.To
	}
	return nil
}

// countingIsCheaper says how many values are counted at the price of one that is read.
const countingIsCheaper = 10

// floor is the last whole step since 1970 that is not after a moment, as InfluxDB groups.
func floor(at time.Time, step time.Duration) time.Time {
	rest := at.UnixNano() % int64(step)
	if rest < 0 {
		rest += int64(step)
	}
	return at.Add(-time.Duration(rest))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// windows calls take for the windows of a span, in their order: each has at most a limit of
// stored values, if none of its moments has more. What is between two windows is empty.
func (r *reader) windows(ctx context.Context, of span, take func(counted) error) error {
	var gathered counted
	flush := func() error {
		if gathered.values == nil {
			return nil
		}
		w := gathered
		gathered = counted{}
		return r.pieces(w, take)
	}
	err := r.count(ctx, of, func(c counted) error {
		if gathered.values != nil && gathered.total()+c.total() > r.limit {
			if err := flush(); err != nil {
				return err
			}
		}
		if gathered.values == nil {
			gathered = counted{span: c.span, values: make([]int64, len(c.values))}
		}
		gathered.To = c.To
		for i, n := range c.values {
			gathered.values[i] += n
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// pieces cuts a window with too many values into equal times, which begin at whole steps of
// an aggregate, or seconds.
func (r *reader) pieces(w counted, take func(counted) error) error {
	n := (w.total() + r.limit - 1) / r.limit
	least := max(r.every, time.Second)
	length := floorLength(w.To.Sub(w.From)/time.Duration(n), least)
	for from := w.From; from.Before(w.To); {
		piece := counted{span{from, earlier(floor(from, least).Add(length), w.To)}, make([]int64, len(w.values))}
		for i, of := range w.values {
			piece.values[i] = of / n
		}
		if err := take(piece); err != nil {
			return err
		}
		from = piece.To
	}
	return nil
}

// floorLength is a length in whole steps, at least one.
func floorLength(length, step time.Duration) time.Duration { return max(length-length%step, step) }

// read reads the rows of a window.
func (r *reader) read(ctx context.Context, w counted, take func(at int64, values []jsontext.Value) error) error {
	command := r.selection(strings.ToUpper(string(r.aggregate)), w.span)
	if r.aggregate != "" {
		command = grouped(command, r.every)
	}
	if err := r.rows(ctx, command, take); err != nil {
		return err
	}
	return r.pace.Wait(ctx, w.total())
}
