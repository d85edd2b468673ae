package page

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

var queueVerbs = map[string]verb{
	"pause-queue": {Label: "Pause", Object: "queue", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		_, err := c.Queues.PauseQueue(ctx, &jobsv1.PauseQueueRequest{Queue: v.Get("queue"), Reason: v.Get("reason")})
		return said(err, "Queue %s is paused.", v.Get("queue"))
	}},
	"resume-queue": {Label: "Resume", Object: "queue", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		_, err := c.Queues.ResumeQueue(ctx, &jobsv1.ResumeQueueRequest{Queue: v.Get("queue")})
		return said(err, "Queue %s goes on.", v.Get("queue"))
	}},
	"drain-queue": {Label: "Drain…", Object: "queue", Confirm: "Drain queue %s? It takes no more items until someone resumes it.",
		do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
			_, err := c.Queues.DrainQueue(ctx, &jobsv1.DrainQueueRequest{Queue: v.Get("queue")})
			return said(err, "Queue %s takes no more items.", v.Get("queue"))
		}},
	"skip-failed-item": {Label: "Skip failed item…", Object: "queue", Confirm: "Skip the failed item of queue %s? The queue goes on with the next one.",
		do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
			_, err := c.Queues.SkipFailedItem(ctx, &jobsv1.SkipFailedItemRequest{Queue: v.Get("queue")})
			return said(err, "Queue %s goes on with the next item.", v.Get("queue"))
		}},
	"recover-queue": {Label: "Recover", Object: "queue", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		_, err := c.Queues.RecoverQueue(ctx, &jobsv1.RecoverQueueRequest{Queue: v.Get("queue")})
		return said(err, "Queue %s has started again.", v.Get("queue"))
	}},
	"purge-queue": {Label: "Purge…", Object: "queue",
		preview: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
			answer, err := c.Queues.PurgeQueue(ctx, &jobsv1.PurgeQueueRequest{Queue: v.Get("queue")})
			if err != nil {
				return nil, err
			}
			return &done{
				Preview: true, Names: answer.GetPurgeSample(),
				Text: fmt.Sprintf("Take %s out of queue %s?", plural(answer.GetPurgeCount(), "waiting item", "waiting items"), v.Get("queue")),
			}, nil
		},
		do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
			answer, err := c.Queues.PurgeQueue(ctx, &jobsv1.PurgeQueueRequest{Queue: v.Get("queue"), Force: true})
			return said(err, "%s left queue %s.", plural(answer.GetPurgeCount(), "item", "items"), v.Get("queue"))
		}},
	"move-item": {Label: "Run next", Object: "job", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		_, err := c.Queues.MoveQueueItem(ctx, &jobsv1.MoveQueueItemRequest{Queue: v.Get("queue"), JobId: v.Get("job")})
		return said(err, "%s is the next item.", v.Get("job"))
	}},
	"cancel-item": {Label: "Take out…", Object: "job", Confirm: "Take %s out of its queue?",
		do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
			answer, err := c.Queues.CancelQueueItem(ctx, &jobsv1.CancelQueueItemRequest{Queue: v.Get("queue"), JobId: v.Get("job")})
			if answer.GetRunning() {
				return said(err, "%s runs, and was asked to stop.", v.Get("job"))
			}
			return said(err, "%s is out of the queue.", v.Get("job"))
		}},
	"retry-dead-letters": {Label: "Retry", Object: "queue", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		numbers, err := sequences(v)
		if err != nil {
			return nil, err
		}
		answer, err := c.Queues.RetryDeadLetters(ctx, &jobsv1.RetryDeadLettersRequest{Queue: v.Get("queue"), Sequences: numbers})
		if err != nil {
			return nil, err
		}
		is := &done{Text: plural(len(answer.GetRetried()), "dead letter is", "dead letters are") + " in the queue again."}
		for _, left := range answer.GetLeft() {
			is.Names = append(is.Names, left.GetJobId()+" stays: "+left.GetErrorMessage())
		}
		return is, nil
	}},
	"drop-dead-letters": {Label: "Drop…", Object: "queue", Confirm: "Forget these dead letters of queue %s?",
		do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
			numbers, err := sequences(v)
			if err != nil {
				return nil, err
			}
			answer, err := c.Queues.DropDeadLetters(ctx, &jobsv1.DropDeadLettersRequest{Queue: v.Get("queue"), Sequences: numbers})
			return said(err, "%s forgotten.", plural(answer.GetDropped(), "dead letter is", "dead letters are"))
		}},
}

