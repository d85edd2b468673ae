package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
)

// sideLoad puts an item a second into another queue.
type sideLoad struct {
	bench  *queueBench
	cancel context.CancelFunc
	done   chan struct{}
	called map[string]time.Time // when, by job id
	delays sideDelays
	err    error
}

// sideDelays are how long items took from the call on.
type sideDelays struct {
	answered, began []time.Duration
}

// aloneFor is how long the other queue is timed while the deep one rests.
const aloneFor = 30 * time.Second

// sideAlone times items in the other queue while the deep one rests: what the
// machine itself takes.
func (b *queueBench) sideAlone(ctx context.Context) error {
	side := b.startSide(ctx, "alone")
	err := sleepUntil(ctx, time.Now().Add(aloneFor))
	delays, failed := side.stop(ctx, b.ledger)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	b.foundDelays("while this one rests", delays)
	return nil
}

func (b *queueBench) foundDelays(when string, delays sideDelays) {
	b.found("an item a second in another queue "+when+": taken after", "%s", spread(delays.answered))
	b.found("… its handler began after (aim: 1 s at most)", "%s", spread(delays.began))
}

func (b *queueBench) startSide(ctx context.Context, which string) *sideLoad {
	ctx, cancel := context.WithCancel(ctx)
	s := &sideLoad{bench: b, cancel: cancel, done: make(chan struct{}), called: map[string]time.Time{}}
	go func() {
		defer close(s.done)
		s.run(ctx, which)
	}()
	return s
}

func (s *sideLoad) run(ctx context.Context, which string) {
	for n := 0; ; n++ {
		next := time.Now().Add(time.Second)
		j := queuedJob(sideQueue, fmt.Sprintf("%s-%s-%05d", sideQueue, which, n))
		began := time.Now()
		// Not ended by the context: an item that was put in has to be looked at.
		if _, err := s.bench.jobs.Queues.Enqueue(context.WithoutCancel(ctx), j, client.EnqueueOptions{}); err != nil {
			s.err = fmt.Errorf("put an item into queue %s: %w", sideQueue, err)
			return
		}
		s.called[j.ID] = began
		s.delays.answered = append(s.delays.answered, time.Since(began))
		if sleepUntil(ctx, next) != nil {
			return
		}
	}
}

// stop puts no more items in, waits until those that are in have run, and gives
// what their handlers noted.
func (s *sideLoad) stop(ctx context.Context, book ledger) (sideDelays, error) {
	s.cancel()
	<-s.done
	if s.err != nil {
		return s.delays, s.err
	}
	deadline := time.Now().Add(time.Minute)
	for {
		lines, err := book.read(func(n noted) bool { return n.what == ledgerStart && !s.called[n.jobID].IsZero() })
		if err != nil {
			return s.delays, err
		}
		if len(lines) < len(s.called) && time.Now().Before(deadline) {
			if err := sleepUntil(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
				return s.delays, err
			}
			continue
		}
		if len(lines) != len(s.called) {
			return s.delays, fmt.Errorf("queue %s: %d of %d items have run", sideQueue, len(lines), len(s.called))
		}
		for _, line := range lines {
			s.delays.began = append(s.delays.began, line.at.Sub(s.called[line.jobID]))
		}
		return s.delays, nil
	}
}
