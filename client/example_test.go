package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// A program starts a one-shot and waits for its result.
func ExampleClient() {
	ctx := context.Background()
	options := envconfig.MustLoadDefaultClientOptions() // TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE
	options.Logger = log.NewStructuredLogger(slog.Default())
	temporal, err := sdk.DialContext(ctx, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer temporal.Close()
	c := client.New(temporal, options.Namespace)

	ref, err := c.Runs.Start(ctx, job.Job{
		ID: job.ID("ResizePhoto", "ridge"), Type: "ResizePhoto", Worker: "photos", Provider: job.ProviderAPI,
		Spec:    json.RawMessage(`{"photo": "ridge.jpg"}`),
		Trigger: job.Trigger{OneShot: &job.OneShot{}},
		Options: job.DefaultOptions(job.ModeOneShot),
	}, contract.StartedByHand)
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := c.Runs.Follow(ctx, ref, func(run *client.RunDetail) { slog.Debug("under way", "progress", run.Progress) })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.JobID, run.Status)
	fmt.Println(run.Output.Message)
	// Output:
	// resize_photo.ridge completed
	// resized ridge.jpg
}

// A program puts jobs into a queue and looks at it when they have run.
func ExampleQueueClient() {
	ctx, c := context.Background(), connect()
	for _, photo := range []string{"meadow", "creek"} {
		j := newJob(photo, job.Trigger{Queued: &job.Queued{Queue: "photos"}})
		receipt, err := c.Queues.Enqueue(ctx, j, client.EnqueueOptions{RequestID: "upload-" + photo})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("item", receipt.Sequence, "is", j.ID)
	}
	if err := c.Queues.AwaitEmpty(ctx, "photos", func(*client.Queue) {}); err != nil {
		fmt.Println(err)
		return
	}
	queue, err := c.Queues.Get(ctx, "photos")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("queue photos is", queue.Status, "with", queue.Waiting, "waiting and", queue.Completed, "completed")
	// Output:
	// item 1 is resize_photo.meadow
	// item 2 is resize_photo.creek
	// queue photos is idle with 0 waiting and 2 completed
}

// A program applies a recurring job, looks at its next starts and triggers it.
func ExampleJobClient() {
	ctx, c := context.Background(), connect()
	daily := newJob("webcam", job.Trigger{Recurring: &job.Recurring{Cron: "0 6 * * *", TimeZone: "America/Los_Angeles"}})
	syncer := schedules.New(c)
	plan, err := syncer.Plan(ctx, []job.Job{daily}, schedules.PlanOptions{Provider: job.ProviderAPI})
	if err == nil {
		err = syncer.Apply(ctx, plan, func(schedules.Report) {})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	next, err := c.Jobs.NextStarts(ctx, daily.ID, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(next.Starts), "next starts in", next.TimeZone)

	triggered, err := c.Jobs.Trigger(ctx, daily.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := c.Runs.Follow(ctx, triggered.Run, func(*client.RunDetail) {})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the triggered run", run.Status)
	// Output:
	// 3 next starts in America/Los_Angeles
	// the triggered run completed
}

// A program starts a run for later, finds it in the list of runs and cancels it.
func ExampleRunClient() {
	ctx, c := context.Background(), connect()
	j := newJob("glacier", job.Trigger{OneShot: &job.OneShot{}})
	ref, err := c.Runs.StartAt(ctx, j, contract.StartedByHand, client.StartOptions{At: time.Now().Add(time.Hour)})
	if err != nil {
		fmt.Println(err)
		return
	}
	var waiting []client.Run
	for len(waiting) == 0 { // A list may lag by a second.
		waiting, err = c.Runs.List(ctx, client.RunFilter{JobID: j.ID, Status: client.RunWaiting})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, run := range waiting {
		fmt.Println(run.JobID, run.Status)
		if err := c.Runs.Cancel(ctx, run.RunRef, "the upload was withdrawn"); err != nil {
			fmt.Println(err)
			return
		}
	}
	run, err := c.Runs.Follow(ctx, ref, func(*client.RunDetail) {})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.JobID, run.Status)
	// Output:
	// resize_photo.glacier waiting
	// resize_photo.glacier canceled
}

// A program lists the live workers, and the job types that none of them serves.
func ExampleWorkerClient() {
	workers, err := connect().Workers.List(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, service := range workers.Services {
		fmt.Printf("a worker of type %s is %s: it has %s\n", service.Worker, service.State, service.Types[0].Name)
	}
	for _, unserved := range workers.Unserved {
		fmt.Printf("no worker serves %s\n", unserved.Type)
	}
	// Output: a worker of type photos is serving: it has ResizePhoto
}
