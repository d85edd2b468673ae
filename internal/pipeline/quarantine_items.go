package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Item is a message in quarantine.
type Item struct {
	// ID is the item's number in the quarantine stream. It is never given again.
	ID        uint64
	Stage     Stage
	Operation Operation
	Name      string // <organization>.<source>; of the stage load the location, of the stage change <organization id>.<kind>
	Class     string
	Reason    string
	Job       string
	Target    string
	// OriginSubject is where the message came from, and OriginSequence its number in
	// that stream, 0 if it came from none.
	OriginSubject  string
	OriginSequence uint64
	// Time is when it was put into quarantine.
	Time time.Time
	// Kept is the size of the body in bytes, and Size that of what was refused: it is
	// larger if the body had to be cut.
	Kept, Size int
	// Body is what was refused, verbatim. A list leaves it out.
	Body []byte

	subject string
	stored  time.Time
}

// ErrNotReplayable is wrapped by errors about items that only can be dropped.
var ErrNotReplayable = errors.New("it can only be dropped")

// Replayable says why an item cannot be published again, in one sentence that
// wraps [ErrNotReplayable], or nil if it can.
func (i Item) Replayable() error {
	_, _, isPrepared := ParsePrepSubject(i.OriginSubject)
	_, _, _, isRaw := ParseRawSubject(i.OriginSubject)
	switch {
	case i.Stage == StageExtract:
		return fmt.Errorf("item %d is what a vendor sent and not a message, so there is no stream that it could go to: %w", i.ID, ErrNotReplayable)
	case i.Stage == StageChange:
		return fmt.Errorf("item %d is a change, and its subscriber looks at the resource again by itself (resync_every): %w", i.ID, ErrNotReplayable)
	case i.Kept < i.Size && i.OriginSequence > 0:
		return fmt.Errorf("item %d holds only the first %d of %d bytes; the whole is message %d on %s, as long as its stream keeps that: %w",
			i.ID, i.Kept, i.Size, i.OriginSequence, i.OriginSubject, ErrNotReplayable)
	case i.Kept < i.Size:
		return fmt.Errorf("item %d holds only the first %d of %d bytes: %w", i.ID, i.Kept, i.Size, ErrNotReplayable)
	case !isPrepared && !isRaw:
		return fmt.Errorf("item %d names no subject of the pipeline that it came from (%.100q): %w", i.ID, i.OriginSubject, ErrNotReplayable)
	}
	return nil
}

// ItemFilter says which items are meant: those that fit everything that is set.
type ItemFilter struct {
	Stage        Stage
	Operation    Operation
	Organization string // of all stages but load; its id of the stage change
	Location     string // of the stage load
	Class        string
	Since        time.Time // when they were put into quarantine, at the earliest
	Before       uint64    // their number is less
}

// Check reports a filter that nothing can fit.
func (f ItemFilter) Check() error {
	var problems []error
	if f.Stage != "" {
		problems = append(problems, f.Stage.Check())
	}
	if f.Operation != "" {
		problems = append(problems, f.Operation.Check())
	}
	if f.Organization != "" {
		problems = append(problems, CheckToken("organization", f.Organization))
	}
	if f.Location != "" {
		problems = append(problems, CheckToken("location", f.Location))
	}
	switch {
	case f.Organization != "" && f.Location != "":
		problems = append(problems, errors.New("an item is either of an organization (all stages but load) or of a location (stage load)"))
	case f.Organization != "" && f.Stage == StageLoad:
		problems = append(problems, errors.New("items of the stage load are found by location, not by organization"))
	case f.Location != "" && f.Stage != "" && f.Stage != StageLoad:
		problems = append(problems, fmt.Errorf("items of the stage %s are found by organization, not by location", f.Stage))
	}
	return errors.Join(problems...)
}

func (f ItemFilter) subject() string {
	part := func(text string) string {
		if text == "" {
			return "*"
		}
		return text
	}
	stage, operation := part(string(f.Stage)), part(string(f.Operation))
	switch {
	case f.Location != "":
		return strings.Join([]string{quarantineRoot, string(StageLoad), operation, f.Location, "*"}, ".")
	case f.Organization != "":
		return strings.Join([]string{quarantineRoot, stage, operation, f.Organization, "*", "*"}, ".")
	}
	return strings.Join([]string{quarantineRoot, stage, operation, ">"}, ".")
}

