package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// BucketLoads holds the state of every load, one value per consumer.
const BucketLoads = "loads"

const (
	// loadStateAge is how long the state of a load is kept that nobody writes any
	// more.
	loadStateAge = 30 * 24 * time.Hour
	// maxLoadState bounds a state in bytes.
	maxLoadState = 8 << 10
)

// DefaultMirror is the name of a location's mirror that has none.
const DefaultMirror = "default"

// LoadConsumer is the durable consumer that loads a location into a mirror:
// load-<operation>-<location> for [DefaultMirror], and
// load-<operation>-<location>=<mirror> for any other. The operation is part of it,
// so that the flows of a location have positions of their own; no token has a "=".
func LoadConsumer(operation Operation, location, mirror string) string {
	name := "load-" + string(operation) + "-" + location
	if mirror == DefaultMirror || mirror == "" {
		return name
	}
	return name + "=" + mirror
}

// parseLoadConsumer takes the name of a load's consumer apart.
func parseLoadConsumer(name string) (operation Operation, location, mirror string, ok bool) {
	rest, found := strings.CutPrefix(name, "load-")
	head, rest, _ := strings.Cut(rest, "-")
	location, mirror, named := strings.Cut(rest, "=")
	if !named {
		mirror = DefaultMirror
	}
	operation = Operation(head)
	ok = found && operation.Check() == nil && CheckToken("location", location) == nil && CheckToken("mirror", mirror) == nil
	return operation, location, mirror, ok
}

// BreakerState says whether a mirror is written to.
type BreakerState string

// The states of a breaker.
const (
	BreakerClosed BreakerState = "closed"    // it is
	BreakerOpen   BreakerState = "open"      // it is left alone
	BreakerTrying BreakerState = "half-open" // it is tried with a little, once there is something
)

// Breaker is the state of a mirror's breaker.
type Breaker struct {
	State BreakerState `json:"state"`
	// Since is when it opened or closed; trying does not count.
	Since time.Time `json:"since,omitzero"`
	// Failures counts failures in a row, tries included.
	Failures int `json:"failures,omitempty"`
	// FailedAt is when the last of them was, RetryAt when the next attempt is.
	FailedAt time.Time `json:"failed_at,omitzero"`
	RetryAt  time.Time `json:"retry_at,omitzero"`
	// Class and Reason are those of the last failure.
	Class  string `json:"class,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Held is the message that the last failure is about: nil when it is about the
	// server, or about nothing that is known. All before it are done with.
	Held *HeldMessage `json:"held,omitempty"`
}

// HeldMessage is a message that a mirror refuses, and that holds up all after it.
type HeldMessage struct {
	Subject  string    `json:"subject"`
	Sequence uint64    `json:"sequence"` // in the stream
	Time     time.Time `json:"time"`     // when the stream took it
}

// Is reports whether a message is the held one. A stream that was made anew gives its
// numbers again.
func (h *HeldMessage) Is(message Stored) bool {
	return h != nil && message.Sequence == h.Sequence && message.Time.Equal(h.Time) && message.Subject == h.Subject
}

// Covers reports whether a message came into the stream with the held one, or before.
func (h *HeldMessage) Covers(message Stored) bool {
	return h != nil && (message.Time.Before(h.Time) || message.Time.Equal(h.Time) && message.Sequence <= h.Sequence)
}

// skipKey is the key of what a load is asked to skip.
func skipKey(consumer string) string { return "skip." + consumer }

// RequestSkip asks the loader of a consumer to put a message into quarantine in place of
// writing it, when it tries the mirror again. A later message takes its place.
func (c *Client) RequestSkip(ctx context.Context, consumer string, held HeldMessage) error {
	value, err := json.Marshal(held)
	if err != nil {
		return fmt.Errorf("encode a message to skip: %w", err)
	}
	bucket, err := c.loads(ctx)
	if err != nil {
		return err
	}
	if _, err := bucket.Put(ctx, skipKey(consumer), value); err != nil {
		return c.failed(ctx, "ask "+consumer+" to skip a message", err)
	}
	return nil
}

// Acknowledged reports whether a load's consumer has nothing left up to a message.
func (c *Client) Acknowledged(ctx context.Context, consumer string, sequence uint64) (bool, error) {
	if err := c.waitConnected(ctx); err != nil {
		return false, err
	}
	found, err := c.js.Consumer(ctx, StreamPrepared, consumer)
	if err != nil {
		return false, c.failed(ctx, "look at consumer "+consumer, err)
	}
	return found.CachedInfo().AckFloor.Stream >= sequence, nil
}

// SkipAsked is the message that a consumer's loader was asked to skip last; nil if none.
// It may be done with: [HeldMessage.Is] says whether it is the one at hand.
func (c *Client) SkipAsked(ctx context.Context, consumer string) (*HeldMessage, error) {
	bucket, err := c.loads(ctx)
	if err != nil {
		return nil, err
	}
	entry, err := bucket.Get(ctx, skipKey(consumer))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, c.failed(ctx, "look for a message that "+consumer+" should skip", err)
	}
	var held HeldMessage
	if json.Unmarshal(entry.Value(), &held) == nil {
		return &held, nil
	}
	return nil, nil // of another version
}

// LoadState is what a loader tells of a location's mirror, and what it goes on
// from. Counts are those of all loaders since StartedAt.
type LoadState struct {
	Operation Operation `json:"operation"`
	Location  string    `json:"location"`
	Mirror    string    `json:"mirror"`
	// Address is the URL of the server without credentials.
	Address string `json:"address,omitempty"`
	// Job is the id of the job that loads.
	Job       string    `json:"job,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	Breaker   Breaker   `json:"breaker"`
	// MaxBytes is the most that the server was found to take in one write; 0: as
	// much as BatchBytes, which is what the job allows.
	MaxBytes   int `json:"max_bytes,omitempty"`
	BatchBytes int `json:"batch_bytes,omitempty"`

	PointsPerSecond float64 `json:"points_per_second"`
	Messages        int64   `json:"messages"`
	Points          int64   `json:"points"`
	Quarantined     int64   `json:"quarantined"`
	// Counted is the last message that Quarantined has: what comes again up to it is counted.
	Counted   *HeldMessage `json:"counted,omitempty"`
	Expired   int64        `json:"expired"`
	LastWrite time.Time    `json:"last_write,omitzero"`
	Recent    Tally        `json:"recent,omitzero"`

	revision uint64 // of what was read
}

