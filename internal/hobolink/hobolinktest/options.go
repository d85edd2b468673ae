package hobolinktest

import "time"

// Options set up a [Handler]. The zero value is complete.
type Options struct {
	// Interval is the time between two readings of a logger, counted from the
	// Unix epoch. Defaults to 5 minutes.
	Interval time.Duration
	// Loggers are the serial numbers that the account has. Defaults to
	// [DefaultLoggers].
	Loggers []string
	// MaxResults is the most observations in one answer; an answer that would
	// have more is cut, oldest first kept, and marked max_results. Defaults to
	// 100,000.
	MaxResults int
	// Now is the clock of the loggers: there is no reading after it. Defaults
	// to time.Now.
	Now func() time.Time
	// RateLimit is the number of requests in a RateWindow. Defaults to 60.
	RateLimit int
	// RateWindow is the length of a rate limit window, by the wall clock and
	// not by Now. Defaults to 60 seconds.
	RateWindow time.Duration
	// Seed chooses the weather.
	Seed uint64
	// Token is the API token that requests must carry. Defaults to
	// [DefaultToken].
	Token string
}

// DefaultToken is the API token of a handler that is given none.
const DefaultToken = "hobolink-dev-token"

// Since is the time of the first reading of every logger.
var Since = time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)

// DefaultLoggers are the serial numbers of a handler that is given none.
func DefaultLoggers() []string { return []string{"21234001", "21234002"} }

func (o Options) withDefaults() Options {
	if o.Interval <= 0 {
		o.Interval = 5 * time.Minute
	}
	if len(o.Loggers) == 0 {
		o.Loggers = DefaultLoggers()
	}
	if o.MaxResults <= 0 {
		o.MaxResults = 100_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.RateLimit <= 0 {
		o.RateLimit = 60
	}
	if o.RateWindow <= 0 {
		o.RateWindow = time.Minute
	}
	if o.Token == "" {
		o.Token = DefaultToken
	}
	return o
}
