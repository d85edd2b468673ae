package cli

import (
	"errors"
	"fmt"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/api"
)

// missing says what is not there, of an error NOT_FOUND of the Job API: queue or
// queue_item; "" if it does not say.
func missing(err error) string {
	if failed, ok := errors.AsType[*connect.Error](err); !ok || failed.Code() != connect.CodeNotFound {
		return ""
	}
	_, metadata := api.InfoOf(err)
	return metadata["resource"]
}

// aboutQueue adds what to do to an error about a queue that does not exist.
func aboutQueue(err error) error {
	if missing(err) == "queue" {
		return fmt.Errorf("%s; the first job that is enqueued creates it", apiText(err))
	}
	return err
}

// aboutItem adds what to do to an error about a job that is not in a queue.
func aboutItem(queue, jobID string, err error) error {
	if missing(err) == "queue_item" {
		return fmt.Errorf("job %s is not in queue %s; starter queues peek %s lists the waiting items", jobID, queue, queue)
	}
	return aboutQueue(err)
}
