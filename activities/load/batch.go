package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/lines"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// batch is a number of messages on their way to the server.
type batch struct {
	writer  *mirrorWriter
	items   []item
	groups  []*group // runs of points with one target, in the order to write them in
	refused []refusal
	lines   int
	bytes   int
	dropped int // fields that the job's rules leave out
	lastSay time.Time
	halving bool // looks for what the server refuses
	stored  bool // the server has taken a point
	held    int  // the item that the failed write is about, as far as is known; -1: none
	skip    *pipeline.HeldMessage
}

// item is a message with what is left to do for it.
type item struct {
	message  *pipeline.Delivery
	open     int // points that are neither stored, nor in quarantine, nor expired
	kept     int // in quarantine: points, or the message as a whole
	answered bool
}

// group holds the lines for a target, in the order of the stream.
type group struct {
	target influx.Target
	text   []byte
	lines  []line
	body   []byte // of a write, where the lines for it do not stand together
}

// line is a point as line protocol.
type line struct {
	start, end  int // in the text of its group
	item, point int
	done        bool // stored, refused or expired
}

// refusal is what goes to quarantine; point is -1 for the message as a whole.
type refusal struct {
	item, point   int
	class, reason string
	points        int // of a message as a whole, where they are known
}

func newBatch(w *mirrorWriter) *batch { return &batch{writer: w, lastSay: time.Now(), held: -1} }

// reset makes room for the next messages, and keeps the memory.
func (b *batch) reset() {
	clear(b.items) // lets go of the messages
	b.items, b.refused = b.items[:0], nil
	b.lines, b.bytes, b.dropped, b.stored = 0, 0, 0, false
	b.lastSay = time.Now()
	for _, g := range b.groups {
		g.text, g.lines = g.text[:0], g.lines[:0]
	}
	if len(b.groups) > 16 { // targets come and go
		b.groups = nil
	}
}

// add decodes a message, and sorts its points by where they go.
func (b *batch) add(decoder *lines.Decoder, message *pipeline.Delivery) {
	n := len(b.items)
	b.items = append(b.items, item{message: message})
	it := &b.items[n]
	if b.skip.Is(message.Stored) {
		it.open = 1
		b.refused = append(b.refused, refusal{item: n, point: -1, class: errclass.Skipped, reason: "skipped by an operator: " + b.writer.breaker().Reason})
		return
	}
	decoded, err := decoder.Decode(message.Body)
	if err != nil {
		it.open = 1
		b.refused = append(b.refused, refusal{item: n, point: -1, class: errclass.BadMessage, reason: err.Error()})
		return
	}
	it.open = len(decoded.Ends) - decoded.Emptied
	b.dropped += decoded.Dropped
	for _, r := range decoded.Refused {
		b.refused = append(b.refused, refusal{item: n, point: r.Point, class: errclass.BadPoint, reason: r.Err.Error()})
	}
	g := b.group(decoded.Options)
	base, start := len(g.text), 0
	g.text = append(g.text, decoded.Text...)
	for point, end := range decoded.Ends {
		if end > start {
			g.lines = append(g.lines, line{start: base + start, end: base + end, item: n, point: point})
			b.lines++
		}
		start = end
	}
	b.bytes += len(decoded.Text)
}

// group gives the group that a message's points belong to: the last one of its
// target, or a new one when points with another precision or policy have come for
// the same database since. They may be about the same time, and the last one has to
// be written last.
func (b *batch) group(options pipeline.PointOptions) *group {
	target := influx.Target{
		Database:        options.Database,
		RetentionPolicy: options.RetentionPolicy,
		Precision:       influx.Precision(options.Precision),
	}
	if b.writer.mirror.Database != "" {
		target.Database = b.writer.mirror.Database
	}
	for i := len(b.groups) - 1; i >= 0; i-- {
		g := b.groups[i]
		if g.target == target {
			return g
		}
		if g.target.Database == target.Database && len(g.lines) > 0 {
			break
		}
	}
	g := &group{target: target}
	b.groups = append(b.groups, g)
	return g
}

