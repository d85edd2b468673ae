package ldmp

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Order says in which order the server sends the records of a table.
type Order string

// The orders.
const (
	// LoggedWithHoles is the order of logging. While a record is missing that may
	// still be collected, the server sends nothing more of the table.
	LoggedWithHoles Order = "logged-with-holes"
	// Collected is the order of collection: what was missing comes later.
	Collected Order = "collected"
)

// Start says with which record of a table the server begins.
type Start struct {
	option  string
	clock   time.Time
	seconds int64
}

// The options of a [Start], as the protocol names them.
const (
	StartAtOldest         = "at-oldest"
	StartAtNewest         = "at-newest"
	StartAtTime           = "at-time"
	StartRelativeToNewest = "relative-to-newest"
)

// AtOldest begins with the oldest record that the server has.
func AtOldest() Start { return Start{option: StartAtOldest} }

// AtNewest begins with the newest record that the server has.
func AtNewest() Start { return Start{option: StartAtNewest} }

// AtTime begins with the first record at or after a reading of the logger's
// clock, given as if it were UTC. It is cut to hundredths of a second.
func AtTime(clock time.Time) Start { return Start{option: StartAtTime, clock: clock.UTC()} }

// RelativeToNewest begins a while before the newest record, in whole seconds.
func RelativeToNewest(back time.Duration) Start {
	return Start{option: StartRelativeToNewest, seconds: int64(back / time.Second)}
}

// atTimeLayout is the form of times in a specification.
const atTimeLayout = "2006 01 02 15:04:05.00"

// String writes the value of --start-option.
func (s Start) String() string {
	switch s.option {
	case StartAtTime:
		// Formatting cuts the fraction, so that the record at this time is included.
		return "{" + StartAtTime + " {" + s.clock.Format(atTimeLayout) + "}}"
	case StartRelativeToNewest:
		return fmt.Sprintf("{%s %d}", StartRelativeToNewest, s.seconds)
	case "":
		return StartAtOldest
	}
	return s.option
}

// Group asks for one table of a station.
type Group struct {
	Station string
	Table   string
	// Order defaults to [LoggedWithHoles].
	Order Order
	// Start defaults to [AtOldest].
	Start Start
}

// CheckName reports why a name of a station or table cannot be in a
// specification: how the server quotes is not known, so that spaces, braces,
// quotes and the like are refused. What names the name: "station".
func CheckName(what, name string) error {
	if name == "" {
		return fmt.Errorf("%s has no name", what)
	}
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, `{}[]"';\$`) || strings.ContainsFunc(name, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
	}) {
		return fmt.Errorf("%s %.80q: the protocol has no way to write spaces, control characters or any of {}[]\"';\\$ in a name", what, name)
	}
	return nil
}

// FormatSpec writes the specification of a client, with its carriage return.
func FormatSpec(groups []Group) ([]byte, error) {
	if len(groups) == 0 {
		return nil, errors.New("a specification without tables")
	}
	var b strings.Builder
	b.WriteString("--output-format=xml ")
	for _, g := range groups {
		if err := errors.Join(CheckName("station", g.Station), CheckName("table", g.Table)); err != nil {
			return nil, err
		}
		order := g.Order
		if order == "" {
			order = LoggedWithHoles
		}
		fmt.Fprintf(&b, "{%s %s --order-option=%s --start-option=%s} ", g.Station, g.Table, order, g.Start)
	}
	b.WriteString(";\r")
	return []byte(b.String()), nil
}
