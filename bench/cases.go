package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// sample is what one round of a case came to.
type sample struct {
	PerSecond float64
	// Of one call; zero where there is a single caller that waits once.
	P50, P95, P99, Worst time.Duration
}

// benchCase is a kind of work.
type benchCase struct {
	name string
	unit string
	run  func(ctx context.Context, c client.Client, id string) (sample, error)
}

func benchCases(scale int) []benchCase {
	return []benchCase{
		{"workflow + one activity, 1 caller", "workflows/s", callers(1, 20*scale)},
		{"workflow + one activity, 50 callers", "workflows/s", callers(50, 60*scale)},
		{"serial queue, an activity per message", "messages/s", queue(40*scale, false)},
		{"serial queue, a child workflow per message", "messages/s", queue(8*scale, true)},
		{"timers of 10 ms, one after the other", "timers/s", shortTimers(4 * scale)},
	}
}

// callers starts workflows from n callers at once, each of which waits for its
// result before the next.
func callers(n, total int) func(context.Context, client.Client, string) (sample, error) {
	return func(ctx context.Context, c client.Client, id string) (sample, error) {
		took := make([]time.Duration, total)
		var group errgroup.Group
		group.SetLimit(n)
		began := time.Now()
		for i := range total {
			group.Go(func() (err error) {
				took[i], err = callOnce(ctx, c, fmt.Sprintf("%s/%d", id, i))
				return err
			})
		}
		err := group.Wait()
		elapsed := time.Since(began)
		slices.Sort(took)
		return sample{
			PerSecond: float64(total) / elapsed.Seconds(),
			P50:       took[len(took)/2],
			P95:       took[len(took)*95/100],
			P99:       took[len(took)*99/100],
			Worst:     took[len(took)-1],
		}, err
	}
}

func callOnce(ctx context.Context, c client.Client, id string) (time.Duration, error) {
	began := time.Now()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue}, singleWorkflow)
	if err == nil {
		err = temporalclient.Await(ctx, c, id, run.GetRunID(), nil)
	}
	return time.Since(began), err
}

// shortTimers waits for a workflow that waits for timers.
func shortTimers(n int) func(context.Context, client.Client, string) (sample, error) {
	return func(ctx context.Context, c client.Client, id string) (sample, error) {
		began := time.Now()
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue}, timersWorkflow, n)
		if err == nil {
			err = temporalclient.Await(ctx, c, id, run.GetRunID(), nil)
		}
		return sample{PerSecond: float64(n) / time.Since(began).Seconds()}, err
	}
}

// queue sends the messages to one workflow and waits until all are handled.
func queue(messages int, children bool) func(context.Context, client.Client, string) (sample, error) {
	return func(ctx context.Context, c client.Client, id string) (sample, error) {
		began := time.Now()
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue}, serialWorkflow, messages, children)
		if err != nil {
			return sample{}, err
		}
		for range messages {
			if err := c.SignalWorkflow(ctx, id, run.GetRunID(), messageSignal, nil); err != nil {
				return sample{}, err
			}
		}
		if err := temporalclient.Await(ctx, c, id, run.GetRunID(), nil); err != nil {
			return sample{}, err
		}
		return sample{PerSecond: float64(messages) / time.Since(began).Seconds()}, nil
	}
}
