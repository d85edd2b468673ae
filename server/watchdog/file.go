package watchdog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/dendrascience/dendra-jobs/internal/secrets"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// File is what a watchdog.toml says.
type File struct {
	Limits    readmodel.Limits
	Timings   map[string]Timing
	GroupWait time.Duration
	Routes    []Route
	// Heartbeat is nil if there is none.
	Heartbeat *Heartbeat
	// Settings identify all of this but the heartbeat.
	Settings string
}

// defaultGroupWait is short enough for whoever waits for a message.
const defaultGroupWait = 10 * time.Second

// Types of receivers.
const (
	typeLog     = "log"
	typeWebhook = "webhook"
	typeEmail   = "email"
)

// Problems are all that is wrong in a file, each a sentence with its line.
type Problems []string

// Error implements error.
func (p Problems) Error() string { return strings.Join(p, "\n") }

// Resolve gives the value of a secret that goes to a destination, a URL or
// [secrets.Itself].
type Resolve func(ref job.SecretRef, destination string) (string, error)

// reader reads a file.
type reader struct {
	name     string
	lines    lines
	resolve  Resolve
	logger   *slog.Logger
	problems Problems
}

func (r *reader) at(path []string, format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf("%s:%d: %s: %s", r.name, r.lines.of(path), strings.Join(path, "."), fmt.Sprintf(format, args...)))
}

