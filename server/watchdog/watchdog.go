package watchdog

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// Config says what a watchdog watches, and whom it notifies.
type Config struct {
	// Alerts gives the alerts that are on. Required.
	Alerts func() Now
	// Every is the time between two evaluations. Defaults to two seconds.
	Every time.Duration
	// GroupWait is how long an alert that is to be told waits for others, which are told in the
	// same message. 0 means that each has a message of its own.
	GroupWait time.Duration
	// Heartbeat is called while all is well. May be nil.
	Heartbeat *Heartbeat
	// Logger gets what could not be sent. Defaults to slog.Default().
	Logger *slog.Logger
	// Metrics may be nil.
	Metrics Metrics
	// Replica names this process in records and to people. Defaults to a random name.
	Replica string
	// Routes are the receivers.
	Routes []Route
	// Settings identify what decides about messages, to be compared with those of other
	// replicas. Without them there is no record of this one.
	Settings string
	// Shared is the store of all replicas. Without it a replica keeps records of its own.
	Shared Shared
	// StoreTimeout bounds an access of it. Defaults to three seconds.
	StoreTimeout time.Duration
	// TakeOver is how long a record is neither sent nor renewed before another replica
	// sends it. Defaults to 30 seconds.
	TakeOver time.Duration
	// Timings are those of rules, by their words. What is left out has its default.
	Timings map[string]Timing
}

// Now are the alerts at a moment.
type Now struct {
	// Known says that they were read at all.
	Known bool
	// Complete says that all was read, besides drift. Otherwise what is missing may still be
	// so.
	Complete bool
	// DriftKnown says that drift was read.
	DriftKnown bool
	// ReadTime is when something was read last.
	ReadTime time.Time
	Alerts   []*jobsv1.Alert
	// Links are those that messages have beside the text, by the names of alerts.
	Links map[string]string
}

// Rules with conditions of their own: each replica checks the servers, so that their alerts
// are always known, and drift is read apart from the rest.
const (
	serverDown = jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN
	drift      = jobsv1.AlertRule_ALERT_RULE_DRIFT
	// settingsDiffer is told by those who are not meant.
	settingsDiffer = jobsv1.AlertRule_ALERT_RULE_SETTINGS_DIFFER
	// runEnded is told once: that it is gone later says nothing.
	runEnded = jobsv1.AlertRule_ALERT_RULE_RUN_ENDED
)

// knows reports whether an alert of a rule that is missing is not so.
func (n Now) knows(rule string) bool {
	switch readmodel.RuleOf(rule) {
	case serverDown:
		return true
	case drift:
		return n.Complete && n.DriftKnown
	default:
		return n.Complete
	}
}

// Watchdog notifies people of alerts.
type Watchdog struct {
	Config
	store    *store
	observed map[string]*observation
	batches  map[string]*batch       // those that are not sent, by their groups
	waiting  map[alerts.Phase]*batch // the latest that waits for further alerts
	odd      string                  // the replicas that differ
	differs  bool                    // this one does
	pulse    *pulse
	slots    chan struct{}
	sends    sync.WaitGroup

	mu   sync.Mutex
	busy map[string]bool // alerts whose message this replica sends right now
}

// observation is what a watchdog has seen of an alert.
type observation struct {
	// here and gone are since when it is there, or is not.
	here, gone time.Time
	alert      *jobsv1.Alert
	link       string
	// cause is what explains it, or did last, and explained is when something did last.
	cause     string
	explained time.Time
	// revision is that of its record, which was seen first at a time of our clock. Clocks of
	// replicas are never compared.
	revision uint64
	since    time.Time
}

// maxSends is how many batches are sent at once.
const maxSends = 16

