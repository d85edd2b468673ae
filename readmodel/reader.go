package readmodel

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// Config says what a reader reads.
type Config struct {
	// Temporal says where Temporal is. The reader has a connection of its own.
	Temporal temporalclient.Settings
	// Pipeline is that of NATS. Without it there are no loads.
	Pipeline *pipeline.Client
	// Platform is that of the Platform API, and PlatformURL where it is. Without it there
	// are no integrations.
	Platform    *platform.Client
	PlatformURL string
	// Servers are further servers whose health is shown, such as the object store.
	Servers []Server
	// Drift names the providers whose drift is looked for. Defaults to the jobs file's.
	Drift []job.Provider
	// DriftEvery is the time between two looks for drift. Defaults to a minute.
	DriftEvery time.Duration
	// Always has the reader read though nobody looks.
	Always bool
	// Grace is how long it reads on after the last look. Defaults to 30 seconds.
	Grace time.Duration
	// Patience is how long the first snapshot waits for what is read later than the rest:
	// states of queues, the history, integrations. Drift takes longer, and is not waited
	// for. Defaults to not at all.
	Patience time.Duration
	// CallsPerSecond bounds the calls of Temporal, on average: each attempt is one. Defaults to 5.
	CallsPerSecond float64
	// ToldTypes are the job types whose runs are told when they end: see [Reader.Ended].
	ToldTypes []string
	// Limits are those of alerts.
	Limits Limits
	// Logger gets what could not be read. Defaults to slog.Default().
	Logger *slog.Logger
}

// Server is a server whose health is shown.
type Server struct {
	Name    string
	Address string
	// Check is an error if the server does not do its work.
	Check func(context.Context) error
}

// backgroundShare is the part of the calls that drift may take.
const backgroundShare = 0.1

// burst is how many calls may come at once. The average is not above the bound for that.
const burst = 10

// Reader reads for all viewers of a process. Its methods may be called at the same time.
type Reader struct {
	Config
	bucket  *alerts.Bucket // nil without NATS
	client  *client.Client // its calls go through intercept
	address string         // of Temporal
	limiter *rate.Limiter  // of all sources but drift

	sources []*source

	mu       sync.Mutex
	state    state
	latest   *Snapshot
	recent   []*Snapshot   // the latest ones, the oldest first
	changed  chan struct{} // closed once there is another snapshot
	read     chan struct{} // closed after each read of a source
	awake    chan struct{} // closed once someone asks
	asked    time.Time
	begunAt  time.Time // when all that a snapshot waits for was tried
	watchers int
	revision int64
}

