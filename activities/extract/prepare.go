package extract

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/iterate"
)

const (
	// prepareSize is how many messages are taken at a time, and prepareWait how
	// long they are waited for.
	prepareSize = 500
	prepareWait = 250 * time.Millisecond
)

// preparation is one iteration of a job that makes points of the raw messages of
// an organization's source. A raw message is acknowledged when its prepared
// message is in the stream; what cannot be prepared is in quarantine then.
type preparation struct {
	*iterate.Iteration

	pipeline *pipeline.Client

	operation    pipeline.Operation
	organization string
	source       string
	// points makes the prepared message of a raw one, if there is one to be made. A
	// problem puts the raw message into quarantine, an error ends the iteration.
	points func(body []byte) (out pipeline.Outgoing, ok bool, bad *problem, err error)

	consumer *pipeline.Consumer
	series   *pipeline.Series
	behind   string // the consumer of prepared messages that is waited for
}

func newPreparation(run job.Run, duration job.Duration, client *pipeline.Client, operation pipeline.Operation, organization, source string) *preparation {
	p := &preparation{pipeline: client, operation: operation, organization: organization, source: source}
	p.Iteration = iterate.New(run, duration.Std(), p.progress)
	return p
}

// problem is why a message is in quarantine.
type problem struct{ class, reason string }

// work prepares what comes until the iteration is over.
func (p *preparation) work(ctx context.Context) error {
	consumer, err := p.pipeline.Consumer(ctx, pipeline.StreamRaw, pipeline.ConsumerOptions{
		Name:     PrepareConsumerName(p.operation, p.organization, p.source, p.Job().ID),
		Subject:  pipeline.RawSubject(p.operation, p.organization, p.source),
		InOrder:  true,
		Metadata: map[string]string{pipeline.MetadataJob: p.Job().ID},
	})
	if err != nil {
		return err
	}
	p.consumer = consumer
	if err := p.rewind(ctx); err != nil {
		return err
	}
	return p.Loop(ctx, p.step)
}

// rewind has what was taken and not finished come again, and in order.
func (p *preparation) rewind(ctx context.Context) error {
	rewound, err := p.consumer.Rewind(ctx)
	p.beginSeries(rewound)
	return err
}

// beginSeries goes on after the consumer was rewound: repeats come from here on.
func (p *preparation) beginSeries(rewound int) {
	p.Count("rewound", int64(rewound))
	p.series = p.pipeline.Series()
}

// step prepares the messages of one fetch.
func (p *preparation) step(ctx context.Context) (iterate.Next, error) {
	if p.operation == pipeline.OperationBulk { // live data may not wait
		behind, err := p.series.Behind(ctx)
		if err != nil {
			return iterate.Done, err
		}
		if p.behind = behind; behind != "" {
			p.Wait(ctx, pipeline.BacklogWait)
			return iterate.More, nil
		}
	}
	messages, rewound, err := p.consumer.FetchInOrder(ctx, prepareSize, prepareWait, p.Stopping())
	if err != nil {
		return iterate.Done, err
	}
	if rewound > 0 {
		p.beginSeries(rewound)
	}
	if len(messages) == 0 {
		return iterate.More, nil
	}
	if err := p.prepare(ctx, messages); err != nil {
		return iterate.Done, err
	}
	if err := p.consumer.Ack(ctx, messages); err != nil {
		return iterate.Done, err
	}
	p.Count("messages", int64(len(messages)))
	noted, err := p.consumer.AckNoted(ctx, messages[len(messages)-1])
	if err != nil || noted {
		return iterate.More, err
	}
	return iterate.More, p.rewind(ctx)
}

func (p *preparation) progress(counts map[string]int64) (job.Progress, any) {
	message := fmt.Sprintf("%d messages prepared, %d in quarantine", counts["prepared"], counts["quarantined"])
	if p.behind != "" {
		message += "; waits for " + p.behind
	}
	return job.Progress{Done: counts["messages"], Message: message}, nil
}

// prepare publishes the points of messages, and puts into quarantine what is none.
func (p *preparation) prepare(ctx context.Context, messages []*pipeline.Delivery) error {
	prepared := make([]pipeline.Outgoing, 0, len(messages))
	var refused []pipeline.Quarantined
	for _, message := range messages {
		out, ok, problem, err := p.points(message.Body)
		if err != nil {
			return err
		}
		if ok {
			prepared = append(prepared, preparedOf(out, rawID(message)))
		}
		if problem != nil {
			refused = append(refused, p.quarantined(message, problem))
		}
	}
	kept, err := p.pipeline.Quarantine(ctx, refused)
	if err != nil {
		return err
	}
	p.Count("quarantined", kept.Stored)
	published, err := p.series.Publish(ctx, prepared)
	p.Count("prepared", published.Stored)
	p.Count("duplicates", published.Duplicates)
	return err
}

// rawID tells a raw message from others: its id, or its number in the stream.
func rawID(message *pipeline.Delivery) string {
	if id := message.Header.Get(jetstream.MsgIDHeader); id != "" {
		return id
	}
	return strconv.FormatUint(message.Sequence, 10)
}

func (p *preparation) quarantined(message *pipeline.Delivery, problem *problem) pipeline.Quarantined {
	q := pipeline.Quarantined{
		Stage: pipeline.StagePrepare, Operation: p.operation,
		Name: p.organization + "." + p.source, Class: problem.class, Reason: problem.reason,
		Job: p.Job().ID, Subject: message.Subject, Body: message.Body,
		Sequence: message.Sequence,
	}
	p.Logger().Warn("to quarantine", "class", q.Class, "reason", q.Reason)
	return q
}

// PrepareConsumerName is the durable consumer of a job that prepares the messages
// of an organization's source: prepare-<operation>-<organization>-<source>-<key>.
// Each job has its own, so that of two jobs each prepares everything: a key that is
// no safe name is followed by a digest of it, since another key may be the same as a
// safe name.
func PrepareConsumerName(operation pipeline.Operation, organization, source, jobID string) string {
	_, key, _ := strings.Cut(jobID, ".")
	name := strings.Join([]string{"prepare", string(operation), organization, source, pipeline.SafeName(key)}, "-")
	if pipeline.SafeName(key) != key {
		digest := sha256.Sum256([]byte(key))
		name += "-" + hex.EncodeToString(digest[:4])
	}
	return name
}