// ReadFile reads the text of a file whose name is for problems. Without a text, what holds by
// default is there: messages go to the log. Secrets are resolved at once. The error has all [Problems], unless the text is no TOML.
func ReadFile(name string, text []byte, resolve Resolve, logger *slog.Logger) (File, error) {
	var w written
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := decoder.Decode(&w); err != nil {
		return File{}, decodeProblems(name, err)
	}
	r := &reader{name: name, lines: linesOf(text), resolve: resolve, logger: logger}
	if len(w.Receivers) == 0 {
		w.Receivers = map[string]writtenReceiver{typeLog: {Type: typeLog}}
	}
	f := File{Limits: r.limits(w), Timings: r.timings(w), GroupWait: defaultGroupWait, Routes: r.routes(w.Receivers), Heartbeat: r.heartbeat(w.Heartbeat)}
	if w.GroupWait != nil {
		f.GroupWait = r.between([]string{"group_wait"}, *w.GroupWait, 0, mostGroupWait)
	}
	if len(r.problems) > 0 {
		return File{}, r.problems
	}
	var err error
	if f.Settings, err = settingsOf(f, w.Receivers); err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// settingsOf identifies what decides about messages. Of secrets it has the names alone: it is
// for other replicas.
func settingsOf(f File, receivers map[string]writtenReceiver) (string, error) {
	text, err := json.Marshal([]any{f.Limits, f.Timings, f.GroupWait, receivers})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}

func decodeProblems(name string, err error) error {
	var missing *toml.StrictMissingError
	if errors.As(err, &missing) {
		var problems Problems
		for _, e := range missing.Errors {
			line, _ := e.Position()
			problems = append(problems, fmt.Sprintf("%s:%d: %s: there is no such key", name, line, strings.Join(e.Key(), ".")))
		}
		return problems
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, _ := bad.Position()
		key := strings.Join(bad.Key(), ".")
		if key != "" {
			key += ": "
		}
		return Problems{fmt.Sprintf("%s:%d: %s%s", name, line, key, strings.TrimPrefix(bad.Error(), "toml: "))}
	}
	return Problems{fmt.Sprintf("%s: %s", name, err)}
}

func (r *reader) limits(w written) readmodel.Limits {
	in := func(name string, d job.Duration) time.Duration {
		if d < 0 {
			r.at([]string{"limits", name}, "the duration is negative")
		}
		return d.Std()
	}
	limits := readmodel.Limits{
		QueueAge: in("queue_age", w.Limits.QueueAge), LoadAge: in("load_age", w.Limits.LoadAge), StationAge: in("station_age", w.Limits.StationAge),
		Freshness: in("freshness", w.Limits.Freshness), Stations: map[string]time.Duration{}, Severities: map[jobsv1.AlertRule]jobsv1.AlertSeverity{},
	}
	for _, name := range slices.Sorted(maps.Keys(w.Stations)) {
		age := w.Stations[name].Age
		if !age.set || !age.never && age.duration == 0 {
			r.at([]string{"stations", name}, "age is not set: write a duration, or never")
		}
		limits.Stations[name] = age.duration.Std()
	}
	for _, rule := range slices.Sorted(maps.Keys(w.Rules)) {
		if word := w.Rules[rule].Severity; word != "" {
			limits.Severities[readmodel.RuleOf(rule)] = r.severity([]string{"rules", rule, "severity"}, word)
		}
	}
	return limits
}

func (r *reader) severity(path []string, word string) jobsv1.AlertSeverity {
	severity := readmodel.EnumOf[jobsv1.AlertSeverity](word)
	if severity == 0 {
		r.at(path, "%q is not one of critical, warning, info", word)
	}
	return severity
}

func (r *reader) heartbeat(w *writtenHeartbeat) *Heartbeat {
	if w == nil {
		return nil
	}
	in := func(key string) []string { return []string{"heartbeat", key} }
	h, every := &Heartbeat{Every: defaultHeartbeat}, w.Every
	if every != 0 {
		h.Every = r.between(in("every"), every, leastHeartbeat, mostTime)
	}
	h.URL = r.address(in("url"), w.URL)
	if w.FailURL != "" {
		h.FailURL = r.address(in("fail_url"), w.FailURL)
	}
	return h
}

// address is a URL that is to be called, or that of a secret.
func (r *reader) address(path []string, text string) *url.URL {
	if ref := job.SecretRef(text); strings.HasPrefix(text, "secret:") {
		var ok bool
		if text, ok = r.secret(path, ref, secrets.Itself); !ok {
			return nil
		}
	} else if !r.shown(path, text) {
		return nil
	}
	u, err := parseAddress(text)
	if err != nil {
		r.at(path, "%s", err)
	}
	return u
}

// shown refuses a URL with a password.
func (r *reader) shown(path []string, text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.User != nil {
		r.at(path, "it is no URL, or has a password, which would be shown")
		return false
	}
	return true
}

func (r *reader) timings(w written) map[string]Timing {
	timings := DefaultTimings()
	for rule, timing := range timings {
		timing.Repeat = max(w.RepeatEvery.Std(), 0)
		timings[rule] = timing
	}
	if w.RepeatEvery != 0 && w.RepeatEvery.Std() < leastRepeat {
		r.at([]string{"repeat_every"}, "%s is shorter than %s", w.RepeatEvery, job.Duration(leastRepeat))
	}
	for _, rule := range slices.Sorted(maps.Keys(w.Rules)) {
		timing, known := timings[rule]
		at := []string{"rules", rule}
		if !known {
			r.at(at, "there is no such rule; the rules are %s", strings.Join(slices.Sorted(maps.Keys(DefaultTimings())), ", "))
			continue
		}
		set := w.Rules[rule]
		timing.Off = set.Off
		if set.Hold != nil {
			timing.Hold = r.between(append(at, "hold"), *set.Hold, 0, mostTime)
		}
		if set.Clear != nil {
			timing.Clear = r.between(append(at, "clear"), *set.Clear, leastClear, mostTime)
		}
		if set.RepeatEvery != nil {
			if timing.Repeat = set.RepeatEvery.Std(); timing.Repeat != 0 {
				timing.Repeat = r.between(append(at, "repeat_every"), *set.RepeatEvery, leastRepeat, mostTime)
			}
		}
		timings[rule] = timing
	}
	return timings
}

// Bounds of timings: replicas look every two seconds.
const (
	leastClear     = 10 * time.Second
	leastRepeat    = time.Minute
	leastHeartbeat = time.Second
	mostGroupWait  = 10 * time.Minute
	mostTime       = 365 * 24 * time.Hour
)

func (r *reader) between(path []string, d job.Duration, least, most time.Duration) time.Duration {
	switch {
	case d.Std() < least:
		r.at(path, "%s is shorter than %s", d, job.Duration(least))
	case d.Std() > most:
		r.at(path, "%s is longer than %s", d, job.Duration(most))
	}
	return d.Std()
}

func (r *reader) routes(receivers map[string]writtenReceiver) []Route {
	var routes []Route
	known := DefaultTimings()
	for _, name := range slices.Sorted(maps.Keys(receivers)) {
		w, at := receivers[name], []string{"receivers", name}
		for _, rule := range w.Rules {
			if _, ok := known[rule]; !ok {
				r.at(append(at, "rules"), "there is no rule %q", rule)
			}
		}
		for _, word := range w.Severities {
			r.severity(append(at, "severities"), word)
		}
		for _, owner := range w.Owners {
			var parsed job.Owner
			if err := parsed.UnmarshalText([]byte(owner)); err != nil {
				r.at(append(at, "owners"), "%s", err)
			}
		}
		if receiver := r.receiver(at, w); receiver != nil {
			routes = append(routes, Route{Name: name, Receiver: receiver, Rules: w.Rules, Severities: w.Severities, Owners: w.Owners})
		}
	}
	return routes
}

func (r *reader) receiver(at []string, w writtenReceiver) Receiver {
	in := func(key string) []string { return append(slices.Clone(at), key) }
	switch w.Type {
	case typeLog:
		return Log{r.logger}
	case typeWebhook:
		if !r.shown(in("url"), w.URL) {
			return nil
		}
		secret, ok := r.secret(in("secret"), w.Secret, w.URL)
		if !ok {
			return nil
		}
		webhook, err := NewWebhook(w.URL, secret, Retry{})
		if err != nil {
			r.at(at, "%s", err)
			return nil
		}
		return webhook
	case typeEmail:
		if w.Host == "" {
			r.at(at, "host is not set: it is the server that takes mail")
			return nil
		}
		password, ok := "", true
		if w.User != "" || w.Password != "" {
			password, ok = r.secret(in("password"), w.Password, "smtp://"+w.Host)
		}
		if !ok {
			return nil
		}
		email, err := NewEmail(EmailConfig{
			Host: w.Host, Port: w.Port, Security: w.Security, From: w.From, To: w.To, User: w.User, Password: password,
		})
		if err != nil {
			r.at(at, "%s", err)
			return nil
		}
		return email
	default:
		r.at(in("type"), "%q is not one of log, webhook, email", w.Type)
		return nil
	}
}

func (r *reader) secret(path []string, ref job.SecretRef, destination string) (string, bool) {
	if ref == "" {
		r.at(path, "it is not set: write secret://NAME")
		return "", false
	}
	value, err := r.resolve(ref, destination)
	if err != nil {
		// The error names the reference, unless it is none: that may be a secret.
		r.at(path, "%s", strings.ReplaceAll(err.Error(), "on this worker", "here"))
		return "", false
	}
	return value, true
}
