package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// deck has each kind of fault as often as it is drawn, before all are drawn again.
var deck = []fault{
	{ledger.FaultKill, false}, {ledger.FaultKill, false}, {ledger.FaultKill, false}, {ledger.FaultKill, false}, {ledger.FaultKill, false},
	{ledger.FaultTerm, false}, {ledger.FaultTerm, false}, {ledger.FaultTerm, false}, {ledger.FaultTerm, false},
	{ledger.FaultFreeze, false}, {ledger.FaultFreeze, false}, {ledger.FaultFreeze, false},
	{ledger.FaultKill, true}, {ledger.FaultKill, true},
	{ledger.FaultFreeze, true},
}

// fault is a signal to the stack or to a worker.
type fault struct {
	kind    string
	atStack bool
}

// Bounds of what faults last.
const (
	longestAbsence = 12 * time.Second // of a killed process
	longestFreeze  = 22 * time.Second // longer than the longest heartbeat timeout of the jobs
	stackStarts    = 3                // tries to start the stack, each bounded by stackTimeout
)

// breakThings sends signals until its context ends, and returns when all is at work again.
func (s *soak) breakThings(ctx context.Context) {
	random := s.random(streamFaults)
	var under sync.WaitGroup
	defer under.Wait()
	var stackBusy bool
	var mu sync.Mutex
	for {
		for _, n := range random.Perm(len(deck)) {
			if !wait(ctx, between(random, s.pace/3, s.pace*5/3)) {
				return
			}
			f, w := deck[n], s.workers[random.IntN(len(s.workers))]
			lasting := rand.New(rand.NewPCG(s.seed, random.Uint64()))
			mu.Lock()
			busy := &w.busy
			if f.atStack {
				busy = &stackBusy
			}
			free := !*busy
			*busy = true
			mu.Unlock()
			if !free {
				continue
			}
			under.Go(func() {
				if f.atStack {
					s.breakStack(ctx, f.kind, lasting)
				} else {
					s.breakWorker(ctx, w, f.kind, lasting)
				}
				mu.Lock()
				*busy = false
				mu.Unlock()
			})
		}
	}
}

func (s *soak) breakWorker(ctx context.Context, w *worker, kind string, random *rand.Rand) {
	if state := w.process.State(); state != "running" {
		s.trouble("worker %s had ended by itself: %s", w.id(), state)
	}
	noted := ledger.Fault{Kind: kind, Target: w.id(), From: ledger.Now()}
	s.say("%s of worker %s", kind, noted.Target)
	absence := between(random, 0, longestAbsence)
	switch kind {
	case ledger.FaultFreeze:
		s.thaw(ctx, w.process, between(random, time.Second, longestFreeze))
		noted.To = ledger.Now()
		s.write(s.faults, noted)
		return
	case ledger.FaultKill:
		w.process.Kill()
	case ledger.FaultTerm:
		if !w.process.Stop(stopGrace) {
			s.trouble("worker %s did not end within %s of SIGTERM", w.id(), stopGrace)
		}
	}
	noted.To = ledger.Now()
	s.write(s.faults, noted)
	wait(ctx, absence)
	if err := s.startWorker(w); err != nil {
		s.fail(err)
	}
}

func (s *soak) breakStack(ctx context.Context, kind string, random *rand.Rand) {
	noted := ledger.Fault{Kind: kind, Target: ledger.StackTarget, From: ledger.Now()}
	s.say("%s of the stack", kind)
	if kind == ledger.FaultFreeze {
		s.thaw(ctx, s.stack, between(random, time.Second, longestFreeze))
	} else {
		s.stack.Kill()
		wait(ctx, between(random, 0, longestAbsence))
		s.bringBack()
	}
	noted.To = ledger.Now()
	s.write(s.faults, noted)
}

// bringBack starts the stack again. That it takes several tries is a trouble; without
// it the soak ends.
func (s *soak) bringBack() {
	var all error
	for range stackStarts {
		err := s.startStack(s.ctx)
		if err == nil || s.ctx.Err() != nil {
			return
		}
		s.trouble("the stack did not come back: %s", err)
		all = errors.Join(all, err)
	}
	s.fail(all)
}
