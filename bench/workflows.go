package main

import (
	"context"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// The names of what the bench runs, and of its signals.
const (
	taskQueue      = "bench"
	singleWorkflow = "BenchSingle"
	serialWorkflow = "BenchSerial"
	timersWorkflow = "BenchTimers"
	noopActivity   = "BenchNoop"
	messageSignal  = "message"
)

// noop is the smallest job there is.
func noop(context.Context) error { return nil }

// single is a workflow with one activity.
func single(ctx workflow.Context) error {
	return workflow.ExecuteActivity(withNoop(ctx), noopActivity).Get(ctx, nil)
}

// serial handles messages one after the other, each with an activity or with a
// child workflow that has one, and ends after the given number.
func serial(ctx workflow.Context, messages int, children bool) error {
	inbox := workflow.GetSignalChannel(ctx, messageSignal)
	for range messages {
		inbox.Receive(ctx, nil)
		if err := handle(ctx, children); err != nil {
			return err
		}
	}
	return nil
}

// shortTimer is what a continuous job with the shortest interval waits.
const shortTimer = 10 * time.Millisecond

// timers waits for short timers, one after the other.
func timers(ctx workflow.Context, n int) error {
	for range n {
		if err := workflow.Sleep(ctx, shortTimer); err != nil {
			return err
		}
	}
	return nil
}

func handle(ctx workflow.Context, children bool) error {
	if children {
		return workflow.ExecuteChildWorkflow(ctx, singleWorkflow).Get(ctx, nil)
	}
	return workflow.ExecuteActivity(withNoop(ctx), noopActivity).Get(ctx, nil)
}

func withNoop(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}