// sequences are the numbers of a form's items. None means all.
func sequences(v url.Values) ([]int64, error) {
	var numbers []int64
	for _, text := range v["sequence"] {
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, badField("sequence")
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

var pipelineVerbs = map[string]verb{
	"skip-held-message": {Label: "Skip held message…", Object: "load", Confirm: "Put the message that blocks %s into quarantine?",
		do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
			parts := append(strings.SplitN(v.Get("load"), "/", 3), "", "")
			answer, err := c.Loads.SkipHeldMessage(ctx, &jobsv1.SkipHeldMessageRequest{Location: parts[0], Flow: parts[1], Mirror: parts[2]})
			return said(err, "Message %d goes into quarantine within a minute.", answer.GetSequence())
		}},
	"replay": {Label: "Replay…", Object: "item", preview: replay(false), do: replay(true)},
	"drop":   {Label: "Drop…", Object: "item", preview: drop(false), do: drop(true)},
}

// items are the items of a form, or the filter that they fit.
func items(v url.Values) ([]int64, *jobsv1.QuarantineFilter, error) {
	if text := v.Get("item"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, nil, badField("item")
		}
		return []int64{id}, nil, nil
	}
	return nil, readQuarantineFilter(v), nil
}

func replay(force bool) func(context.Context, *api.Clients, url.Values) (*done, error) {
	return func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		ids, filter, err := items(v)
		if err != nil {
			return nil, err
		}
		answer, err := c.Quarantine.ReplayQuarantineItems(ctx, &jobsv1.ReplayQuarantineItemsRequest{Ids: ids, Filter: filter, Force: force})
		if err != nil {
			return nil, err
		}
		is := &done{Preview: !force, Text: "Publish " + plural(answer.GetReplayCount(), "item", "items") + " again?"}
		if force {
			is.Text = plural(answer.GetReplayCount(), "item was", "items were") + " published again."
		}
		for _, left := range answer.GetLeft()[:min(len(answer.GetLeft()), maxNames)] {
			is.Names = append(is.Names, fmt.Sprintf("%d stays: %s", left.GetId(), left.GetNotReplayable()))
		}
		return is, nil
	}
}

func drop(force bool) func(context.Context, *api.Clients, url.Values) (*done, error) {
	return func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		ids, filter, err := items(v)
		if err != nil {
			return nil, err
		}
		answer, err := c.Quarantine.DropQuarantineItems(ctx, &jobsv1.DropQuarantineItemsRequest{Ids: ids, Filter: filter, Force: force})
		if err != nil {
			return nil, err
		}
		if !force {
			return &done{Preview: true, Text: "Remove " + plural(answer.GetDropCount(), "item", "items") + " for good?"}, nil
		}
		return said(nil, "%s removed.", plural(answer.GetDropCount(), "item is", "items are"))
	}
}

var silenceVerbs = map[string]verb{
	"create-silence": {Label: "Silence", Object: "object", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		hours, err := strconv.ParseFloat(v.Get("hours"), 64)
		if err != nil || hours <= 0 {
			return nil, badField("hours")
		}
		end := time.Now().Add(time.Duration(hours * float64(time.Hour)))
		_, err = c.Alerts.CreateSilence(ctx, &jobsv1.CreateSilenceRequest{Silence: &jobsv1.Silence{
			Rule: jobsv1.AlertRule(jobsv1.AlertRule_value["ALERT_RULE_"+v.Get("rule")]), Object: v.Get("object"), Reason: v.Get("reason"),
			EndTime: timestamppb.New(end),
		}})
		return said(err, "The watchdog is quiet about it until %s.", end.UTC().Format("2006-01-02 15:04 UTC"))
	}},
	"delete-silence": {Label: "End silence", Object: "name", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		_, err := c.Alerts.DeleteSilence(ctx, &jobsv1.DeleteSilenceRequest{Name: v.Get("name")})
		return said(err, "The silence has ended.")
	}},
}
