package load

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/dendrascience/dendra-jobs/internal/influx"
)

// OnConflict is what happens to a point with a field whose type differs from the one that
// the database has.
type OnConflict string

// The choices.
const (
	OnConflictQuarantine OnConflict = "quarantine" // the point goes to quarantine
	OnConflictDropField  OnConflict = "drop_field" // the point is stored without the field
)

// maxTold bounds the fields that an iteration logs.
const maxTold = 100

// suspect is a line with a field that the server refuses in some lines: it depends on the
// shard, by the point's time, which type a field has.
type suspect struct {
	line  *line
	field influx.LineField
	at    int64 // time of the point
}

// dropConflict takes the field that the server has named out of the lines in which it
// refuses it, and reports whether there were any. A line that has no other field stays as
// it is.
func (b *batch) dropConflict(ctx context.Context, g *group, all []line, failed *influx.Error) (bool, error) {
	conflict, ok := failed.Conflict()
	if !ok || b.writer.iteration.spec.OnConflict != OnConflictDropField {
		return false, nil
	}
	var suspects []suspect
	for i := range all {
		l := &all[i]
		if l.done {
			continue
		}
		text := g.text[l.start:l.end]
		if field, found := conflict.Find(text); found {
			suspects = append(suspects, suspect{l, field, field.Time(text)})
		}
	}
	// By time, and so by shard: halving soon finds where the next one begins.
	slices.SortStableFunc(suspects, func(x, y suspect) int { return cmp.Compare(x.at, y.at) })
	refused, err := b.conflicting(ctx, g, conflict, suspects)
	dropped := int64(0)
	for _, s := range refused {
		text := g.text[s.line.start:s.line.end]
		left, removed := s.field.Remove(text)
		if !removed {
			continue
		}
		dropped++
		// Lines stay where they are; the server passes over empty ones.
		s.line.end = s.line.start + len(left)
		copy(text[len(left):], bytes.Repeat([]byte{'\n'}, len(text)-len(left)))
	}
	if dropped > 0 {
		b.writer.count("dropped_fields", dropped)
		b.writer.reportConflict(conflict, g.target.Database, failed.Text)
	}
	return dropped > 0, err
}

// reportConflict logs that a field is left out, once in an iteration.
func (w *mirrorWriter) reportConflict(c influx.Conflict, database, reason string) {
	field := [3]string{database, c.Measurement, c.Field}
	if w.told[field] || len(w.told) >= maxTold {
		return
	}
	if w.told == nil {
		w.told = map[[3]string]bool{}
	}
	w.told[field] = true
	w.iteration.Logger().Warn("field dropped", "mirror", w.mirror.Name, "database", database,
		"measurement", c.Measurement, "field", c.Field, "reason", reason)
}

// conflicting gives the suspects whose field the server refuses. It writes points of the
// field alone, which stores no more than a write of the whole points would. The server
// says how many it refuses: if not all of several, each half is tried.
func (b *batch) conflicting(ctx context.Context, g *group, conflict influx.Conflict, suspects []suspect) ([]suspect, error) {
	if len(suspects) == 0 {
		return nil, nil
	}
	var body []byte
	for _, s := range suspects {
		body = s.field.AppendAlone(body, g.text[s.line.start:s.line.end])
	}
	err := b.writeOnce(ctx, g.target, [][]byte{body})
	var failed *influx.Error
	if err == nil || !errors.As(err, &failed) || failed.Kind != influx.KindPoison && failed.Kind != influx.KindTooOld {
		return nil, err
	}
	now, ok := failed.Conflict()
	if ok && now.Field == conflict.Field && (len(suspects) == 1 || now.Dropped == len(suspects)) {
		return suspects, nil
	}
	if len(suspects) == 1 {
		return nil, nil // refused for something else, which the whole line is, too
	}
	half := len(suspects) / 2
	first, err := b.conflicting(ctx, g, conflict, suspects[:half])
	if err != nil {
		return first, err
	}
	second, err := b.conflicting(ctx, g, conflict, suspects[half:])
	return append(first[:len(first):len(first)], second...), err
}
