package workers

import (
	"log/slog"
	"sync"
	"time"
)

// skewTolerance is by how much the clock of this machine may differ from
// Temporal's before it counts as wrong.
const skewTolerance = 5 * time.Second

// skew compares the time of day of this machine with Temporal's. Nothing that the
// host does goes by it: how long a run may take and when it is lost go by a
// [clock]. But what a handler takes for the present time may be wrong, and the
// times in the logs are.
type skew struct {
	logger *slog.Logger

	mu    sync.Mutex
	ahead time.Duration // 0 within the tolerance
}

// observe takes the time of day that Temporal gave an answer which has just
// arrived, and how long ago it was asked for. Temporal's time was then between the
// two, so that long calls say less; an answer that leaves open whether the clocks
// agree changes nothing.
func (s *skew) observe(stamp time.Time, took time.Duration) {
	most := time.Since(stamp) // The stamp has no monotonic part: by the time of day.
	least := most - took
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case least > skewTolerance || most < -skewTolerance:
		if change := most - s.ahead; change.Abs() > skewTolerance {
			s.logger.Error("the clock of this machine does not agree with Temporal's; runs are not affected, times in logs are wrong",
				"ahead", most.Round(time.Second))
			s.ahead = most
		}
	case least >= -skewTolerance && most <= skewTolerance && s.ahead != 0:
		s.logger.Info("the clock of this machine agrees with Temporal's again")
		s.ahead = 0
	}
}

// known is by how much this machine's clock is ahead of Temporal's, negative if it
// is behind, 0 if the two agree.
func (s *skew) known() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead.Round(time.Second)
}
