package watchdog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// File is what a watchdog.toml says.
type File struct {
	Limits  readmodel.Limits
	Timings map[string]Timing
	Routes  []Route
}

// Defaults is what holds without a file: messages go to the log.
func Defaults(logger *slog.Logger) File {
	return File{Timings: DefaultTimings(), Routes: []Route{{Name: "log", Receiver: Log{logger}}}}
}

// written is the form of the file.
type written struct {
	RepeatEvery job.Duration               `toml:"repeat_every"`
	Limits      writtenLimits              `toml:"limits"`
	Rules       map[string]writtenRule     `toml:"rules"`
	Receivers   map[string]writtenReceiver `toml:"receivers"`
}

type writtenLimits struct {
	QueueAge   job.Duration `toml:"queue_age"`
	LoadAge    job.Duration `toml:"load_age"`
	StationAge job.Duration `toml:"station_age"`
	Freshness  job.Duration `toml:"freshness"`
}

type writtenRule struct {
	Off         bool          `toml:"off"`
	Hold        *job.Duration `toml:"hold"`
	Clear       *job.Duration `toml:"clear"`
	RepeatEvery *job.Duration `toml:"repeat_every"`
}

type writtenReceiver struct {
	Type     string        `toml:"type"`
	Rules    []string      `toml:"rules"`
	URL      string        `toml:"url"`
	Secret   job.SecretRef `toml:"secret"`
	Host     string        `toml:"host"`
	Port     int           `toml:"port"`
	Security string        `toml:"security"`
	From     string        `toml:"from"`
	To       []string      `toml:"to"`
	User     string        `toml:"user"`
	Password job.SecretRef `toml:"password"`
}

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

// reader reads a file.
type reader struct {
	name     string
	lines    lines
	resolve  func(job.SecretRef) (string, error)
	logger   *slog.Logger
	problems Problems
}

func (r *reader) at(path []string, format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf("%s:%d: %s: %s", r.name, r.lines.of(path), strings.Join(path, "."), fmt.Sprintf(format, args...)))
}

// ReadFile reads the text of a file whose name is for problems. Secrets are resolved at
// once. The error has all [Problems], unless the text is no TOML.
func ReadFile(name string, text []byte, resolve func(job.SecretRef) (string, error), logger *slog.Logger) (File, error) {
	var w written
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := decoder.Decode(&w); err != nil {
		return File{}, decodeProblems(name, err)
	}
	r := &reader{name: name, lines: linesOf(text), resolve: resolve, logger: logger}
	f := File{Limits: r.limits(w.Limits), Timings: r.timings(w), Routes: r.routes(w.Receivers)}
	if len(r.problems) > 0 {
		return File{}, r.problems
	}
	if len(f.Routes) == 0 {
		f.Routes = Defaults(logger).Routes
	}
	return f, nil
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

func (r *reader) limits(w writtenLimits) readmodel.Limits {
	in := func(name string, d job.Duration) time.Duration {
		if d < 0 {
			r.at([]string{"limits", name}, "the duration is negative")
		}
		return d.Std()
	}
	return readmodel.Limits{
		QueueAge: in("queue_age", w.QueueAge), LoadAge: in("load_age", w.LoadAge), StationAge: in("station_age", w.StationAge),
		Freshness: in("freshness", w.Freshness),
	}
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
			timing.Hold = r.between(append(at, "hold"), *set.Hold, 0)
		}
		if set.Clear != nil {
			timing.Clear = r.between(append(at, "clear"), *set.Clear, leastClear)
		}
		if set.RepeatEvery != nil {
			if timing.Repeat = set.RepeatEvery.Std(); timing.Repeat != 0 {
				timing.Repeat = r.between(append(at, "repeat_every"), *set.RepeatEvery, leastRepeat)
			}
		}
		timings[rule] = timing
	}
	return timings
}

// Bounds of timings: replicas look every two seconds.
const (
	leastClear  = 10 * time.Second
	leastRepeat = time.Minute
	mostTime    = 365 * 24 * time.Hour
)

func (r *reader) between(path []string, d job.Duration, least time.Duration) time.Duration {
	switch {
	case d.Std() < least:
		r.at(path, "%s is shorter than %s", d, job.Duration(least))
	case d.Std() > mostTime:
		r.at(path, "%s is longer than %s", d, job.Duration(mostTime))
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
		if receiver := r.receiver(at, w); receiver != nil {
			routes = append(routes, Route{Name: name, Receiver: receiver, Rules: w.Rules})
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
		if u, err := url.Parse(w.URL); err != nil || u.User != nil {
			r.at(in("url"), "it is no URL, or has a password, which would be shown")
			return nil
		}
		secret, ok := r.secret(in("secret"), w.Secret)
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
		password, ok := "", true
		if w.User != "" || w.Password != "" {
			password, ok = r.secret(in("password"), w.Password)
		}
		if w.Host == "" {
			r.at(at, "host is not set: it is the server that takes mail")
			return nil
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

func (r *reader) secret(path []string, ref job.SecretRef) (string, bool) {
	if ref == "" {
		r.at(path, "it is not set: write secret://NAME")
		return "", false
	}
	value, err := r.resolve(ref)
	if err != nil {
		// The error names the reference, unless it is none: that may be a secret.
		r.at(path, "%s", strings.ReplaceAll(err.Error(), "on this worker", "here"))
		return "", false
	}
	return value, true
}
