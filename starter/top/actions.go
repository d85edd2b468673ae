package top

import (
	"context"
	"errors"
	"strings"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// action is a change that the user is asked about before it is made.
type action struct {
	// question names what is done to what.
	question string
	do       func(context.Context, *api.Clients) error
}

// keyAction is what a key does to a row; nil if nothing.
func keyAction(key string, p pane, r row) *action {
	switch p {
	case paneJobs:
		return jobAction(key, r)
	case paneQueues:
		if key != "p" {
			return nil
		}
		if r.paused {
			return resumeQueue(r.name)
		}
		return &action{"Pause queue " + r.name, func(ctx context.Context, c *api.Clients) error {
			_, err := c.Queues.PauseQueue(ctx, &jobsv1.PauseQueueRequest{Queue: r.name})
			return err
		}}
	case paneAlerts:
		if key == "enter" && r.alert != nil && len(r.alert.GetActions()) > 0 {
			return alertAction(r.alert.GetActions()[0], r.name)
		}
	}
	return nil
}

func jobAction(key string, r row) *action {
	switch key {
	case "p":
		if verbs.ResumeJob.Applies(r.job) {
			return resumeJob(r.name)
		}
		if !verbs.PauseJob.Applies(r.job) {
			return nil
		}
		return &action{"Pause job " + r.name, func(ctx context.Context, c *api.Clients) error {
			_, err := c.Jobs.PauseJob(ctx, &jobsv1.PauseJobRequest{Id: r.name})
			return err
		}}
	case "r":
		if !verbs.RunJob.Applies(r.job) {
			return nil
		}
		return runJob(r.name)
	case "c":
		if !verbs.StopJob.Applies(r.job) {
			return nil
		}
		return &action{"Stop job " + r.name, func(ctx context.Context, c *api.Clients) error {
			_, err := c.Jobs.StopJob(ctx, &jobsv1.StopJobRequest{Id: r.name})
			return err
		}}
	}
	return nil
}

func runJob(id string) *action {
	return &action{"Run job " + id, func(ctx context.Context, c *api.Clients) error {
		_, err := c.Jobs.RunJob(ctx, &jobsv1.RunJobRequest{Id: id})
		return err
	}}
}

func resumeJob(id string) *action {
	return &action{"Resume job " + id, func(ctx context.Context, c *api.Clients) error {
		_, err := c.Jobs.ResumeJob(ctx, &jobsv1.ResumeJobRequest{Id: id})
		return err
	}}
}

func resumeQueue(name string) *action {
	return &action{"Resume queue " + name, func(ctx context.Context, c *api.Clients) error {
		_, err := c.Queues.ResumeQueue(ctx, &jobsv1.ResumeQueueRequest{Queue: name})
		return err
	}}
}

// alertAction is an action that an alert proposes; nil if it needs more than a name.
func alertAction(a jobsv1.AlertAction, object string) *action {
	switch a {
	case jobsv1.AlertAction_ALERT_ACTION_RUN_JOB:
		return runJob(object)
	case jobsv1.AlertAction_ALERT_ACTION_RESUME_JOB:
		return resumeJob(object)
	case jobsv1.AlertAction_ALERT_ACTION_RESTART_JOB:
		return &action{"Restart job " + object, func(ctx context.Context, c *api.Clients) error {
			_, err := c.Jobs.RestartJob(ctx, &jobsv1.RestartJobRequest{Id: object})
			return err
		}}
	case jobsv1.AlertAction_ALERT_ACTION_RESUME_QUEUE:
		return resumeQueue(object)
	case jobsv1.AlertAction_ALERT_ACTION_SKIP_FAILED_ITEM:
		return &action{"Skip the failed item of queue " + object, func(ctx context.Context, c *api.Clients) error {
			_, err := c.Queues.SkipFailedItem(ctx, &jobsv1.SkipFailedItemRequest{Queue: object})
			return err
		}}
	case jobsv1.AlertAction_ALERT_ACTION_RECOVER_QUEUE:
		return &action{"Recover queue " + object, func(ctx context.Context, c *api.Clients) error {
			_, err := c.Queues.RecoverQueue(ctx, &jobsv1.RecoverQueueRequest{Queue: object})
			return err
		}}
	case jobsv1.AlertAction_ALERT_ACTION_SKIP_HELD_MESSAGE:
		return &action{"Put the message that blocks " + object + " into quarantine", func(ctx context.Context, c *api.Clients) error {
			location, rest, _ := strings.Cut(object, "/")
			flow, mirror, _ := strings.Cut(rest, "/")
			_, err := c.Loads.SkipHeldMessage(ctx, &jobsv1.SkipHeldMessageRequest{Location: location, Flow: flow, Mirror: mirror})
			return err
		}}
	}
	return nil
}

// errorText is the text of an error of the API without its code.
func errorText(err error) string {
	if failed, ok := errors.AsType[*connect.Error](err); ok {
		return failed.Message()
	}
	return err.Error()
}
