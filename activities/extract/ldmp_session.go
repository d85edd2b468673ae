package extract

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const (
	// inFlight is how many records may wait for the stream at a time. The vendor's
	// server sends one ahead; one that sends more is read no faster than the stream
	// takes it.
	inFlight = 256
	// ackBatch is how many acknowledgements are written at once.
	ackBatch = 32
	// saveInterval is how often bookmarks are written, and so about how much is read
	// again after a crash.
	saveInterval = time.Second
)

// ldmpItem is what came in one frame, on its way to the stream or to quarantine.
type ldmpItem struct {
	table *ldmpTable
	state ldmpState
	clock time.Time

	message pipeline.Outgoing
	sent    *pipeline.Sent // the message
	refused *pipeline.Quarantined
}

// ldmpSession is one connection to the server. One goroutine reads records and
// sends them to the stream, a second one waits for the stream, in order, and
// acknowledges, a third one moves bookmarks.
type ldmpSession struct {
	*ldmpExtraction
	conn  *ldmp.Conn
	queue chan ldmpItem
}

// session reads over one connection until the iteration ends, the job is to stop (nil),
// or something fails. The bookmarks then say what is published, unless it was the
// stream that failed, or another run that moved them.
func (e *ldmpExtraction) session(ctx context.Context) error {
	// What cannot be stored is not read.
	if err := e.pipeline.Ready(ctx); err != nil {
		return err
	}
	conn, err := e.connect(ctx)
	if err != nil {
		if e.Stopped() && ctx.Err() == nil {
			return nil
		}
		return err
	}
	e.Count("connections", 1)
	s := &ldmpSession{ldmpExtraction: e, conn: conn, queue: make(chan ldmpItem, inFlight)}

	ending, end := context.WithCancel(ctx)
	defer end()
	group, working := job.NewGroup(ending)
	unhook := context.AfterFunc(working, func() { _ = conn.Close() })
	defer unhook()
	read := make(chan error, 1)
	group.Go(func() error {
		defer close(s.queue)
		read <- job.Safely(func() error { return s.read(ctx, working) })
		return nil
	})
	group.Go(func() error {
		s.watch(working)
		return nil
	})
	group.Go(func() error { return s.keep(ctx, working) })

	err = s.acknowledge(ctx, working)
	if cause := context.Cause(working); cause != nil {
		err = cause // what another goroutine failed with, or the end of the run
	}
	if err == nil {
		// The queue is empty, and closed: reading has ended.
		err = <-read
		if e.Over() && ctx.Err() == nil {
			err = nil
		}
	}
	end()
	_ = conn.Close()
	_ = group.Wait() // Its error was the cause.
	if err == nil || passes(err) {
		if saveErr := e.save(ctx); saveErr != nil {
			err = saveErr
		}
	}
	return err
}

// connect gives up when the job is to stop.
func (e *ldmpExtraction) connect(ctx context.Context) (*ldmp.Conn, error) {
	connecting, cancel := job.Until(ctx, e.Stopping(), 0)
	defer cancel()
	return ldmp.Open(connecting, ldmp.Config{Address: e.spec.Server}, e.groups())
}

// watch ends reading, but not acknowledging, when the iteration is over or the job is
// to stop.
func (s *ldmpSession) watch(ctx context.Context) {
	for s.Wait(ctx, time.Hour) {
	}
	if ctx.Err() == nil {
		_ = s.conn.CloseRead()
	}
}

// keep moves bookmarks and reports, every so often, as long as the session works.
// A write under way is not cut off by its end: whether a bookmark was moved would
// not be known.
func (s *ldmpSession) keep(ctx, working context.Context) error {
	tick := time.NewTicker(saveInterval)
	defer tick.Stop()
	for {
		select {
		case <-working.Done():
			return nil
		case <-tick.C:
		}
		if err := s.save(ctx); err != nil {
			return err
		}
		s.Save()
	}
}

// read takes records and sends them to the stream, without waiting for it. Before
// each it asks the context of the run whether that has ended: one that is derived
// from it may not know yet.
func (s *ldmpSession) read(ctx, working context.Context) error {
	refused := 0
	for !s.Over() {
		record, err := s.conn.Next()
		var malformed *ldmp.MalformedError
		var item ldmpItem
		switch {
		case errors.As(err, &malformed):
			item.refused = s.refused(errclass.BadRecord, malformed.Reason, malformed.Raw)
		case err != nil:
			return err
		default:
			if item, err = s.accept(ctx, record); err != nil {
				return err
			}
		}
		s.Count("records", 1)
		select {
		case s.queue <- item:
		case <-working.Done():
			return working.Err()
		}
		if item.refused == nil {
			continue
		}
		if refused++; refused == s.spec.MaxRefused {
			return job.Fail(errclass.LdmpBadRecords, "ldmp %s: %d frames of one connection are refused, the last because %s",
				s.conn.Address(), refused, item.refused.Reason)
		}
	}
	return nil
}

