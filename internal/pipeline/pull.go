package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// answerWait is how much longer than a request the client waits for its end, which
	// never comes from a server that is gone.
	answerWait = time.Second
	// lateWait is how long messages are waited for that the server has told of.
	lateWait = 5 * time.Second
)

// pullRequest is what the server takes as a request for messages.
type pullRequest struct {
	Batch    int           `json:"batch"`
	MaxBytes int           `json:"max_bytes,omitempty"`
	Expires  time.Duration `json:"expires"` // in nanoseconds
}

// pull makes one request for what is missing to n messages, and adds what comes,
// also when it returns an error. That ctx ends is no error: it ends the wait at once,
// and a message that is still on its way comes to nobody.
//
// The Fetch of nats.go ends with the first status that the server sends. A consumer
// with replicas sends a message when a quorum knows of its delivery, and the status
// at once, so that it overtakes the messages before it, and those come to nobody. A
// status says how many messages the request lacks: what it does not lack is waited for.
func (r *Consumer) pull(ctx context.Context, messages *[]*Delivery, n, bytes int, wait time.Duration) error {
	inbox := r.client.nc.NewInbox()
	subscription, err := r.client.nc.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = subscription.Unsubscribe() }()
	if err := subscription.SetPendingLimits(-1, -1); err != nil { // the request has limits
		return err
	}
	batch := n - len(*messages)
	request, err := json.Marshal(pullRequest{Batch: batch, MaxBytes: bytes, Expires: wait})
	if err != nil {
		return err
	}
	subject := fmt.Sprintf("$JS.API.CONSUMER.MSG.NEXT.%s.%s", r.stream, r.name)
	if err := r.client.nc.PublishRequest(subject, inbox, request); err != nil {
		return err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	end := time.AfterFunc(wait+answerWait, cancel)
	defer end.Stop()
	expected, taken, size := batch, 0, 0
	for taken < expected && (bytes == 0 || size < bytes) {
		message, err := subscription.NextMsgWithContext(waiting)
		if waiting.Err() != nil && errors.Is(err, waiting.Err()) {
			return nil // what got lost on its way leaves a gap in the order
		}
		if err != nil {
			return err
		}
		if message.Subject != inbox {
			delivery, err := delivered(message)
			if err != nil {
				return err
			}
			*messages = append(*messages, delivery)
			taken++
			size += message.Size()
			continue
		}
		lacking, err := lacks(message)
		if err != nil {
			return err
		}
		if lacking >= 0 {
			expected = batch - lacking
			end.Reset(lateWait)
		}
	}
	return nil
}

// lacks reads from a status how many messages its request lacks at its end; -1 if
// the request goes on.
func lacks(status *nats.Msg) (int, error) {
	code := status.Header.Get("Status")
	switch code {
	case "100":
		return -1, nil
	case "503":
		return 0, nats.ErrNoResponders
	case "408", "409":
		if n, err := strconv.Atoi(status.Header.Get("Nats-Pending-Messages")); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("the server answers %s %s", code, status.Header.Get("Description"))
}