// Consumer is the name of the load's consumer, and the key of its state.
func (s LoadState) Consumer() string { return LoadConsumer(s.Operation, s.Location, s.Mirror) }

// LoadState reads the state of a load; it is empty but for the names when
// nothing was.
func (c *Client) LoadState(ctx context.Context, operation Operation, location, mirror string) (LoadState, error) {
	state := LoadState{Operation: operation, Location: location, Mirror: mirror, Breaker: Breaker{State: BreakerClosed}}
	bucket, err := c.loads(ctx)
	if err != nil {
		return state, err
	}
	entry, err := bucket.Get(ctx, state.Consumer())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return state, nil
	}
	if err != nil {
		return state, c.failed(ctx, "read the state of "+state.Consumer(), err)
	}
	// One of another version, which cannot be read, is written anew.
	if stored := state; json.Unmarshal(entry.Value(), &stored) == nil && stored.Breaker.State != "" {
		state = stored
	}
	state.revision = entry.Revision()
	return state, nil
}

// ClaimLoad writes a state that goes on from the one that was read, unless another
// loader has written since: then it reports false.
func (c *Client) ClaimLoad(ctx context.Context, state LoadState) (claimed bool, err error) {
	value, err := json.Marshal(state)
	if err != nil {
		return false, fmt.Errorf("encode the state of %s: %w", state.Consumer(), err)
	}
	bucket, err := c.loads(ctx)
	if err != nil {
		return false, err
	}
	if state.revision == 0 {
		_, err = bucket.Create(ctx, state.Consumer(), value)
	} else {
		_, err = bucket.Update(ctx, state.Consumer(), value, state.revision)
	}
	switch {
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return false, nil
	case err != nil:
		return false, c.failed(ctx, "write the state of "+state.Consumer(), err)
	}
	return true, nil
}

// PutLoadState writes the state of a load.
func (c *Client) PutLoadState(ctx context.Context, state LoadState) error {
	value, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode the state of %s: %w", state.Consumer(), err)
	}
	bucket, err := c.loads(ctx)
	if err != nil {
		return err
	}
	if _, err := bucket.Put(ctx, state.Consumer(), value); err != nil {
		return c.failed(ctx, "write the state of "+state.Consumer(), err)
	}
	return nil
}

// loads opens the bucket.
func (c *Client) loads(ctx context.Context) (jetstream.KeyValue, error) {
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	bucket, err := c.js.KeyValue(ctx, BucketLoads)
	if err != nil {
		return nil, c.failed(ctx, "open bucket "+BucketLoads, err)
	}
	return bucket, nil
}

// Load is a location's mirror with what its consumer and its loader tell.
type Load struct {
	LoadState
	// Waiting is how many messages are not acknowledged; Unanswered of them are with
	// a loader, or were.
	Waiting    uint64 `json:"waiting"`
	Unanswered int    `json:"unanswered"`
	// Oldest is when the first of them came into the stream.
	Oldest time.Time `json:"oldest,omitzero"`
	// Done is the number up to which all messages of the load are done with.
	Done uint64 `json:"done"`
}

