package load

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const (
	// openAfter is how many failures in a row open a breaker.
	openAfter = 5
	// limitsWait is how long a full server is left alone.
	limitsWait = time.Minute
	// maxReason bounds what is told of a failure.
	maxReason = 1024
)

// backoff is how long a mirror is left alone after its n-th failure in a row:
// anything up to first·2ⁿ⁻¹, or most if that is less.
type backoff struct{ first, most time.Duration }

func (b backoff) wait(n int) time.Duration {
	longest := b.most
	if n < 20 { // what is shifted further is beyond any limit
		longest = min(longest, b.first<<(n-1))
	}
	return max(b.first/5, rand.N(longest))
}

// fail notes a failure in the state of a breaker, and reports whether that opened
// it: after five in a row, or at once when another try can do no good before
// someone has mended something or the server wants to be asked again.
func fail(state *pipeline.Breaker, b backoff, now time.Time, err error, held *pipeline.HeldMessage) (opened bool) {
	wasClosed := state.State == pipeline.BreakerClosed
	state.Failures++
	state.FailedAt = now
	wait := b.wait(state.Failures)
	state.Held = held
	state.Class, state.Reason = errclass.InfluxUnreachable, job.Cut(err.Error(), maxReason)
	atOnce := false
	var failed *influx.Error
	if errors.As(err, &failed) {
		switch failed.Kind {
		case influx.KindTransient, influx.KindTooBig:
		case influx.KindLimits:
			state.Class, atOnce = errclass.InfluxLimits, true
			wait = max(wait, limitsWait)
		default:
			state.Class, atOnce = errclass.InfluxConfig, true
		}
		if failed.RetryAfter > 0 {
			// Somewhat later, and not all at the same moment, with room for the way there
			// within a tenth.
			atOnce = true
			wait = max(wait, failed.RetryAfter+rand.N(failed.RetryAfter/20+1))
		}
	}
	state.RetryAt = now.Add(wait)
	if wasClosed && (atOnce || state.Failures >= openAfter) {
		state.State, state.Since = pipeline.BreakerOpen, now
		return true
	}
	if !wasClosed {
		state.State = pipeline.BreakerOpen
	}
	return false
}

// succeed notes that a batch is stored, and reports whether that closed the breaker.
func succeed(state *pipeline.Breaker, now time.Time) (closed bool) {
	closed = state.State != pipeline.BreakerClosed
	since := state.Since
	if closed {
		since = now
	}
	*state = pipeline.Breaker{State: pipeline.BreakerClosed, Since: since}
	return closed
}
