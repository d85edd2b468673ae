package client_test

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/client"
)

// A program in any language puts jobs into a queue with a client of Temporal alone. It gets no
// answer, and fills in all that package client would.
func Example_signalWithStart() {
	ctx := context.Background()
	c, err := sdk.DialContext(ctx, envconfig.MustLoadDefaultClientOptions())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	item := map[string]any{"job": map[string]any{
		"id": "resize_photo.dusk", "type": "ResizePhoto", "worker": "photos", "provider": "api",
		"spec":   map[string]any{"photo": "dusk.jpg"},
		"queued": map[string]any{"queue": "thumbs"},
		"options": map[string]any{ // No default is filled in: without max_retry_count nothing is retried.
			"run_timeout": "PT1H", "heartbeat_timeout": "PT15S", "stop_grace_period": "PT10S", "max_retry_count": 3,
			"retry_backoff": map[string]any{"initial": "PT1S", "max": "PT1M", "coefficient": 2},
		},
	}} // "allow_rerun": true beside "job" runs a job although it has completed.
	request := map[string]any{"items": []any{item}, "request_id": "upload-17"} // 1 to 100 items; the id makes it safe to repeat
	_, err = c.SignalWithStartWorkflow(ctx, "queue/thumbs", "enqueue", request, sdk.StartWorkflowOptions{
		TaskQueue: "queues",
		// Otherwise a queue that was terminated is started anew, empty.
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyKeyword("JobQueue").ValueSet("thumbs")),
	}, "JobQueue", map[string]any{"name": "thumbs"})
	if err != nil {
		fmt.Println(err)
		return
	}

	queues := connect().Queues
	if err := queues.AwaitEmpty(ctx, "thumbs", func(*client.Queue) {}); err != nil {
		fmt.Println(err)
		return
	}
	queue, err := queues.Get(ctx, "thumbs")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(queue.Completed, "completed")
	// Output: 1 completed
}
