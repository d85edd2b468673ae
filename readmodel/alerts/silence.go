package alerts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Silence keeps the watchdog from telling about alerts.
type Silence struct {
	Name string `json:"name"`
	// Rule is the word of a rule; "" fits every rule.
	Rule string `json:"rule,omitempty"`
	// Object is an object, or the begin of one and a star; "" fits every object.
	Object  string    `json:"object,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Creator string    `json:"creator,omitempty"`
	Created time.Time `json:"created"`
	End     time.Time `json:"end"`
}

// Fits reports whether the silence holds for an alert at a time.
func (s Silence) Fits(rule, object string, now time.Time) bool {
	if !now.Before(s.End) || s.Rule != "" && s.Rule != rule {
		return false
	}
	return s.Object == "" || Match(s.Object, object)
}

// Match reports whether a pattern fits a name: it is the name, or the begin of it and a star.
func Match(pattern, name string) bool {
	prefix, star := strings.CutSuffix(pattern, "*")
	return star && strings.HasPrefix(name, prefix) || pattern == name
}

// Find gives the silence that fits an alert, the one that ends last.
func Find(silences []Silence, rule, object string, now time.Time) (Silence, bool) {
	var found Silence
	for _, s := range silences {
		if s.Fits(rule, object, now) && s.End.After(found.End) {
			found = s
		}
	}
	return found, found.Name != ""
}

var silenceName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// MaxSilences is how many silences there may be at once. Two that are made at the same moment may
// exceed it by one.
const MaxSilences = 100

// ErrTooMany means that there are already [MaxSilences].
var ErrTooMany = fmt.Errorf("there are already %d silences: end one first", MaxSilences)

// CreateSilence stores a silence. It fails with [ErrTooMany] when there is no room for it.
func (b *Bucket) CreateSilence(ctx context.Context, s Silence) error {
	switch list, err := b.Silences(ctx, s.Created); {
	case err != nil:
		return err
	case len(list) >= MaxSilences:
		return ErrTooMany
	}
	kv, err := b.open(ctx)
	if err != nil {
		return err
	}
	value, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("silence %s: %w", s.Name, err)
	}
	_, err = kv.Create(ctx, silencePrefix+s.Name, value)
	return b.explain("write to", err)
}

// Silences are those that have not ended, the one that ends first the first. Those that
// ended a day ago are removed.
func (b *Bucket) Silences(ctx context.Context, now time.Time) ([]Silence, error) {
	state, err := b.Read(ctx)
	if err != nil {
		return nil, err
	}
	const kept = 24 * time.Hour
	var list []Silence
	for _, s := range state.Silences {
		switch {
		case now.Before(s.End):
			list = append(list, s)
		case now.Sub(s.End) > kept:
			if err := b.DeleteSilence(ctx, s.Name); err != nil && !errors.Is(err, ErrNotFound) {
				return nil, err
			}
		}
	}
	slices.SortFunc(list, func(x, y Silence) int { return cmp.Or(x.End.Compare(y.End), strings.Compare(x.Name, y.Name)) })
	return list, nil
}

// DeleteSilence removes a silence.
func (b *Bucket) DeleteSilence(ctx context.Context, name string) error {
	kv, err := b.open(ctx)
	if err != nil {
		return err
	}
	if !silenceName.MatchString(name) {
		return fmt.Errorf("silence %q: %w", name, ErrNotFound)
	}
	entry, err := kv.Get(ctx, silencePrefix+name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return fmt.Errorf("silence %q: %w", name, ErrNotFound)
	}
	if err != nil {
		return b.failed("read", err)
	}
	err = b.explain("delete from", kv.Purge(ctx, silencePrefix+name, jetstream.LastRevision(entry.Revision())))
	if errors.Is(err, ErrChanged) {
		return nil // Someone else has removed it.
	}
	return err
}
