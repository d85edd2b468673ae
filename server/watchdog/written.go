package watchdog

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
)

// written is the form of the file. Its tags say what stands in docs/reference.md: help what
// a key means, default what holds without it, and name what stands for the names in a table.
type written struct {
	RepeatEvery job.Duration               `toml:"repeat_every" default:"never" help:"when an alert that still fires is told again, at least PT1M"`
	GroupWait   *job.Duration              `toml:"group_wait" default:"PT10S" help:"how long a message waits for further alerts, at most PT10M; PT0S: each alert has a message"`
	Heartbeat   *writtenHeartbeat          `toml:"heartbeat"`
	Limits      writtenLimits              `toml:"limits"`
	Stations    map[string]writtenStation  `toml:"stations" name:"JOB_ID/SOURCE"`
	Rules       map[string]writtenRule     `toml:"rules" name:"RULE"`
	Receivers   map[string]writtenReceiver `toml:"receivers" name:"NAME"`
}

type writtenHeartbeat struct {
	URL     string       `toml:"url" help:"what each replica calls while all is well; may be secret://NAME"`
	FailURL string       `toml:"fail_url" help:"what it calls once something was not well for as long as every; may be secret://NAME"`
	Every   job.Duration `toml:"every" default:"PT1M" help:"the time between two calls, at least PT1S"`
}

type writtenLimits struct {
	QueueAge   job.Duration `toml:"queue_age" default:"PT1H" help:"how long the oldest item of a queue may wait"`
	LoadAge    job.Duration `toml:"load_age" default:"PT15M" help:"how long the oldest message of a load may wait"`
	StationAge job.Duration `toml:"station_age" default:"P1D" help:"how long a station may send nothing"`
	Freshness  job.Duration `toml:"freshness" default:"no limit" help:"that of recurring and continuous jobs without their own"`
}

type writtenStation struct {
	Age writtenAge `toml:"age" help:"how long the station may send nothing, or never; a name may end with a star, and the longest that fits holds"`
}

type writtenRule struct {
	Off         bool          `toml:"off" default:"false" help:"alerts of the rule are not told"`
	Hold        *job.Duration `toml:"hold" default:"that of the rule" help:"how long an alert is on before it fires"`
	Clear       *job.Duration `toml:"clear" default:"PT1M" help:"how long it is gone before it clears, at least PT10S"`
	RepeatEvery *job.Duration `toml:"repeat_every" default:"that of the file" help:"when it is told again"`
	Severity    string        `toml:"severity" default:"that of the rule" help:"critical, warning or info"`
}

type writtenReceiver struct {
	Type       string        `toml:"type" help:"log, webhook or email"`
	Rules      []string      `toml:"rules" default:"all" help:"the rules whose alerts it gets"`
	Severities []string      `toml:"severities" default:"all" help:"the severities whose alerts it gets"`
	Owners     []string      `toml:"owners" default:"all" help:"the owners whose alerts it gets, as organization:NAME or user:NAME; \"\" for alerts without an owner"`
	URL        string        `toml:"url" help:"of a webhook"`
	Secret     job.SecretRef `toml:"secret" help:"of a webhook, as secret://NAME: whsec_ and base64"`
	Host       string        `toml:"host" help:"the server that takes mail"`
	Port       int           `toml:"port" default:"587, 465 with tls" help:"its port"`
	Security   string        `toml:"security" default:"starttls" help:"starttls, tls or none"`
	From       string        `toml:"from" help:"the sender of mail"`
	To         []string      `toml:"to" help:"who gets the mail"`
	User       string        `toml:"user" help:"who logs in at the server; by default nobody"`
	Password   job.SecretRef `toml:"password" help:"the user's, as secret://NAME"`
}

// writtenAge is a duration, or never.
type writtenAge struct {
	set      bool
	never    bool
	duration job.Duration
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *writtenAge) UnmarshalText(text []byte) error {
	if a.set = true; string(text) == "never" {
		a.never = true
		return nil
	}
	if err := a.duration.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or never", err)
	}
	return nil
}

// Key is one of the file.
type Key struct {
	// Name has capital letters for what the file names: receivers.NAME.url.
	Name string
	// Default is what holds without the key, "" if nothing does.
	Default string
	Meaning string
}

// Keys are all keys of the file.
func Keys() []Key { return keysOf("", reflect.TypeFor[written]()) }

func keysOf(prefix string, table reflect.Type) []Key {
	var keys []Key
	for n := range table.NumField() {
		field := table.Field(n)
		name, of := prefix+field.Tag.Get("toml"), field.Type
		if help := field.Tag.Get("help"); help != "" {
			keys = append(keys, Key{name, field.Tag.Get("default"), help})
			continue
		}
		if of.Kind() == reflect.Map {
			name += "." + quoted(field.Tag.Get("name"))
		}
		if of.Kind() == reflect.Map || of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		keys = append(keys, keysOf(name+".", of)...)
	}
	return keys
}

// quoted is a name as it stands in a file.
func quoted(name string) string {
	if strings.Contains(name, "/") {
		return `"` + name + `"`
	}
	return name
}