// store writes all lines that are not done, one group after the other, and puts
// what was refused into quarantine, also when a write fails. It can be called again
// after an error. It is errIterationOver when the search for what the server refuses has
// to go on in the next iteration.
func (b *batch) store(ctx context.Context) error {
	var failed error
	b.halving, b.held = false, -1
	var held []*group
	for _, g := range b.groups {
		if slices.ContainsFunc(held, g.followsOn) {
			continue // so that it is not written before them, if the policy is made just now
		}
		err := b.writeAll(ctx, g)
		if err == nil {
			continue
		}
		// That the server refuses a message of one target says nothing about the others;
		// that it is away or knows no such user does.
		at := b.heldBy(g, err)
		if at < 0 {
			if failed == nil || !errors.Is(err, errIterationOver) { // which says nothing about the mirror
				failed, b.held = err, -1
			}
			break
		}
		if b.held < 0 || at < b.held {
			failed, b.held = err, at // of the first message that is refused
		}
		held = append(held, g)
	}
	if errors.Is(failed, errIterationOver) {
		// Messages that come again are refused again, and counted then.
		n := b.finished()
		b.refused = slices.DeleteFunc(b.refused, func(r refusal) bool { return r.item >= n })
	}
	if failed == nil && b.dropped > 0 {
		b.writer.count("dropped_fields", int64(b.dropped))
		b.dropped = 0
	}
	// What is refused stays refused, whatever happened to the rest.
	if err := b.quarantine(ctx); err != nil && (failed == nil || ctx.Err() == nil) {
		failed = err
	}
	return failed
}

// heldBy is the message of a group whose write the server refuses for a reason that is
// about it, as far as the answer tells: its target, or its points when the write had
// been narrowed down to them. It is -1 when the reason is another.
func (b *batch) heldBy(g *group, err error) int {
	var failed *influx.Error
	if !errors.As(err, &failed) || (failed.About() != influx.AboutTarget && !b.narrows(failed)) {
		return -1
	}
	for i := range g.lines {
		if !g.lines[i].done {
			return g.lines[i].item
		}
	}
	return -1
}

// heldMessage is the message that holds the mirror up: all before it are done with, and
// the server refuses it. It is nil when none is known.
func (b *batch) heldMessage() *pipeline.HeldMessage {
	if b.held < 0 || b.finished() != b.held {
		return nil
	}
	message := b.items[b.held].message
	return &pipeline.HeldMessage{Subject: message.Subject, Sequence: message.Sequence, Time: message.Time}
}

// narrows reports whether a write that failed, and that is nobody's fault as far as is
// known, is halved all the same, until the first message is found that fails by itself.
// A busy server answers some writes with a 500: that is looked into only when it goes on.
func (b *batch) narrows(failed *influx.Error) bool {
	return failed.About() == influx.AboutPoints &&
		(failed.Kind == influx.KindConfig || b.writer.breaker().State == pipeline.BreakerTrying)
}

// followsOn reports whether points of the group and an earlier one may be the same.
func (g *group) followsOn(earlier *group) bool {
	return g.target.Database == earlier.target.Database && g.target.RetentionPolicy == earlier.target.RetentionPolicy
}

