package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/dendrascience/dendra-jobs/job"
)

// choice is the value of a flag that is one of a few words.
type choice[T ~string] struct {
	value *T
	valid []T
}

func choose[T ~string](value *T, valid ...T) pflag.Value { return &choice[T]{value, valid} }

// String implements pflag.Value.
func (c *choice[T]) String() string { return string(*c.value) }

// Type implements pflag.Value.
func (c *choice[T]) Type() string { return "WORD" }

// Set implements pflag.Value.
func (c *choice[T]) Set(text string) error {
	if !slices.Contains(c.valid, T(text)) {
		return fmt.Errorf("it is one of %s", strings.Join(words(c.valid), ", "))
	}
	*c.value = T(text)
	return nil
}

func words[T ~string](list []T) []string {
	texts := make([]string, len(list))
	for n, word := range list {
		texts[n] = string(word)
	}
	return texts
}

// nameValue is the value of a flag that takes a name. An empty name is refused: a filter
// without a value would match everything.
type nameValue struct{ value *string }

// String implements pflag.Value.
func (n nameValue) String() string { return *n.value }

// Type implements pflag.Value.
func (nameValue) Type() string { return "NAME" }

// Set implements pflag.Value.
func (n nameValue) Set(text string) error {
	err := checkNameText(text)
	if err == nil {
		*n.value = text
	}
	return err
}

// textValue is the value of a flag that takes a text which is checked where it is used.
// An empty text is refused: a script with an unset variable would silently get the
// default, such as the server of this machine.
type textValue struct {
	value *string
	what  string // in upper case, for the help
}

// String implements pflag.Value.
func (t textValue) String() string { return *t.value }

// Type implements pflag.Value.
func (t textValue) Type() string { return t.what }

// Set implements pflag.Value.
func (t textValue) Set(text string) error {
	if text == "" {
		return errEmpty
	}
	*t.value = text
	return nil
}

// durationValue is the value of a flag that takes what job.ParseDuration reads.
type durationValue struct{ value *job.Duration }

func durationOf(value *job.Duration) pflag.Value { return durationValue{value} }

// String implements pflag.Value.
func (d durationValue) String() string {
	if *d.value == 0 {
		return ""
	}
	return d.value.String()
}

// Type implements pflag.Value.
func (durationValue) Type() string { return "DURATION" }

// Set implements pflag.Value.
func (d durationValue) Set(text string) error {
	parsed, err := job.ParseDuration(text)
	if err == nil && parsed == 0 {
		err = fmt.Errorf("%s is not longer than zero", text)
	}
	if err == nil {
		*d.value = parsed
	}
	return err
}

// ownerValue is the value of a flag that takes what job.ParseOwner reads.
type ownerValue struct{ value *job.Owner }

// String implements pflag.Value.
func (o ownerValue) String() string { return o.value.String() }

// Type implements pflag.Value.
func (ownerValue) Type() string { return "KIND:NAME" }

// Set implements pflag.Value.
func (o ownerValue) Set(text string) error {
	parsed, err := job.ParseOwner(text)
	if err == nil {
		*o.value = parsed
	}
	return err
}

// sinceValue is the value of a flag that takes a time, or a duration before now.
type sinceValue struct {
	value *time.Time
	now   func() time.Time
}

// String implements pflag.Value.
func (s sinceValue) String() string {
	if s.value.IsZero() {
		return ""
	}
	return s.value.Format(time.RFC3339)
}

// Type implements pflag.Value.
func (sinceValue) Type() string { return "TIME" }

// Set implements pflag.Value.
func (s sinceValue) Set(text string) error {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		*s.value = at
		return nil
	}
	ago, err := job.ParseDuration(text)
	if err != nil {
		return errors.New("it is neither a time such as 2026-05-01T12:00:00Z nor a duration, counted back from now: " + job.DurationForms)
	}
	*s.value = s.now().Add(-ago.Std())
	return nil
}
