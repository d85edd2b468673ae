package readmodel

import (
	"context"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// loopState is what a continuous job has answered.
type loopState struct {
	asked       time.Time
	read        bool // it was asked, and has answered or not
	iterations  []iteration
	running     bool
	lastSuccess time.Time
	service     string // that iterations of a bound job go to
}

// iteration is one of a continuous job.
type iteration struct {
	number int64
	letter byte
	start  time.Time
	took   time.Duration
}

// take notes an answer.
func (l *loopState) take(state *contract.ContinuousState) {
	if n := len(l.iterations); n > 0 && l.iterations[n-1].number > state.Iterations {
		l.iterations = nil // It was started anew, and counts from the beginning.
	}
	last := int64(0)
	if n := len(l.iterations); n > 0 {
		last = l.iterations[n-1].number
	}
	for _, it := range state.Recent {
		if it.Number > last {
			run := client.IterationRun(state, it)
			l.iterations = append(l.iterations, iteration{it.Number, letters[run.Status], it.Start, run.Took.Std()})
		}
	}
	l.iterations = l.iterations[max(0, len(l.iterations)-maxOutcomes):]
	l.running, l.lastSuccess = state.Phase == contract.PhaseRunning, state.LastSuccess
	l.service = state.Binding.Service
}

// outcomes are the iterations that are known, how long each took, and the median of the completed ones. Under
// says that the job is under way.
func (l *loopState) outcomes(under bool) (text, durations string, median time.Duration) {
	var all []time.Duration
	for _, it := range l.iterations {
		if it.letter == completed {
			all = append(all, it.took)
		}
	}
	median = medianOf(all)
	var lane lane
	for _, it := range l.iterations {
		lane.add(it.letter, it.took, median)
	}
	if l.running && under {
		lane.add(running, 0, median)
	}
	text, durations = lane.latest()
	return text, durations, median
}

// loops reports whether the job is continuous, and can be asked.
func (j *jobState) loops() bool {
	return j.own != nil && j.own.Mode == job.ModeContinuous && j.active()
}

// nextLoop is the continuous job that was asked longest ago, "" if none is due.
func (s *state) nextLoop(now time.Time) string {
	best, at := "", now.Add(-askEvery)
	for id, j := range s.jobs {
		if j.loops() && j.loop.asked.Before(at) {
			best, at = id, j.loop.asked
		}
	}
	return best
}

// readLoop asks one continuous job for its iterations.
func (r *Reader) readLoop(ctx context.Context) error {
	r.mu.Lock()
	id := r.state.nextLoop(time.Now())
	live := r.state.live()
	if id != "" {
		r.state.jobs[id].loop.asked = time.Now()
	}
	r.mu.Unlock()
	if id == "" || !live {
		return nil
	}
	state, err := r.client.Jobs.LoopState(ctx, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.state.jobs[id]
	if j == nil {
		return err
	}
	first := !j.loop.read
	if j.loop.read = true; err != nil {
		return fmt.Errorf("continuous job %s: %w", id, err)
	}
	j.loop.take(state)
	if j.message = nil; first {
		return errMore
	}
	return nil
}
