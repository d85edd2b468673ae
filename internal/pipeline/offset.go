package pipeline

import (
	"fmt"
	"regexp"
	"time"
)

// UTCOffset is how far a clock is ahead of UTC, as +HH:MM or -HH:MM: -08:00 in
// California, in winter and on loggers all year.
type UTCOffset string

var offsetPattern = regexp.MustCompile(`^[+-](0\d|1[0-4]):[0-5]\d$`)

// Check reports a text that is no offset, or one beyond what clocks on Earth show.
func (o UTCOffset) Check() error {
	if !offsetPattern.MatchString(string(o)) {
		return fmt.Errorf("UTC offset %.40q is not of the form +HH:MM or -HH:MM, up to 14 hours", string(o))
	}
	return nil
}

// Std is the offset as a duration, 0 if it does not pass Check.
func (o UTCOffset) Std() time.Duration {
	if o.Check() != nil {
		return 0
	}
	digit := func(i int) time.Duration { return time.Duration(o[i] - '0') }
	offset := (10*digit(1)+digit(2))*time.Hour + (10*digit(4)+digit(5))*time.Minute
	if o[0] == '-' {
		return -offset
	}
	return offset
}
