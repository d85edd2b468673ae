package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// Classes of what goes to quarantine.
const (
	ClassBadMessage   = "BadMessage"   // no prepared message
	ClassBadPoint     = "BadPoint"     // a point that line protocol cannot carry
	ClassRefusedPoint = "RefusedPoint" // a point that the server refuses
)

// batch is a number of messages on their way to the server.
type batch struct {
	lap     *lap
	items   []*item
	targets []*group
	refused []refusal
	lastSay time.Time
}

// item is a message with what is left to do for it.
type item struct {
	message jetstream.Msg
	decoded pipeline.Message[pipeline.Points]
	open    int // points that are neither stored nor refused
}

// line is a point as line protocol.
type line struct {
	item  *item
	point int
	text  []byte
}

// group holds the lines of a target, in the order of the stream.
type group struct {
	target influx.Target
	lines  []line
}

// refusal is what goes to quarantine; point is -1 for the message as a whole.
type refusal struct {
	item          *item
	point         int
	class, reason string
}

// newBatch decodes messages, and sorts their points by where they go.
func newBatch(l *lap, messages []jetstream.Msg) *batch {
	b := &batch{lap: l, lastSay: time.Now()}
	groups := map[influx.Target]*group{}
	for _, message := range messages {
		it := &item{message: message}
		b.items = append(b.items, it)
		decoded, err := pipeline.DecodePoints(message.Data())
		if err != nil {
			it.open = 1
			b.refuse(it, -1, ClassBadMessage, err.Error())
			continue
		}
		it.decoded = decoded
		it.open = len(decoded.Payload.Points)
		options := decoded.Payload.Options
		target := influx.Target{
			Database:        options.Database,
			RetentionPolicy: options.RetentionPolicy,
			Precision:       influx.Precision(options.Precision),
		}
		if l.spec.Database != "" {
			target.Database = l.spec.Database
		}
		for i, p := range decoded.Payload.Points {
			text, err := influx.AppendPoint(nil, influx.Point{
				Measurement: p.Measurement, Tags: p.Tags, Fields: p.Fields, Time: p.Time.Time,
			}, target.Precision)
			if err != nil {
				b.refuse(it, i, ClassBadPoint, err.Error())
				continue
			}
			g, found := groups[target]
			if !found {
				g = &group{target: target}
				groups[target] = g
				b.targets = append(b.targets, g)
			}
			g.lines = append(g.lines, line{item: it, point: i, text: text})
		}
	}
	return b
}

func (b *batch) refuse(it *item, point int, class, reason string) {
	b.refused = append(b.refused, refusal{item: it, point: point, class: class, reason: reason})
}

// store writes all lines, one target after the other, and puts what was refused
// into quarantine, also when a write fails.
func (b *batch) store(ctx context.Context) error {
	var failed error
	for _, g := range b.targets {
		// A retention policy that is missing in one database says nothing about the
		// others; a server that is away does.
		err := b.writeAll(ctx, g)
		if failed == nil {
			failed = err
		}
		var influxErr *influx.Error
		if err != nil && (!errors.As(err, &influxErr) || influxErr.Kind != influx.KindConfig) {
			break
		}
	}
	// What is refused stays refused, whatever happened to the rest.
	if err := b.quarantine(ctx); err != nil && failed == nil {
		failed = err
	}
	return failed
}

