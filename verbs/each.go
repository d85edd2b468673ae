package verbs

import (
	"context"
	"errors"
	"sync"
	"time"
)

// AtOnce is how many of many are worked on at the same time.
const AtOnce = 8

// breakOff is how long those that are under way may take once the others were broken off.
const breakOff = 10 * time.Second

// ErrNotDone is the error of those that were not begun before the context ended.
var ErrNotDone = errors.New("nothing was done: it was broken off before")

// Answer is what came of one of many.
type Answer struct {
	Done Done
	Err  error
}

// Each does a verb to n things, at most AtOnce at a time. After each it tells how many have
// ended, one call at a time; told may be nil. Once ctx ends, it begins no more of them: their
// error is ErrNotDone. Those that are under way then may end, so that it is known what was done.
func Each(ctx context.Context, n int, do func(ctx context.Context, i int) (Done, error), told func(ended int)) []Answer {
	answers := make([]Answer, n)
	for i := range answers {
		answers[i].Err = ErrNotDone
	}
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(breakOff, cancel) })()
	var (
		mu          sync.Mutex
		next, ended int
		group       sync.WaitGroup
	)
	begin := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == n || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range min(n, AtOnce) {
		group.Go(func() {
			for i, ok := begin(); ok; i, ok = begin() {
				done, err := do(working, i)
				mu.Lock()
				answers[i] = Answer{done, err}
				if ended++; told != nil {
					told(ended)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return answers
}