// New makes a watchdog, which does nothing yet: see [Watchdog.Run].
func New(config Config) *Watchdog {
	config.Every = cmp.Or(config.Every, 2*time.Second)
	config.StoreTimeout = cmp.Or(config.StoreTimeout, 3*time.Second)
	config.TakeOver = cmp.Or(config.TakeOver, 30*time.Second)
	config.Replica = cmp.Or(config.Replica, rand.Text())
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	timings := DefaultTimings()
	maps.Copy(timings, config.Timings)
	config.Timings = timings
	return &Watchdog{
		Config: config, store: newStore(config.Shared, config.StoreTimeout, config.Logger), observed: map[string]*observation{},
		batches: map[string]*batch{}, waiting: map[alerts.Phase]*batch{}, busy: map[string]bool{}, slots: make(chan struct{}, maxSends),
		pulse: newPulse(),
	}
}

// Run evaluates and sends until the context ends. What is being sent then may be sent again by
// another replica.
func (w *Watchdog) Run(ctx context.Context) error {
	defer w.sends.Wait()
	w.sends.Go(func() { w.announce(ctx) })
	tick := time.NewTicker(w.Every)
	defer tick.Stop()
	for {
		current := w.Alerts()
		w.evaluate(ctx, current)
		w.beat(ctx, w.well(current))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func (w *Watchdog) evaluate(ctx context.Context, current Now) {
	if !current.Known {
		return
	}
	state := w.store.read(ctx)
	w.compare(ctx, state.Replicas)
	maps.DeleteFunc(w.batches, func(_ string, b *batch) bool { return b.isClosed() })
	now := time.Now()
	on := map[string]bool{}
	for _, alert := range current.Alerts {
		on[alert.GetName()] = true
		s := w.observe(alert.GetName())
		if s.alert = alert; s.here.IsZero() {
			s.here = now
		}
		s.gone, s.link = time.Time{}, current.Links[alert.GetName()]
	}
	for name := range state.Records {
		w.observe(name)
	}
	for name, s := range w.observed {
		record, recorded := state.Records[name]
		if !on[name] {
			if s.here = (time.Time{}); s.gone.IsZero() {
				s.gone = now
			}
			if !recorded {
				delete(w.observed, name)
				continue
			}
		}
		if record.Revision != s.revision || s.since.IsZero() {
			s.revision, s.since = record.Revision, now
		}
		if on[name] && w.explained(s, on, state.Records) {
			s.explained = now
		}
		if w.isBusy(name) || ctx.Err() != nil {
			continue
		}
		d := decision{w, s, record, now, state.Silences}
		switch {
		case recorded && record.Phase == alerts.Cleared:
			d.takeOver(ctx)
		case on[name] && recorded:
			d.repeat(ctx)
		case on[name]:
			d.fire(ctx)
		case current.knows(ruleOf(name)):
			d.clear(ctx)
		}
	}
	w.count(state)
}

func (w *Watchdog) observe(name string) *observation {
	if w.observed[name] == nil {
		w.observed[name] = &observation{}
	}
	return w.observed[name]
}

func ruleOf(name string) string {
	rule, _, _ := strings.Cut(name, "/")
	return rule
}

// count counts the alerts that fire.
func (w *Watchdog) count(state alerts.State) {
	if w.Metrics == nil {
		return
	}
	firing := map[string]int{}
	for _, record := range state.Records {
		if record.Phase == alerts.Firing && readmodel.RuleOf(record.Rule) != runEnded {
			firing[record.Rule]++
		}
	}
	for rule := range w.Timings {
		w.Metrics.Firing(rule, firing[rule])
	}
}

// decision is about one alert.
type decision struct {
	*Watchdog
	seen     *observation
	record   alerts.Stored
	now      time.Time
	silences []alerts.Silence
}

func (d decision) timing() Timing { return d.Timings[ruleOf(d.name())] }

func (d decision) name() string {
	if d.record.Name != "" {
		return d.record.Name
	}
	return d.seen.alert.GetName()
}

func (d decision) silenced() bool {
	rule, object, _ := strings.Cut(d.name(), "/")
	_, silenced := alerts.Find(d.silences, rule, object, d.now)
	return silenced || d.timing().Off
}

// once reports whether the alert is told only when it begins.
func (d decision) once() bool { return readmodel.RuleOf(ruleOf(d.name())) == runEnded }

// unchanged is how long the record is as it is.
func (d decision) unchanged() time.Duration { return d.now.Sub(d.seen.since) }

// fire makes the record of an alert that has none. Who makes it sends the message.
func (d decision) fire(ctx context.Context) {
	if d.seen.explained.Equal(d.now) || d.now.Sub(d.seen.alone()) < d.timing().Hold || d.silenced() {
		return
	}
	alert := d.seen.alert
	if d.differs && alert.GetRule() == settingsDiffer {
		return // The others tell it: this replica may know nobody to tell.
	}
	since := d.seen.here
	if alert.GetFireTime() != nil {
		since = alert.GetFireTime().AsTime()
	}
	d.claim(ctx, alerts.Record{
		Name: alert.GetName(), Rule: readmodel.RuleWord(alert.GetRule()), Object: alert.GetObject(), Text: alert.GetText(),
		Severity: readmodel.EnumWord(alert.GetSeverity().Descriptor(), alert.GetSeverity().Number()), Owner: alert.GetOwner(),
		Link: d.seen.link, Phase: alerts.Firing, Message: rand.Text(), Since: since, Group: d.groupOf(alerts.Firing),
	}, false)
}

// repeat is about an alert that is on and has a record.
func (d decision) repeat(ctx context.Context) {
	timing := d.timing()
	switch {
	case !d.record.Sent:
		d.takeOver(ctx)
	case timing.Repeat > 0 && !d.once() && d.now.Sub(d.record.SentAt) >= timing.Repeat && !d.silenced() && !d.seen.explained.Equal(d.now):
		again := d.record.Record
		again.Message, again.Text, again.Group = rand.Text(), d.seen.alert.GetText(), d.groupOf(alerts.Firing)
		d.claim(ctx, again, false)
	case d.unchanged() >= timing.Clear/3:
		// Others see by it that the alert is on, whatever they read themselves.
		renewed := d.record.Record
		renewed.Count++
		renewed.Replica = d.Replica
		if revision, err := d.store.put(ctx, renewed, d.record.Revision); err == nil {
			d.seen.revision, d.seen.since = revision, d.now
		}
	}
}

// clear is about an alert that is gone and has a record.
func (d decision) clear(ctx context.Context) {
	least := d.timing().Clear
	if d.now.Sub(d.seen.gone) < least || d.unchanged() < least {
		return
	}
	if d.silenced() || d.once() {
		_ = d.store.remove(ctx, d.name(), d.record.Revision) // It is tried again.
		return
	}
	cleared := d.record.Record
	cleared.Phase, cleared.Message, cleared.Until, cleared.Group = alerts.Cleared, rand.Text(), d.seen.gone, d.groupOf(alerts.Cleared)
	d.claim(ctx, cleared, false)
}

// takeOver sends what another replica has begun to send, and has not ended.
func (d decision) takeOver(ctx context.Context) {
	if d.unchanged() >= d.TakeOver {
		record := d.record.Record
		record.Group = cmp.Or(record.Group, rand.Text())
		d.claim(ctx, record, true)
	}
}

// claim writes a record that is not sent yet, and sends it if no other replica was faster.
// Taken says that another replica has begun.
func (d decision) claim(ctx context.Context, record alerts.Record, taken bool) {
	record.Sent, record.Replica = false, d.Replica
	record.Count++
	revision, err := d.store.put(ctx, record, d.record.Revision)
	if err != nil {
		return // Another was faster, or the store is away: the next look shows.
	}
	d.join(ctx, alerts.Stored{Record: record, Revision: revision}, taken)
}

func (w *Watchdog) isBusy(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.busy[name]
}

func (w *Watchdog) setBusy(name string, busy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if busy {
		w.busy[name] = true
	} else {
		delete(w.busy, name)
	}
}