// writeAll writes the lines of a group in as few writes as the limits allow.
func (b *batch) writeAll(ctx context.Context, g *group) error {
	for from := 0; from < len(g.lines); {
		n, size := 0, 0
		most := int(b.writer.maxBytes.Load())
		for _, l := range g.lines[from:min(len(g.lines), from+b.writer.iteration.spec.BatchPoints)] {
			if n > 0 && size+l.end-l.start > most {
				break
			}
			size += l.end - l.start
			n++
		}
		if err := b.write(ctx, g, g.lines[from:from+n]); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// pending gives the body of those lines that are not done, and how many they are.
func (g *group) pending(all []line) (body []byte, n int) {
	size := 0
	for i := range all {
		if !all[i].done {
			n++
			size += all[i].end - all[i].start
		}
	}
	switch {
	case n == 0:
		return nil, 0
	case n == len(all):
		return g.text[all[0].start:all[n-1].end], n
	}
	g.body = g.body[:0]
	for i := range all {
		if !all[i].done {
			g.body = append(g.body, g.text[all[i].start:all[i].end]...)
		}
	}
	return g.body, n
}

// write writes lines; where the server refuses some, it takes out those that the
// server names, and halves the rest until it has found the others, which takes at
// most 2·k·log₂(n) writes for k of n lines. Good lines are written more than once on
// the way, which is harmless. It goes from the first line to the last, and ends with
// errIterationOver when the iteration does, as soon as a message is done with.
func (b *batch) write(ctx context.Context, g *group, all []line) error {
	body, n := g.pending(all)
	if n == 0 {
		return nil
	}
	if b.halving && b.writer.iteration.draining(b.writer) && b.begun() {
		return errIterationOver
	}
	parts := [][]byte{body}
	if n == len(all) && !b.halving {
		parts = b.writer.parts(g, all, body)
	}
	err := b.writeOnce(ctx, g.target, parts)
	if err == nil {
		b.stored = true
		b.markStored(all)
		b.writer.count("points", int64(n))
		return nil
	}
	var failed *influx.Error
	if !errors.As(err, &failed) {
		return err
	}
	switch failed.Kind {
	case influx.KindTooBig:
		if n > 1 {
			b.writer.lowerMaxBytes(len(body) / 2)
		}
	case influx.KindPoison:
		dropped, err := b.dropConflict(ctx, g, all, failed)
		if err != nil {
			return err
		}
		if dropped || (n > 1 && b.refuseNamed(g, all, failed)) {
			return b.write(ctx, g, all)
		}
	case influx.KindTooOld:
	case influx.KindName:
		b.refuseMessages(g, errclass.RefusedName, failed.Text)
		return nil
	case influx.KindNoDatabase:
		if b.writer.creates(g.target.Database) {
			return err // it was dropped again
		}
		b.refuseMessages(g, errclass.DatabaseNotAllowed, fmt.Sprintf("there is no database %q, and create_databases of the job does not name it", g.target.Database))
		return nil
	default:
		if !b.narrows(failed) || ofOneMessage(all) {
			return err
		}
	}
	if len(all) > 1 {
		b.halving = true
		if err := b.write(ctx, g, all[:len(all)/2]); err != nil {
			return err
		}
		return b.write(ctx, g, all[len(all)/2:])
	}
	all[0].done = true
	if failed.Kind == influx.KindTooOld {
		b.items[all[0].item].open--
		b.writer.count("expired", 1)
		return nil
	}
	b.refused = append(b.refused, refusal{item: all[0].item, point: all[0].point, class: errclass.RefusedPoint, reason: failed.Text})
	return nil
}

// ofOneMessage reports whether all lines that are not done are of the same message.
func ofOneMessage(all []line) bool {
	item := -1
	for i := range all {
		switch {
		case all[i].done:
		case item < 0:
			item = all[i].item
		case all[i].item != item:
			return false
		}
	}
	return true
}

// refuseMessages takes out all messages of a group, for a name that each of them gives. They
// go to quarantine whole.
func (b *batch) refuseMessages(g *group, class, reason string) {
	whole := map[int]int{} // points by item
	for i := range g.lines {
		if l := &g.lines[i]; !l.done {
			l.done = true
			whole[l.item]++
		}
	}
	// Points that were refused by themselves are in the whole.
	b.refused = slices.DeleteFunc(b.refused, func(r refusal) bool { return whole[r.item] > 0 })
	for _, n := range slices.Sorted(maps.Keys(whole)) {
		b.items[n].open = 1
		b.refused = append(b.refused, refusal{item: n, point: -1, class: class, reason: reason, points: whole[n]})
	}
}

// finished is how many messages, from the first on, are done with as soon as what
// was refused is in quarantine.
func (b *batch) finished() int {
	refused := b.refusals()
	for i := range b.items {
		if b.items[i].open > refused[i] {
			return i
		}
	}
	return len(b.items)
}

// refusals counts what was refused of each message and is not in quarantine yet.
func (b *batch) refusals() map[int]int {
	counts := make(map[int]int, len(b.refused))
	for _, r := range b.refused {
		counts[r.item]++
	}
	return counts
}

// begun reports whether a message can be answered that was not before: what comes
// again does not begin with the same one.
func (b *batch) begun() bool {
	n := b.finished()
	return n > 0 && !b.items[n-1].answered
}

// markStored notes that lines are stored.
func (b *batch) markStored(all []line) {
	for i := range all {
		if l := &all[i]; !l.done {
			l.done = true
			b.items[l.item].open--
		}
	}
}

// refuseNamed takes out the lines that the server says it cannot read, and reports
// whether there were any.
func (b *batch) refuseNamed(g *group, all []line, failed *influx.Error) bool {
	if !strings.Contains(failed.Text, "unable to parse") {
		return false
	}
	sent := make(map[string]int, len(all))
	for i, l := range all {
		if !l.done {
			sent[string(g.text[l.start:l.end-1])] = i
		}
	}
	named := failed.Unparsable(sent)
	for i, reason := range named {
		all[i].done = true
		b.refused = append(b.refused, refusal{item: all[i].item, point: all[i].point, class: errclass.RefusedPoint, reason: reason})
	}
	return len(named) > 0
}

// writeOnce makes one write, in parts that go at the same time, and a second one
// after creating the database if that is missing and the job may. Of several errors it gives one:
// what it says of a line holds, and what the others say shows in the next write.
func (b *batch) writeOnce(ctx context.Context, target influx.Target, parts [][]byte) error {
	w := b.writer
	b.stayAlive()
	write := func() error {
		requests, _ := job.NewGroup(ctx)
		for _, part := range parts {
			w.count("batches", 1)
			requests.Go(func() error { return w.writer.Write(ctx, target, part) })
		}
		return requests.Wait()
	}
	began := time.Now()
	w.writing.Store(began.UnixNano())
	err := write()
	w.writing.Store(0)
	w.slow.Store(time.Since(began) > slowWrite)
	var failed *influx.Error
	if !errors.As(err, &failed) || failed.Kind != influx.KindNoDatabase || !w.creates(target.Database) {
		return err
	}
	if err := w.writer.CreateDatabase(ctx, target.Database); err != nil {
		if errors.As(err, &failed) && failed.Kind == influx.KindName && w.mirror.Database != "" {
			failed.Kind = influx.KindConfig // the name is the job's, not the messages'
		}
		return err
	}
	w.iteration.Logger().Info("database created", "database", target.Database, "influx", w.address)
	return write()
}

// creates reports whether the mirror may create a database. One that the job sets for all
// data is nobody else's to name.
func (w *mirrorWriter) creates(database string) bool {
	return w.mirror.Database != "" || w.iteration.spec.creates(database)
}

// lowerMaxBytes makes writes smaller from now on: the server found one too big.
// They stay so in later iterations, until the job's batch_bytes or the server's URL changes.
func (w *mirrorWriter) lowerMaxBytes(bytes int) {
	bytes = max(1, min(bytes, int(w.maxBytes.Load())))
	w.maxBytes.Store(int64(bytes))
	w.mu.Lock()
	w.state.MaxBytes = bytes
	w.mu.Unlock()
}

// stayAlive tells the stream, when it is time to, that the messages in hand are
// still worked on.
func (b *batch) stayAlive() {
	if time.Since(b.lastSay) < ackWait/3 {
		return
	}
	b.lastSay = time.Now()
	for i := range b.items {
		if !b.items[i].answered {
			// One that gets lost means a redelivery, after which the mirror writer begins again.
			_ = b.items[i].message.InProgress()
		}
	}
}

// quarantine stores what was refused, after which it is done with. The points of a
// message whose others are not done with yet wait: the message may be refused whole.
func (b *batch) quarantine(ctx context.Context) error {
	counts := b.refusals()
	var decided, waiting []refusal
	for _, r := range b.refused {
		if b.items[r.item].open == counts[r.item] {
			decided = append(decided, r)
		} else {
			waiting = append(waiting, r)
		}
	}
	if len(decided) == 0 {
		return nil
	}
	w := b.writer
	messages := make([]pipeline.Quarantined, len(decided))
	for i, r := range decided {
		q, err := b.quarantined(r)
		if err != nil {
			return err
		}
		messages[i] = q
	}
	if _, err := w.iteration.pipeline.Quarantine(ctx, messages); err != nil {
		return err
	}
	for _, r := range decided {
		it := &b.items[r.item]
		it.open--
		it.kept++
		w.iteration.Logger().Warn("to quarantine", "mirror", w.mirror.Name, "class", r.class, "reason", r.reason, "subject", it.message.Subject)
	}
	w.noteRefusals(decided)
	b.refused = waiting
	return nil
}

// quarantined makes the quarantined form of a refusal: a message as it came, or
// one point in a message of its own, which can be published again as it is.
func (b *batch) quarantined(r refusal) (pipeline.Quarantined, error) {
	w := b.writer
	message := b.items[r.item].message
	q := pipeline.Quarantined{
		Stage:     pipeline.StageLoad,
		Operation: w.iteration.spec.OperationMode,
		Name:      w.iteration.spec.Location,
		Class:     r.class,
		Reason:    r.reason,
		Job:       w.iteration.Job().ID,
		Target:    w.address,
		Subject:   message.Subject,
		Body:      message.Body,
		Sequence:  message.Sequence,
	}
	if r.point < 0 {
		return q, nil
	}
	single, err := pipeline.DecodePoints(message.Body)
	if err != nil {
		return q, err
	}
	single.Payload.Points = single.Payload.Points[r.point : r.point+1]
	q.Body, err = single.Encode()
	return q, err
}
