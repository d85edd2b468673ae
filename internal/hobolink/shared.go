package hobolink

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Ledger is a store of small values that all processes which use a token share.
// pipeline.Rates is one.
type Ledger interface {
	// Load reads the value of a key and its revision: nil and 0 if there is none.
	Load(ctx context.Context, key string) (value []byte, revision uint64, err error)
	// Store writes the value of a key that was read with a revision. It reports
	// false, and writes nothing, if the key has another revision by now.
	Store(ctx context.Context, key string, value []byte, revision uint64) (stored bool, err error)
	// Now is the time on a clock that all processes share.
	Now(ctx context.Context) (time.Time, error)
}

// ledgerKey names a token without telling it.
func ledgerKey(host, token string) string {
	digest := sha256.Sum256([]byte(host + "\x00" + token))
	return "hobolink." + base64.RawURLEncoding.EncodeToString(digest[:])
}

// sharedWindow is where the requests of a token are noted.
type sharedWindow struct {
	ledger Ledger
	key    string
}

// noted is the value in the ledger. Times are milliseconds since 1970 on the
// ledger's clock.
type noted struct {
	Limit        int   `json:"limit"`
	Window       int64 `json:"window_ms"`
	BlockedUntil int64 `json:"blocked_until,omitempty"`
	// Requests are when requests were admitted, ascending, for as long as they count.
	Requests []int64 `json:"requests"`
}

const (
	// minSlack is the least by which a request counts longer than the vendor's window:
	// it does not reach the vendor at the moment at which it is admitted here, and
	// clocks are read with an error. Else it is a sixtieth of the window.
	minSlack = 250 * time.Millisecond
	// maxNoted bounds the value; a higher limit is kept to by headers alone.
	maxNoted = 2000
	// ledgerTries is how often a value is written that others write as well.
	ledgerTries = 100
	// longestBlock is the longest wait that a refusal can ask for.
	longestBlock = time.Hour
)

var errContended = errors.New("the ledger is written by too many at once")

// slack is how much longer than the window a request counts.
func (n *noted) slack() time.Duration {
	return max(minSlack, time.Duration(n.Window)*time.Millisecond/60)
}

// admit notes a request, or says how long to wait for that. It reports whether the
// value has changed.
func (n *noted) admit(now int64) (wait time.Duration, changed bool) {
	changed = n.tidy(now)
	if now < n.BlockedUntil {
		return time.Duration(n.BlockedUntil-now) * time.Millisecond, changed
	}
	if limit := min(n.Limit, maxNoted); len(n.Requests) >= limit {
		free := n.Requests[len(n.Requests)-limit] + n.Window + n.slack().Milliseconds()
		return time.Duration(max(free-now, 1)) * time.Millisecond, changed
	}
	n.Requests = append(n.Requests, now)
	return 0, true
}

// tidy removes what counts no more, and brings back what lies ahead: the ledger's
// clock was set back, and nobody could wait for it.
func (n *noted) tidy(now int64) (changed bool) {
	before := len(n.Requests)
	n.Requests = slices.DeleteFunc(n.Requests, func(at int64) bool { return at+n.Window+n.slack().Milliseconds() <= now })
	changed = len(n.Requests) != before
	for i, at := range n.Requests {
		if at > now+minSlack.Milliseconds() {
			n.Requests[i], changed = now, true
		}
	}
	if latest := now + longestBlock.Milliseconds(); n.BlockedUntil > latest {
		n.BlockedUntil, changed = latest, true
	}
	return changed
}

// update changes the value in the ledger by change, which reports whether it did.
// It may be called several times; what counts is the last time.
func (s *sharedWindow) update(ctx context.Context, change func(n *noted, now int64) bool) error {
	for range ledgerTries {
		text, revision, err := s.ledger.Load(ctx, s.key)
		if err != nil {
			return err
		}
		now, err := s.ledger.Now(ctx)
		if err != nil {
			return err
		}
		var n noted
		if len(text) > 0 && json.Unmarshal(text, &n) != nil {
			n = noted{} // what cannot be read says nothing
		}
		if !change(&n, now.UnixMilli()) {
			return nil
		}
		if text, err = json.Marshal(n); err != nil {
			return err
		}
		stored, err := s.ledger.Store(ctx, s.key, text, revision)
		if stored || err != nil {
			return err
		}
	}
	return errContended
}

// reserve has a request admitted by the ledger, where the requests of all processes
// are: no more than the limit in any span of a window's length and a little more.
// It returns 0 if the request may be made, and else how long to wait. If the ledger
// cannot be reached, the process keeps to half of the limit by itself; the vendor's
// count of what remains, in every answer, is that of all processes.
func (l *limiter) reserve(ctx context.Context, shared *sharedWindow) time.Duration {
	l.reserving.Lock()
	defer l.reserving.Unlock()
	if wait := time.Until(l.fullUntil); wait > 0 {
		return wait // others of this process have asked
	}
	var wait, slack time.Duration
	var began time.Time
	err := shared.update(ctx, func(n *noted, now int64) bool {
		began = time.Now()
		l.adopt(n)
		added := l.note(n, now)
		slack = n.slack()
		var changed bool
		wait, changed = n.admit(now)
		return changed || added
	})
	if ctx.Err() != nil {
		return 0 // there will be no request
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.alone = err != nil; l.alone {
		if l.limit-l.remaining > l.half() {
			return max(time.Millisecond, l.resetAt.Sub(now))
		}
		l.unnoted = append(l.unnoted, now)
		return 0
	}
	l.unnoted = nil
	if wait > 0 {
		l.fullUntil = now.Add(wait)
		return wait
	}
	if now.Sub(began) > slack {
		return time.Millisecond // so late that it would be counted in the next window: ask again
	}
	return 0
}

// adopt makes the ledger and this process agree on the limit: on what an answer has
// said, else on what stands in the ledger.
func (l *limiter) adopt(n *noted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.told || n.Limit < 1 || n.Window < 1:
		n.Limit, n.Window = l.limit, l.window.Milliseconds()
	case n.Limit != l.limit || n.Window != l.window.Milliseconds():
		l.remaining += n.Limit - l.limit
		l.limit, l.window = n.Limit, time.Duration(n.Window)*time.Millisecond
	}
}

// note adds the requests that were made while the ledger could not be reached, and
// reports whether there were any.
func (l *limiter) note(n *noted, now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.unnoted {
		n.Requests = append(n.Requests, now-time.Since(at).Milliseconds())
	}
	slices.Sort(n.Requests)
	return len(l.unnoted) > 0
}

// blockAll tells the other processes of a refusal. If that fails, their own
// refusals tell them.
func (l *limiter) blockAll(ctx context.Context, shared *sharedWindow, wait time.Duration) {
	_ = shared.update(ctx, func(n *noted, now int64) bool {
		l.adopt(n)
		until := now + wait.Milliseconds()
		if until <= n.BlockedUntil {
			return false
		}
		n.BlockedUntil = until
		return true
	})
}
