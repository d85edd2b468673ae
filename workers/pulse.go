package workers

import (
	"context"
	"sync"
	"time"
)

// How often a process feels its own pulse, and how long a gap is a pause of the
// whole process: a suspended machine, a stopped container, a debugger.
const (
	pulseInterval = 100 * time.Millisecond
	longestGap    = time.Second
	// aftermath is how long after a pause work may come in that was meant for the
	// process before it.
	aftermath = 10 * time.Second
)

// pulse notices that the whole process did not run for a while. Work that was
// sent to it meanwhile lies in its connections, and is stale.
type pulse struct {
	mu     sync.Mutex
	felt   time.Time
	paused time.Time // the end of the last pause
}

func newPulse() *pulse { return &pulse{felt: time.Now()} }

// beat feels the pulse until ctx ends.
func (p *pulse) beat(ctx context.Context) {
	tick := time.NewTicker(pulseInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.feel()
		case <-ctx.Done():
			return
		}
	}
}

// feel notes the time, and a gap. It may be called at any time.
func (p *pulse) feel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.felt) > longestGap {
		p.paused = now
	}
	p.felt = now
}

// pausedLately says that work which comes in now may be older than it seems.
func (p *pulse) pausedLately() bool {
	p.feel()
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.paused.IsZero() && time.Since(p.paused) < aftermath
}