// writeAll writes the lines of a group in as few writes as the limits allow.
func (b *batch) writeAll(ctx context.Context, g *group) error {
	for rest := g.lines; len(rest) > 0; {
		n, size := 0, 0
		for n < len(rest) && n < b.lap.spec.BatchPoints && (n == 0 || size+len(rest[n].text) <= b.lap.maxBytes) {
			size += len(rest[n].text)
			n++
		}
		if err := b.write(ctx, g.target, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// write writes lines; where the server refuses some, it halves them until it has
// found those, which takes at most 2·k·log₂(n) writes for k of n lines. Good
// lines are written more than once on the way, which is harmless.
func (b *batch) write(ctx context.Context, target influx.Target, lines []line) error {
	err := b.writeOnce(ctx, target, lines)
	var failed *influx.Error
	if err == nil || !errors.As(err, &failed) {
		return err
	}
	switch failed.Kind {
	case influx.KindTooBig:
		b.lap.maxBytes = max(1, sizeOf(lines)/2)
	case influx.KindPoison, influx.KindTooOld:
	default:
		return err
	}
	if len(lines) > 1 {
		if err := b.write(ctx, target, lines[:len(lines)/2]); err != nil {
			return err
		}
		return b.write(ctx, target, lines[len(lines)/2:])
	}
	if failed.Kind == influx.KindTooOld {
		b.lap.counts["expired"]++
		lines[0].item.open--
		return nil
	}
	b.refuse(lines[0].item, lines[0].point, ClassRefusedPoint, failed.Text)
	return nil
}

// passingTries is how often a write is made before a server that is away or busy
// fails the lap; the waits between them are short.
const passingTries = 3

// writeOnce makes one write, again after a short while if the server is away, and
// after creating the database if that is missing.
func (b *batch) writeOnce(ctx context.Context, target influx.Target, lines []line) error {
	body := make([]byte, 0, sizeOf(lines))
	for _, l := range lines {
		body = append(body, l.text...)
	}
	created := false
	for try := 1; ; try++ {
		b.stayAlive()
		b.lap.counts["batches"]++
		err := b.lap.writer.Write(ctx, target, body)
		if err == nil {
			for _, l := range lines {
				l.item.open--
			}
			b.lap.counts["points"] += int64(len(lines))
			return nil
		}
		var failed *influx.Error
		switch {
		case !errors.As(err, &failed):
			return err
		case failed.Kind == influx.KindNoDatabase && !created:
			created = true
			if err := b.lap.writer.CreateDatabase(ctx, target.Database); err != nil {
				return err
			}
			b.lap.run.Logger().Info("database created", "database", target.Database, "influx", b.lap.writer.Address())
		case failed.Kind == influx.KindTransient && try < passingTries && failed.RetryAfter == 0 && !b.lap.stopping():
			wait := 250 * time.Millisecond << try
			if err := b.pause(ctx, wait/2+rand.N(wait/2)); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

func (b *batch) pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.lap.run.Stopping():
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// stayAlive tells the stream, when it is time to, that the messages in hand are
// still worked on.
func (b *batch) stayAlive() {
	if time.Since(b.lastSay) < ackWait/3 {
		return
	}
	b.lastSay = time.Now()
	for _, it := range b.items {
		// One that gets lost means a redelivery, which is harmless.
		_ = it.message.InProgress()
	}
}

// quarantine stores what was refused, after which it is done with.
func (b *batch) quarantine(ctx context.Context) error {
	if len(b.refused) == 0 {
		return nil
	}
	messages := make([]pipeline.Quarantined, len(b.refused))
	for i, r := range b.refused {
		q, err := b.lap.quarantined(r)
		if err != nil {
			return err
		}
		messages[i] = q
	}
	if _, err := b.lap.pipeline.Quarantine(ctx, messages); err != nil {
		return err
	}
	for _, r := range b.refused {
		r.item.open--
		b.lap.run.Logger().Warn("to quarantine", "class", r.class, "reason", r.reason, "subject", r.item.message.Subject())
	}
	b.lap.counts["quarantined"] += int64(len(b.refused))
	b.refused = nil
	return nil
}

// quarantined makes the quarantined form of a refusal: a message as it came, or
// one point in a message of its own, which can be published again as it is.
func (l *lap) quarantined(r refusal) (pipeline.Quarantined, error) {
	q := pipeline.Quarantined{
		Stage:     pipeline.StageLoad,
		Operation: l.spec.OperationMode,
		Name:      l.spec.Location,
		Class:     r.class,
		Reason:    r.reason,
		Job:       l.run.Job().ID,
		Target:    l.writer.Address(),
		Subject:   r.item.message.Subject(),
		Body:      r.item.message.Data(),
	}
	if meta, err := r.item.message.Metadata(); err == nil {
		q.Sequence = meta.Sequence.Stream
	}
	if r.point < 0 {
		return q, nil
	}
	single := r.item.decoded
	single.Payload.Points = single.Payload.Points[r.point : r.point+1]
	body, err := single.Encode()
	if err != nil {
		return q, err
	}
	q.Body = body
	return q, nil
}

func sizeOf(lines []line) int {
	size := 0
	for _, l := range lines {
		size += len(l.text)
	}
	return size
}