// accept makes the message of a record and sends it.
func (s *ldmpSession) accept(ctx context.Context, record ldmp.Record) (ldmpItem, error) {
	t, known := s.tables[[2]string{record.Station, record.Table}]
	if !known {
		return ldmpItem{refused: s.refused(errclass.UnknownTable,
			fmt.Sprintf("table %q of station %q was not asked for", record.Table, record.Station), s.conn.Frame())}, nil
	}
	clock, err := record.Clock()
	if err != nil {
		return ldmpItem{}, err // the record would have been malformed
	}
	message, err := s.message(t, record)
	if err != nil {
		return ldmpItem{}, err
	}
	item := ldmpItem{table: t, clock: clock, state: ldmpState{Time: record.Time, Number: record.Number, Digest: message.ID}}
	repeats, changed := t.repeats(item.state)
	if repeats {
		return item, nil
	}
	if changed != "" {
		message.ID = pipeline.ID(message.ID, changed) // content that comes back is no repeat
	}
	sent, err := s.pipeline.Send(ctx, message)
	if job.ClassOf(err) == errclass.MessageTooLarge {
		item.refused = s.refused(errclass.MessageTooLarge, err.Error(), s.conn.Frame())
		return item, nil
	}
	item.message, item.sent = message, &sent
	return item, err
}

func (s *ldmpSession) message(t *ldmpTable, record ldmp.Record) (pipeline.Outgoing, error) {
	return RecordMessage(s.subject, pipeline.Context{
		ImportedAt: s.now().UTC(), OrgSlug: s.spec.Organization, Source: ldmp.Source,
		Station: t.slug, Table: t.table, UTCOffset: t.offset,
	}, record)
}

// RecordMessage makes the raw message of a record. Its id is a digest of the subject, the
// record and what else is given: it is without the time of import, so that a repeat has
// the same.
func RecordMessage(subject string, context pipeline.Context, record ldmp.Record, unique ...string) (pipeline.Outgoing, error) {
	payload, err := pipeline.Marshal(record)
	if err != nil {
		return pipeline.Outgoing{}, fmt.Errorf("encode a record of station %s, table %s: %w", context.Station, context.Table, err)
	}
	return outgoing(subject, context, payload, append([]string{subject, string(payload)}, unique...)...)
}

func (s *ldmpSession) refused(class, reason string, raw []byte) *pipeline.Quarantined {
	return &pipeline.Quarantined{
		Stage: pipeline.StageExtract, Operation: s.spec.OperationMode,
		Name: s.spec.Organization + "." + ldmp.Source, Class: class, Reason: reason,
		Job: s.Job().ID, Target: s.spec.Server, Subject: s.subject, Body: raw,
	}
}

// acknowledge waits for what was read to be durable, in its order, and tells the
// server so. It returns when there is nothing left and reading has ended. When
// the server is gone, what was read is still waited for.
func (s *ldmpSession) acknowledge(ctx, working context.Context) error {
	var gone error
	ready := 0
	for item := range s.queue {
		if err := s.deliver(ctx, working, item); err != nil {
			return err
		}
		ready++
		if gone != nil || (ready < ackBatch && len(s.queue) > 0) {
			continue // the next one is about to be durable as well
		}
		if gone = s.conn.Ack(ready); gone == nil {
			s.Count("acknowledged", int64(ready))
			ready = 0
		}
	}
	return gone
}

// deliver waits until an item is in the stream or in quarantine.
func (s *ldmpSession) deliver(ctx, working context.Context, item ldmpItem) error {
	switch {
	case item.refused != nil:
		if err := ctx.Err(); err != nil {
			return err
		}
		kept, err := s.pipeline.Quarantine(working, []pipeline.Quarantined{*item.refused})
		if err != nil {
			return err
		}
		metrics.LDMPRecords.Inc(s.spec.Organization, metrics.ResultRefused)
		s.Count("quarantined", kept.Stored)
		if kept.Stored > 0 {
			s.Logger().Warn("to quarantine", "class", item.refused.Class, "reason", item.refused.Reason)
		}
		return nil
	case item.sent == nil:
		s.Count("repeats", 1)
		metrics.LDMPRecords.Inc(s.spec.Organization, metrics.ResultRepeat)
		return nil
	}
	ack, err := s.stored(working, *item.sent)
	if err != nil {
		return err
	}
	if last, ok := item.table.follows(item.clock, ack.Sequence); !ok {
		if err := s.repeat(ctx, working, item, pipeline.Behind(item.message.ID, ack.Stream, last)); err != nil {
			return err
		}
	}
	if item.table.published(item.state, item.clock, s.now()) {
		s.Count("out_of_range", 1)
	}
	return nil
}

// stored waits until the stream has a message, and counts it.
func (s *ldmpSession) stored(ctx context.Context, sent pipeline.Sent) (pipeline.Ack, error) {
	ack, err := sent.Wait(ctx)
	if err != nil {
		return ack, err
	}
	published := pipeline.Published{}
	published.Count(ack)
	s.Count("raw", published.Stored)
	s.Count("duplicates", published.Duplicates)
	metrics.LDMPRecords.Add(published.Stored, s.spec.Organization, metrics.ResultStored)
	metrics.LDMPRecords.Add(published.Duplicates, s.spec.Organization, metrics.ResultDuplicate)
	return ack, nil
}

// repeat publishes a message once more under another id, at the end of the stream.
func (s *ldmpSession) repeat(ctx, working context.Context, item ldmpItem, id string) error {
	item.message.ID = id
	sent, err := s.pipeline.Send(ctx, item.message)
	if err != nil {
		return err
	}
	ack, err := s.stored(working, sent)
	if err == nil {
		item.table.moved(item.clock, ack.Sequence)
	}
	return err
}