// Waiting is how many messages of a load are not acknowledged, and when the first of them
// came into the stream; zero if none waits.
func (c *Client) Waiting(ctx context.Context, operation Operation, location, mirror string) (messages uint64, oldest time.Time, err error) {
	name := LoadConsumer(operation, location, mirror)
	stream, err := c.existing(ctx, StreamPrepared)
	if err != nil {
		return 0, time.Time{}, err
	}
	consumer, err := stream.Consumer(ctx, name)
	if err != nil {
		return 0, time.Time{}, c.failed(ctx, "look at consumer "+name, err)
	}
	info := consumer.CachedInfo()
	oldest, err = c.oldest(ctx, stream, info, PrepSubject(operation, location))
	return info.NumPending + uint64(info.NumAckPending), oldest, err
}

// oldest is when the first message that a consumer has not acknowledged came into the
// stream, zero if none waits.
func (c *Client) oldest(ctx context.Context, stream jetstream.Stream, info *jetstream.ConsumerInfo, subject string) (time.Time, error) {
	if info.NumPending+uint64(info.NumAckPending) == 0 {
		return time.Time{}, nil
	}
	return c.firstTime(ctx, stream, info.AckFloor.Stream+1, subject)
}

// firstTime is when the first message on a subject from a number on came into the stream,
// zero if there is none.
func (c *Client) firstTime(ctx context.Context, stream jetstream.Stream, from uint64, subject string) (time.Time, error) {
	first, err := stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
	switch {
	case err == nil:
		return first.Time.UTC(), nil
	case errors.Is(err, jetstream.ErrMsgNotFound): // acknowledged or gone by now
		return time.Time{}, nil
	}
	return time.Time{}, c.failed(ctx, "read the first message that waits on "+subject, err)
}

// addUnloaded adds what nobody loads. Integrations that are tried out need no load.
func (c *Client) addUnloaded(ctx context.Context, stream jetstream.Stream, loads []Load) ([]Load, error) {
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(PreparedSubjects))
	if err != nil {
		return nil, c.failed(ctx, "count messages of stream "+StreamPrepared, err)
	}
	for subject, messages := range info.State.Subjects {
		operation, location, ok := ParsePrepSubject(subject)
		if !ok || operation == OperationTest ||
			slices.ContainsFunc(loads, func(l Load) bool { return l.Operation == operation && l.Location == location }) {
			continue
		}
		load := Load{LoadState: LoadState{Operation: operation, Location: location, Mirror: DefaultMirror}, Waiting: messages}
		if load.Oldest, err = c.firstTime(ctx, stream, 1, subject); err != nil {
			return nil, err
		}
		loads = append(loads, load)
	}
	return loads, nil
}

// Loads lists the loads that have a consumer, by location, operation and mirror, and the
// locations with messages that no consumer is for, as loads of the default mirror.
// What waits comes from the consumers, and is right without a loader. It makes
// nothing; see [ErrNoStream].
func (c *Client) Loads(ctx context.Context) ([]Load, error) {
	stream, err := c.existing(ctx, StreamPrepared)
	if err != nil {
		return nil, err
	}
	bucket, err := c.js.KeyValue(ctx, BucketLoads)
	if err != nil && !errors.Is(err, jetstream.ErrBucketNotFound) { // no loader has told anything yet
		return nil, c.failed(ctx, "open bucket "+BucketLoads, err)
	}
	var loads []Load
	consumers := stream.ListConsumers(ctx)
	for info := range consumers.Info() {
		operation, location, mirror, ok := parseLoadConsumer(info.Name)
		if !ok {
			continue
		}
		load := Load{
			LoadState: LoadState{Operation: operation, Location: location, Mirror: mirror},
			Waiting:   info.NumPending + uint64(info.NumAckPending), Unanswered: info.NumAckPending,
			Done: info.AckFloor.Stream,
		}
		if bucket != nil {
			entry, err := bucket.Get(ctx, info.Name)
			switch {
			case err == nil:
				state := load.LoadState
				if json.Unmarshal(entry.Value(), &state) == nil && state.Consumer() == info.Name {
					load.LoadState = state
				}
			case !errors.Is(err, jetstream.ErrKeyNotFound):
				return nil, c.failed(ctx, "read the state of "+info.Name, err)
			}
		}
		if load.Oldest, err = c.oldest(ctx, stream, info, PrepSubject(operation, location)); err != nil {
			return nil, err
		}
		loads = append(loads, load)
	}
	if err := consumers.Err(); err != nil {
		return nil, c.failed(ctx, "list consumers of stream "+StreamPrepared, err)
	}
	if loads, err = c.addUnloaded(ctx, stream, loads); err != nil {
		return nil, err
	}
	slices.SortFunc(loads, func(a, b Load) int {
		return cmp.Or(cmp.Compare(a.Location, b.Location), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Mirror, b.Mirror))
	})
	return loads, nil
}
