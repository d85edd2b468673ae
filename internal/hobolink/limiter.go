package hobolink

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The vendor's rate limit until an answer says otherwise.
const (
	defaultLimit  = 60
	defaultWindow = time.Minute
)

// limiters holds the limiter of every token that the process uses, so that jobs
// which share a token share its rate. Tokens are kept as digests.
var limiters = struct {
	sync.Mutex
	byToken map[[sha256.Size]byte]*limiter
}{byToken: map[[sha256.Size]byte]*limiter{}}

func limiterOf(host, token string) *limiter {
	key := sha256.Sum256([]byte(host + "\x00" + token))
	limiters.Lock()
	defer limiters.Unlock()
	l, found := limiters.byToken[key]
	if !found {
		l = &limiter{limit: defaultLimit, window: defaultWindow}
		limiters.byToken[key] = l
	}
	return l
}

// limiter admits as many requests in a window as the server does. It counts by
// itself, and corrects its count by the headers of every answer. With a ledger it
// also has each request admitted there, see reserve.
type limiter struct {
	mu           sync.Mutex
	limit        int
	window       time.Duration
	told         bool // limit and window are what an answer said
	remaining    int
	resetAt      time.Time
	inFlight     int
	blockedUntil time.Time   // after a refusal, whatever the count says
	alone        bool        // the ledger cannot be reached
	unnoted      []time.Time // requests that the ledger does not know of

	reserving sync.Mutex // one request at a time asks the ledger
	fullUntil time.Time  // what the ledger said last
}

// wait blocks until the server would admit a request, and counts it. Each wait
// must be followed by a done.
func (l *limiter) wait(ctx context.Context, shared *sharedWindow) error {
	for {
		wait := l.take(time.Now())
		if wait <= 0 && shared != nil {
			if wait = l.reserve(ctx, shared); wait > 0 {
				l.giveBack()
			}
		}
		if wait <= 0 {
			return nil
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// take counts a request and returns 0, or says how long to wait.
func (l *limiter) take(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.blockedUntil) {
		return l.blockedUntil.Sub(now)
	}
	if !now.Before(l.resetAt) {
		// Requests under way are counted by the server in either window.
		l.remaining, l.resetAt = max(1, l.limit-l.inFlight), now.Add(l.window)
	}
	if l.remaining <= 0 || (l.alone && l.limit-l.remaining >= l.half()) {
		return l.resetAt.Sub(now)
	}
	l.remaining--
	l.inFlight++
	return 0
}

// half is what a process allows itself that cannot hear of the others.
func (l *limiter) half() int { return max(1, l.limit/2) }

// giveBack takes back what take has counted: there will be no request.
func (l *limiter) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	l.remaining = min(l.remaining+1, l.limit)
}

// done ends a request with the headers of its answer, or nil.
func (l *limiter) done(header http.Header) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	remaining, err := strconv.Atoi(header.Get("RateLimit-Remaining"))
	if err != nil || remaining < 0 {
		return
	}
	reset, err := strconv.ParseUint(header.Get("RateLimit-Reset"), 10, 31)
	if err != nil {
		return
	}
	if limit, window, ok := parsePolicy(header.Get("RateLimit-Policy")); ok {
		l.remaining += limit - l.limit // the window was counted down from another limit
		l.limit, l.window, l.told = limit, window, true
	}
	resetAt := time.Now().Add(min(time.Duration(reset)*time.Second, time.Hour))
	switch shift := resetAt.Sub(l.resetAt); {
	case shift > l.window/2:
		// The server has begun a window that was not counted here.
		l.resetAt, l.remaining = resetAt, max(0, remaining-l.inFlight)
	case shift > -l.window/2:
		// The same window. Answers overtake each other, so the count only falls.
		l.resetAt, l.remaining = resetAt, min(l.remaining, remaining)
	}
	// Else it is an answer from a window that is over.
}

// block admits nothing before the wait is over, and tells the other processes.
func (l *limiter) block(ctx context.Context, wait time.Duration, shared *sharedWindow) {
	if wait <= 0 {
		wait = time.Second // a refusal without a hint
	}
	l.mu.Lock()
	if until := time.Now().Add(wait); until.After(l.blockedUntil) {
		l.blockedUntil = until
	}
	l.mu.Unlock()
	if shared != nil {
		l.blockAll(ctx, shared, wait)
	}
}

// parsePolicy reads "60;w=60": requests, and seconds of a window.
func parsePolicy(text string) (limit int, window time.Duration, ok bool) {
	count, rest, found := strings.Cut(text, ";")
	seconds, isWindow := strings.CutPrefix(strings.TrimSpace(rest), "w=")
	if !found || !isWindow {
		return 0, 0, false
	}
	limit, err := strconv.Atoi(strings.TrimSpace(count))
	if err != nil || limit < 1 {
		return 0, 0, false
	}
	length, err := strconv.ParseUint(seconds, 10, 16)
	if err != nil || length < 1 {
		return 0, 0, false
	}
	return limit, time.Duration(length) * time.Second, true
}
