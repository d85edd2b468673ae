package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sosodev/duration"
)

// Duration is a length of time. In text it reads ISO 8601 (PT15M, P1D), Go's
// form (15m) and plain seconds (900); it writes ISO 8601.
//
// Years and months are refused, since they have no fixed length; a day is 24
// hours and a week seven days. Negative durations and those beyond about 292
// years are refused. Fractions below a nanosecond are rounded.
type Duration time.Duration

// Std returns d as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// DurationForms ends every message about a text that is no duration.
const DurationForms = "write it as PT15M, 15m or 900 (seconds)"

// ParseDuration reads ISO 8601, Go's form or plain seconds.
func ParseDuration(text string) (Duration, error) {
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
		return 0, errors.New("a duration is empty: " + DurationForms)
	case strings.HasPrefix(trimmed, "-"):
		return 0, fmt.Errorf("duration %.60q is negative", text)
	case strings.HasPrefix(trimmed, "P"):
		return parseISODuration(trimmed)
	}
	// ParseFloat reads hexadecimal numbers too, which nobody means by a duration.
	if seconds, err := strconv.ParseFloat(trimmed, 64); err == nil && !strings.ContainsAny(trimmed, "xX") {
		return DurationOfSeconds(seconds)
	}
	d, err := time.ParseDuration(trimmed)
	if err != nil {
		return 0, fmt.Errorf("%.60q is not a duration: %s", text, DurationForms)
	}
	return Duration(d), nil
}

// DurationOfSeconds converts a count of seconds, fractions included.
func DurationOfSeconds(seconds float64) (Duration, error) {
	switch {
	case math.IsNaN(seconds) || math.IsInf(seconds, 0):
		return 0, fmt.Errorf("%v seconds is not a duration", seconds)
	case seconds < 0:
		return 0, fmt.Errorf("a duration of %v seconds is negative", seconds)
	case seconds >= math.MaxInt64/float64(time.Second):
		return 0, fmt.Errorf("a duration of %v seconds is longer than 292 years", seconds)
	}
	return Duration(math.Round(seconds * float64(time.Second))), nil
}

// isoPattern is the shape of an ISO 8601 duration. The parser takes units in
// any order and any number of times, and of a repeated unit only the last.
var isoPattern = regexp.MustCompile(`^P(?:[0-9.]+Y)?(?:[0-9.]+M)?(?:[0-9.]+W)?(?:[0-9.]+D)?(?:T(?:[0-9.]+H)?(?:[0-9.]+M)?(?:[0-9.]+S)?)?$`)

func parseISODuration(text string) (Duration, error) {
	parsed, err := duration.Parse(text)
	if err != nil || !isoPattern.MatchString(text) || strings.HasSuffix(text, "P") || strings.HasSuffix(text, "T") {
		return 0, fmt.Errorf("%.60q is not a duration: %s", text, DurationForms)
	}
	if parsed.Years != 0 || parsed.Months != 0 {
		return 0, fmt.Errorf("%.60q counts years or months, which have no fixed length: "+
			"write days or weeks, as in P30D", text)
	}
	const day = 24 * time.Hour
	var total time.Duration
	for _, part := range []struct {
		count float64
		unit  time.Duration
	}{
		{parsed.Weeks, 7 * day},
		{parsed.Days, day},
		{parsed.Hours, time.Hour},
		{parsed.Minutes, time.Minute},
		{parsed.Seconds, time.Second},
	} {
		// Part by part, so that what String writes is read back to the nanosecond.
		nanoseconds := math.Round(part.count * float64(part.unit))
		if nanoseconds >= math.MaxInt64 {
			return 0, tooLong(text)
		}
		total += time.Duration(nanoseconds)
		if total < 0 {
			return 0, tooLong(text)
		}
	}
	return Duration(total), nil
}

func tooLong(text string) error {
	return fmt.Errorf("duration %.60q is longer than 292 years", text)
}

// String writes ISO 8601 with days, hours, minutes and seconds: P1DT2H, PT0.5S.
func (d Duration) String() string {
	if d == 0 {
		return "PT0S"
	}
	rest := time.Duration(d)
	var b strings.Builder
	if rest < 0 {
		b.WriteByte('-')
		rest = -rest
	}
	b.WriteByte('P')
	if days := rest / (24 * time.Hour); days > 0 {
		fmt.Fprintf(&b, "%dD", days)
		rest -= days * 24 * time.Hour
	}
	if rest == 0 {
		return b.String()
	}
	b.WriteByte('T')
	if hours := rest / time.Hour; hours > 0 {
		fmt.Fprintf(&b, "%dH", hours)
		rest -= hours * time.Hour
	}
	if minutes := rest / time.Minute; minutes > 0 {
		fmt.Fprintf(&b, "%dM", minutes)
		rest -= minutes * time.Minute
	}
	if rest > 0 {
		whole, nanos := rest/time.Second, rest%time.Second
		if nanos == 0 {
			fmt.Fprintf(&b, "%dS", whole)
		} else {
			fmt.Fprintf(&b, "%d.%sS", whole, strings.TrimRight(fmt.Sprintf("%09d", nanos), "0"))
		}
	}
	return b.String()
}

// MarshalText writes ISO 8601.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what [ParseDuration] reads.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// UnmarshalJSON reads a string as [ParseDuration] does, or a number of seconds.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		return d.UnmarshalText([]byte(text))
	}
	var seconds float64
	if err := json.Unmarshal(data, &seconds); err != nil {
		return fmt.Errorf("%s is not a duration: %s", clip(data), DurationForms)
	}
	parsed, err := DurationOfSeconds(seconds)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// clip shortens a text that goes into an error.
func clip(text []byte) []byte {
	const most = 60
	if len(text) <= most {
		return text
	}
	return append(bytes.ToValidUTF8(text[:most:most], nil), "…"...)
}