// New connects a reader, which reads nothing yet: see [Reader.Run].
func New(ctx context.Context, config Config) (*Reader, error) {
	r := newReader(config)
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

func newReader(config Config) *Reader {
	if config.Grace == 0 {
		config.Grace = 30 * time.Second
	}
	if config.CallsPerSecond == 0 {
		config.CallsPerSecond = 5
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.Drift == nil {
		config.Drift = []job.Provider{job.ProviderTOML}
	}
	config.DriftEvery = cmp.Or(config.DriftEvery, time.Minute)
	config.Limits = config.Limits.withDefaults()
	r := &Reader{
		Config:  config,
		limiter: rate.NewLimiter(rate.Limit(config.CallsPerSecond*(1-backgroundShare)), burst),
		state:   newState(),
		changed: make(chan struct{}), read: make(chan struct{}), awake: make(chan struct{}),
		// One process after another gives other numbers, and JavaScript can hold them.
		revision: time.Now().UnixMicro(),
	}
	r.state.toldTypes = config.ToldTypes
	if config.Pipeline != nil {
		r.bucket = alerts.NewBucket(config.Pipeline)
	}
	r.sources = r.allSources()
	return r
}

// source is something that is read again and again.
type source struct {
	name string
	// every is the least time between two reads. If a read takes long, it is more.
	every time.Duration
	// timeout bounds a read.
	timeout time.Duration
	// later says that a snapshot does not wait for it.
	later bool
	// cheap says that a long read is no reason to read less often: it has waited for a
	// server that does not answer.
	cheap bool
	// limiter is one of its own, nil for that of the reader.
	limiter *rate.Limiter
	read    func(context.Context) error

	// Of state, under the lock of the reader:
	tried time.Time // the end of the last read
	err   error
}

// errMore is no error: there may be something else that was never read, which is read at
// once.
var errMore = errors.New("there may be more")

// rest is how many times longer than a read the time between two reads is.
const rest = 3

// failedRest is the time after a read that failed. Sources that are read rarely do not wait
// for their turn then: nothing counts as cleared until all is read.
const failedRest = 2 * time.Second

// maxRest bounds that time.
const maxRest = 20 * time.Second

func (r *Reader) allSources() []*source {
	list := []*source{
		{name: "runs", every: time.Second, timeout: 30 * time.Second, read: r.readRuns},
		{name: "schedules", every: time.Second, timeout: 30 * time.Second, read: r.readSchedules},
		{name: "jobs without schedule", every: 10 * time.Minute, timeout: 5 * time.Minute, read: r.readUnscheduled},
		{name: "open runs", every: 30 * time.Second, timeout: time.Minute, read: r.readOpen},
		{name: "history", every: time.Second, timeout: 5 * time.Minute, later: true, read: r.readHistory},
		{name: "missed starts", every: time.Second, timeout: 5 * time.Minute, later: true, read: r.readStarts},
		{name: "failed runs", every: time.Second, timeout: time.Minute, read: r.readFailures},
		{name: "ended runs", every: time.Second, timeout: 15 * time.Second, later: true, read: r.readEnded},
		{name: "workers", every: 2 * time.Second, timeout: 15 * time.Second, read: r.readWorkers},
		{name: "queues", every: 5 * time.Second, timeout: 15 * time.Second, read: r.readQueueNames},
		{name: "states of queues", every: 700 * time.Millisecond, timeout: 15 * time.Second, later: true, read: r.readQueue},
		{name: "continuous jobs", every: 700 * time.Millisecond, timeout: 15 * time.Second, later: true, read: r.readLoop},
		{name: "runs under way", every: time.Second, timeout: 15 * time.Second, later: true, read: r.readLook},
		{name: "servers", every: 3 * time.Second, timeout: 10 * time.Second, cheap: true, read: r.readServers},
		{
			name: driftSource, every: r.DriftEvery, timeout: time.Hour, later: true, read: r.readDrift,
			limiter: rate.NewLimiter(rate.Limit(r.CallsPerSecond*backgroundShare), 1),
		},
	}
	if r.Pipeline != nil {
		list = append(list, &source{name: "silences", every: 2 * time.Second, timeout: 15 * time.Second, read: r.readTold},
			&source{name: "loads", every: 2 * time.Second, timeout: 15 * time.Second, read: r.readLoads},
			&source{name: "stations", every: 30 * time.Second, timeout: 30 * time.Second, later: true, read: r.readStations})
	}
	if r.Platform != nil {
		list = append(list, &source{name: "integrations", every: 15 * time.Second, timeout: 30 * time.Second, later: true, read: r.readIntegrations})
	}
	return list
}

// Run reads until the context ends, and closes the connection. Without it, there are no
// snapshots.
func (r *Reader) Run(ctx context.Context) error {
	defer r.client.Temporal().Close()
	var group errgroup.Group
	for _, s := range r.sources {
		group.Go(func() error {
			r.keepReading(ctx, s)
			return nil
		})
	}
	group.Go(func() error {
		// Time alone changes what is late, and long reads are shown as they go on.
		for r.awaitWanted(ctx) == nil && pause(ctx, time.Second) == nil {
			r.publish(time.Now())
		}
		return nil
	})
	_ = group.Wait() // None has an error.
	return context.Cause(ctx)
}

func (r *Reader) keepReading(ctx context.Context, s *source) {
	for r.awaitWanted(ctx) == nil {
		begin := time.Now()
		once, cancel := context.WithTimeout(ctx, s.timeout)
		once, reading := newReading(once, cmp.Or(s.limiter, r.limiter))
		err := s.read(once)
		cancel()
		if ctx.Err() != nil {
			return
		}
		now, more := time.Now(), errors.Is(err, errMore)
		if more {
			err = nil
		}
		if r.finish(s, err, now); more {
			continue
		}
		if pause(ctx, s.pauseAfter(now.Sub(begin)-time.Duration(reading.waited.Load()), err)) != nil {
			return
		}
	}
}

// pauseAfter is the time between a read, which took a while, and the next one.
func (s *source) pauseAfter(took time.Duration, err error) time.Duration {
	switch {
	case err != nil:
		return failedRest // The time that it took is that of a server that does not answer.
	case s.cheap:
		return s.every
	default:
		return max(s.every, min(rest*took, maxRest))
	}
}

// finish notes the end of a read.
func (r *Reader) finish(s *source, err error, now time.Time) {
	r.mu.Lock()
	s.tried = now
	if err != nil && (s.err == nil || s.err.Error() != err.Error()) {
		r.Logger.Warn("The overview cannot read something.", "source", s.name, "error", err)
	}
	s.err = err
	close(r.read)
	r.read = make(chan struct{})
	r.mu.Unlock()
	r.publish(now)
}

// pause waits for a time, or for the end of the context.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // That of the context.
	}
}

// wanted reports whether someone looks. It is called with the lock.
func (r *Reader) wanted(now time.Time) bool {
	return r.Always || r.watchers > 0 || !r.asked.IsZero() && now.Sub(r.asked) < r.Grace
}

