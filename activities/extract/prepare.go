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
)

// Classes of what goes to quarantine.
const (
	ClassBadMessage = "BadMessage" // no raw message of the source
	ClassBadValue   = "BadValue"   // a record with values that cannot be stored; the others are
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
	run      job.Run
	pipeline *pipeline.Client

	operation    pipeline.Operation
	organization string
	source       string
	// points makes the prepared message of a raw one, if there is one to be made. A
	// problem puts the raw message into quarantine, an error ends the iteration.
	points func(body []byte) (out pipeline.Outgoing, ok bool, bad *problem, err error)

	counts map[string]int64
	series *pipeline.Series
}

// metadataJob says in the metadata of a consumer whose it is.
const metadataJob = "dendra-job"

// problem is why a message is in quarantine.
type problem struct{ class, reason string }

// iteration prepares what comes for a while.
func (p *preparation) iteration(ctx context.Context, length time.Duration) error {
	consumer, err := p.pipeline.Consumer(ctx, pipeline.StreamRaw, pipeline.ConsumerOptions{
		Name:    PrepareConsumerName(p.operation, p.organization, p.source, p.run.Job().ID),
		Subject: pipeline.RawSubject(p.operation, p.organization, p.source),
		// Of several jobs whose consumers had one name, only one may take it over.
		Metadata: map[string]string{metadataJob: p.run.Job().ID},
		Former:   formerConsumerName(p.operation, p.organization, p.source, p.run.Job().ID),
	})
	if err != nil {
		return err
	}
	// What an earlier iteration took and did not finish comes first, and in order.
	rewound, err := consumer.Rewind(ctx)
	if err != nil {
		return err
	}
	p.counts["rewound"] = int64(rewound)
	p.series = p.pipeline.Series()
	for end := time.Now().Add(length); time.Now().Before(end) && !job.Stopped(p.run); {
		messages, rewound, err := consumer.FetchInOrder(ctx, prepareSize, prepareWait, p.run.Stopping())
		if err != nil {
			return err
		}
		if rewound > 0 {
			p.counts["rewound"] += int64(rewound)
			p.series = p.pipeline.Series() // repeats from here on
		}
		if len(messages) == 0 {
			continue
		}
		if err := p.prepare(ctx, messages); err != nil {
			return err
		}
		if err := consumer.Ack(ctx, messages); err != nil {
			return err
		}
		p.counts["messages"] += int64(len(messages))
		p.run.Checkpoint(job.Progress{
			Done:    p.counts["messages"],
			Message: fmt.Sprintf("%d messages prepared, %d in quarantine", p.counts["prepared"], p.counts["quarantined"]),
		}, nil)
	}
	return nil
}

// prepare publishes the points of messages, and puts into quarantine what is none.
func (p *preparation) prepare(ctx context.Context, messages []jetstream.Msg) error {
	prepared := make([]pipeline.Outgoing, 0, len(messages))
	var refused []pipeline.Quarantined
	for _, message := range messages {
		out, ok, problem, err := p.points(message.Data())
		if err != nil {
			return err
		}
		if ok {
			raw, err := rawID(message)
			if err != nil {
				return err
			}
			prepared = append(prepared, preparedOf(out, raw))
		}
		if problem != nil {
			refused = append(refused, p.quarantined(message, problem))
		}
	}
	kept, err := p.pipeline.Quarantine(ctx, refused)
	if err != nil {
		return err
	}
	p.counts["quarantined"] += kept.Stored
	published, err := p.series.Publish(ctx, prepared)
	p.counts["prepared"] += published.Stored
	p.counts["duplicates"] += published.Duplicates
	return err
}

// rawID tells a raw message from others: its id, or its number in the stream.
func rawID(message jetstream.Msg) (string, error) {
	if id := message.Headers().Get(jetstream.MsgIDHeader); id != "" {
		return id, nil
	}
	sequence, _, err := pipeline.Place(message)
	return strconv.FormatUint(sequence, 10), err
}

func (p *preparation) quarantined(message jetstream.Msg, problem *problem) pipeline.Quarantined {
	q := pipeline.Quarantined{
		Stage: pipeline.StagePrepare, Operation: p.operation,
		Name: p.organization + "." + p.source, Class: problem.class, Reason: problem.reason,
		Job: p.run.Job().ID, Subject: message.Subject(), Body: message.Data(),
	}
	if meta, err := message.Metadata(); err == nil {
		q.Sequence = meta.Sequence.Stream
	}
	p.run.Logger().Warn("to quarantine", "class", q.Class, "reason", q.Reason)
	return q
}

// PrepareConsumerName is the durable consumer of a job that prepares the messages
// of an organization's source: prepare-<operation>-<organization>-<source>-<key>.
// Each job has its own, so that of two jobs each prepares everything: a key that is
// no safe name is followed by a digest of it, since another key may be the same as a
// safe name.
func PrepareConsumerName(operation pipeline.Operation, organization, source, jobID string) string {
	_, key, _ := strings.Cut(jobID, ".")
	name := formerConsumerName(operation, organization, source, jobID)
	if pipeline.SafeName(key) != key {
		digest := sha256.Sum256([]byte(key))
		name += "-" + hex.EncodeToString(digest[:4])
	}
	return name
}

// formerConsumerName is the name that the consumer had in earlier versions.
func formerConsumerName(operation pipeline.Operation, organization, source, jobID string) string {
	_, key, _ := strings.Cut(jobID, ".")
	return strings.Join([]string{"prepare", string(operation), organization, source, pipeline.SafeName(key)}, "-")
}