const (
	// itemFetch is how many items are asked for at a time, without their bodies.
	itemFetch = 1000
	// itemWait is how long they are waited for, and itemAttempts how often in vain.
	itemWait     = 2 * time.Second
	itemAttempts = 5
)

// Items shows visit what is in quarantine and fits a filter, the oldest first and
// without bodies, up to the newest item there is at the beginning. An error of
// visit ends it. A server without a quarantine stream has no items.
func (c *Client) Items(ctx context.Context, filter ItemFilter, visit func(Item) error) error {
	if err := filter.Check(); err != nil {
		return err
	}
	const what = "list the quarantine"
	stream, err := c.quarantine(ctx, what)
	if stream == nil || err != nil {
		return err
	}
	until := stream.CachedInfo().State.LastSeq
	if filter.Before > 0 {
		until = min(until, filter.Before-1)
	}
	config := jetstream.ConsumerConfig{
		FilterSubject: filter.subject(), HeadersOnly: true,
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: time.Minute, MemoryStorage: true,
	}
	if !filter.Since.IsZero() {
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &filter.Since
	}
	consumer, err := stream.CreateConsumer(ctx, config)
	if err != nil {
		return c.failed(ctx, what, err)
	}
	// One that stays is removed by the server.
	defer func() { _ = stream.DeleteConsumer(context.WithoutCancel(ctx), consumer.CachedInfo().Name) }()

	scan := itemScan{filter: filter, until: until, visit: visit, pending: consumer.CachedInfo().NumPending}
	for attempts := 0; scan.pending > 0 && !scan.over; {
		before := scan.delivered
		batch, err := consumer.Fetch(int(min(itemFetch, scan.pending)), jetstream.FetchMaxWait(itemWait))
		if err != nil {
			return c.failed(ctx, what, err)
		}
		for message := range batch.Messages() {
			if err := scan.take(message); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if scan.over {
			return nil
		}
		if scan.delivered > before {
			attempts = 0
			continue
		}
		// What was left is removed, or the server does not answer.
		info, err := consumer.Info(ctx)
		if err != nil {
			return c.failed(ctx, what, err)
		}
		scan.pending = info.NumPending
		if attempts++; attempts == itemAttempts || info.Delivered.Consumer != scan.delivered {
			return scan.lost()
		}
	}
	return nil
}

// itemScan is a list in the making.
type itemScan struct {
	filter    ItemFilter
	until     uint64
	visit     func(Item) error
	delivered uint64 // messages so far
	pending   uint64 // messages to come
	over      bool
}

func (s *itemScan) lost() error {
	return job.Fail(errclass.PipelineUnreachable, "the list of the quarantine is incomplete: the connection to the server was lost, or it does not answer")
}

func (s *itemScan) take(message jetstream.Msg) error {
	meta, err := message.Metadata()
	if err != nil {
		return err
	}
	// Nothing is acknowledged, so that what is lost on the way would be missing.
	if s.delivered++; meta.Sequence.Consumer != s.delivered {
		return s.lost()
	}
	s.pending = meta.NumPending
	if s.over = s.over || meta.Sequence.Stream > s.until; s.over {
		return nil
	}
	size, err := strconv.Atoi(message.Headers().Get(nats.MsgSize))
	if err != nil {
		size = 0
	}
	item, ok := itemOf(message.Subject(), meta.Sequence.Stream, meta.Timestamp, message.Headers(), size)
	if !ok || (s.filter.Class != "" && s.filter.Class != item.Class) {
		return nil
	}
	return s.visit(item)
}

// itemOf reads the headers of an item; false if its subject is none of ours.
func itemOf(subject string, id uint64, stored time.Time, header nats.Header, kept int) (Item, bool) {
	stage, operation, name, ok := parseQuarantineSubject(subject)
	if !ok {
		return Item{}, false
	}
	item := Item{
		ID: id, Stage: stage, Operation: operation, Name: name,
		Class: header.Get(HeaderClass), Reason: header.Get(HeaderReason), Job: header.Get(HeaderJob), Target: header.Get(HeaderTarget),
		OriginSubject: header.Get(HeaderSubject), Time: stored.UTC(), Kept: kept, Size: kept,
		subject: subject, stored: stored,
	}
	if at, err := time.Parse(time.RFC3339, header.Get(HeaderTime)); err == nil {
		item.Time = at.UTC()
	}
	if sequence, err := strconv.ParseUint(header.Get(HeaderSequence), 10, 64); err == nil {
		item.OriginSequence = sequence
	}
	if size, err := strconv.Atoi(header.Get(HeaderSize)); err == nil && size > kept {
		item.Size = size
	}
	return item, true
}

// ErrNoItem is wrapped by errors about an item that is not in quarantine (any more).
var ErrNoItem = errors.New("it is not in quarantine")

// Item reads an item with its body. The error wraps [ErrNoItem] if there is none.
func (c *Client) Item(ctx context.Context, id uint64) (Item, error) {
	stream, err := c.quarantine(ctx, fmt.Sprintf("read item %d", id))
	if err != nil {
		return Item{}, err
	}
	if stream == nil {
		return Item{}, fmt.Errorf("item %d: %w", id, ErrNoItem)
	}
	return c.item(ctx, stream, id)
}

func (c *Client) item(ctx context.Context, stream jetstream.Stream, id uint64) (Item, error) {
	message, err := stream.GetMsg(ctx, id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Item{}, fmt.Errorf("item %d: %w", id, ErrNoItem)
	}
	if err != nil {
		return Item{}, c.failed(ctx, fmt.Sprintf("read item %d of the quarantine", id), err)
	}
	item, ok := itemOf(message.Subject, id, message.Time, message.Header, len(message.Data))
	if !ok {
		return Item{}, fmt.Errorf("item %d: %w", id, ErrNoItem)
	}
	item.Body = message.Data
	return item, nil
}

// quarantine opens the stream; nil if the server has none. It makes nothing.
func (c *Client) quarantine(ctx context.Context, what string) (jetstream.Stream, error) {
	if err := c.Reach(ctx); err != nil {
		return nil, err
	}
	stream, err := c.js.Stream(ctx, StreamQuarantine)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	return stream, nil
}

// itemWorkers is how many requests about items are under way at a time.
const itemWorkers = 8

// Drop removes items for good, and returns how many there were. After an error, or
// the end of ctx, some are removed and some not. Done, if not nil, is called with
// the number of items dealt with, now and then.
func (c *Client) Drop(ctx context.Context, ids []uint64, done func(int)) (int, error) {
	stream, err := c.quarantine(ctx, "drop items")
	if stream == nil || err != nil {
		return 0, err
	}
	dropped := 0
	for start := 0; start < len(ids); start += itemFetch {
		n, err := c.removeAll(ctx, stream, ids[start:min(start+itemFetch, len(ids))])
		dropped += n
		if err != nil {
			return dropped, err
		}
		if done != nil {
			done(min(start+itemFetch, len(ids)))
		}
	}
	return dropped, nil
}

// removeAll removes items, a few at a time, and returns how many there were.
func (c *Client) removeAll(ctx context.Context, stream jetstream.Stream, ids []uint64) (int, error) {
	var removed atomic.Int64
	err := each(ctx, ids, func(_ int, id uint64) error {
		found, err := c.remove(ctx, stream, id)
		if found {
			removed.Add(1)
		}
		return err
	})
	return int(removed.Load()), err
}

// remove removes an item; false if there was none.
func (c *Client) remove(ctx context.Context, stream jetstream.Stream, id uint64) (bool, error) {
	failed := stream.DeleteMsg(ctx, id)
	if failed == nil {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if _, err := stream.GetMsg(ctx, id); errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return false, c.failed(ctx, fmt.Sprintf("remove item %d from quarantine", id), failed)
}

// each calls do for every element, a few at a time, until one fails or ctx ends, and
// returns the first error. Calls that have begun are finished: their items are counted.
func each[E any](ctx context.Context, list []E, do func(int, E) error) error {
	group, unfailed := job.NewGroup(ctx)
	group.SetLimit(itemWorkers)
	for n, element := range list {
		group.Go(func() error {
			if unfailed.Err() != nil {
				return unfailed.Err()
			}
			return do(n, element)
		})
	}
	return group.Wait()
}