// awaitWanted waits until someone looks.
func (r *Reader) awaitWanted(ctx context.Context) error {
	for {
		r.mu.Lock()
		wanted, awake := r.wanted(time.Now()), r.awake
		r.mu.Unlock()
		if wanted {
			return ctx.Err() //nolint:wrapcheck // That of the context.
		}
		select {
		case <-awake:
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // That of the context.
		}
	}
}

// ask notes that someone looks.
func (r *Reader) ask() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = time.Now()
	close(r.awake)
	r.awake = make(chan struct{})
	return r.asked
}

// notes say what could not be read. It is called with the lock.
func (r *Reader) notes() []string {
	var notes []string
	for _, s := range r.sources {
		if s.err != nil {
			notes = append(notes, s.name+": "+oneLine(s.err))
		}
	}
	return append(notes, r.state.notes()...)
}

// stale is the age from which on what was read last is read again for someone who asks.
const stale = 5 * time.Second

// begun reports whether all that a snapshot waits for was tried. It is called with the lock.
func (r *Reader) begun(now time.Time) bool {
	waits := r.latest == nil && r.state.unread()
	for _, s := range r.sources {
		switch {
		case !s.tried.IsZero() || s.name == driftSource:
		case !s.later:
			return false
		default:
			waits = true
		}
	}
	if r.begunAt.IsZero() {
		r.begunAt = now
	}
	return !waits || r.latest != nil || now.Sub(r.begunAt) >= r.Patience
}

// fresh reports whether all that a snapshot waits for was read lately. It is called with the
// lock.
func (r *Reader) fresh(asked time.Time) bool {
	for _, s := range r.sources {
		late := s.every + stale
		if s.later {
			continue
		}
		if s.tried.IsZero() || asked.Sub(s.tried) > late && s.every < time.Minute {
			return false
		}
	}
	return r.latest != nil
}

// Await gives a snapshot that was read lately: it waits for it if the reader has rested,
// or has just begun.
func (r *Reader) Await(ctx context.Context) (*Snapshot, error) {
	asked := r.ask()
	for {
		r.mu.Lock()
		fresh, latest, read := r.fresh(asked), r.latest, r.read
		r.mu.Unlock()
		if fresh {
			return latest, nil
		}
		select {
		case <-read:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Snapshot is what was read last, nil if nothing was. It counts as a look.
func (r *Reader) Snapshot() *Snapshot {
	r.ask()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest
}

// LastRead is when something was read last.
func (r *Reader) LastRead() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var last time.Time
	for _, s := range r.sources {
		if s.tried.After(last) {
			last = s.tried
		}
	}
	return last
}

// Subscription is one who watches.
type Subscription struct {
	reader *Reader
	last   *Snapshot
	once   sync.Once
}

// Subscribe has the reader read until the subscription is closed.
func (r *Reader) Subscribe() *Subscription {
	r.mu.Lock()
	r.watchers++
	r.mu.Unlock()
	r.ask()
	return &Subscription{reader: r}
}

// Next waits for a snapshot other than the one before. Someone slow misses those between:
// nobody waits for them.
func (s *Subscription) Next(ctx context.Context) (*Snapshot, error) {
	if s.last == nil {
		first, err := s.reader.Await(ctx)
		s.last = first
		return first, err
	}
	for {
		s.reader.mu.Lock()
		latest, changed := s.reader.latest, s.reader.changed
		s.reader.mu.Unlock()
		if latest != s.last {
			s.last = latest
			return latest, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.once.Do(func() {
		s.reader.mu.Lock()
		defer s.reader.mu.Unlock()
		s.reader.watchers--
		s.reader.asked = time.Now() // The time of grace begins.
	})
}

// publish makes a snapshot of what is known, if it is other than the last one.
func (r *Reader) publish(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begun(now) {
		return // It would say that there are no workers, and more that is not so.
	}
	next := r.state.overview(now)
	next.Notes = r.notes()
	next.Alerts = r.state.alerts(next, r.Limits, r.Always, now)
	if r.latest != nil && r.latest.adopt(next) {
		return
	}
	r.revision++
	next.Revision = r.revision
	r.latest = newSnapshot(next)
	r.recent = append(r.recent, r.latest)
	if n := len(r.recent) - maxRecent; n > 0 {
		r.recent = append([]*Snapshot(nil), r.recent[n:]...)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// maxRecent bounds the snapshots that are kept, so that one who was away for a moment gets
// what has changed alone.
const maxRecent = 60

// Since gives the snapshot of a revision, nil if it is not kept.
func (r *Reader) Since(revision int64) *Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.recent {
		if s.Overview.GetRevision() == revision {
			return s
		}
	}
	return nil
}
