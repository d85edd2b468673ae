package extract

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// Classes of what goes to quarantine.
const (
	ClassBadMessage = "BadMessage" // no raw message of a record
	ClassBadValue   = "BadValue"   // a record with values that cannot be stored; the others are
)

const (
	// prepareSize is how many messages are taken at a time, and prepareWait how
	// long they are waited for.
	prepareSize = 500
	prepareWait = 250 * time.Millisecond
)

type prepareLdmp struct{ pipeline *pipeline.Client }

// PrepareCampbellScientificLdmp makes the job type of that name. A nil client is
// enough to describe it.
//
// An iteration is a lap: for spec.Lap it takes raw messages of an organization's
// data loggers, makes points of their records and publishes them for a location.
// A raw message is acknowledged when its prepared message is in the stream; what
// cannot be prepared is in quarantine then.
func PrepareCampbellScientificLdmp(client *pipeline.Client) job.Type {
	h := &prepareLdmp{pipeline: client}
	return job.NewType("PrepareCampbellScientificLdmp", job.WorkerExtract,
		"Makes points of the records of Campbell Scientific data loggers, and addresses them to a location.",
		h.handle, job.ModeContinuous)
}

func (h *prepareLdmp) handle(ctx context.Context, run job.Run, spec PrepareLdmpSpec) (job.Result, error) {
	spec = spec.withDefaults()
	p := &preparation{run: run, spec: spec, pipeline: h.pipeline, counts: map[string]int64{}}
	for _, text := range spec.StringFields {
		pattern, err := regexp.Compile(text)
		if err != nil {
			return job.Result{}, job.Final(job.ClassInvalidSpec, "job %s: string_fields: %w", run.Job().ID, err)
		}
		p.stringFields = append(p.stringFields, pattern)
	}
	err := p.lap(ctx)
	return job.Result{
		Message: fmt.Sprintf("%d records of %s prepared as %d messages", p.counts["messages"], spec.Organization, p.counts["prepared"]),
		Counts:  p.counts,
	}, err
}

// preparation is one iteration.
type preparation struct {
	run      job.Run
	spec     PrepareLdmpSpec
	pipeline *pipeline.Client

	stringFields []*regexp.Regexp
	counts       map[string]int64
}

func (p *preparation) lap(ctx context.Context) error {
	consumer, err := p.pipeline.Consumer(ctx, pipeline.StreamRaw, pipeline.ConsumerOptions{
		Name:    PrepareConsumerName(p.spec.OperationMode, p.spec.Organization, p.run.Job().ID),
		Subject: pipeline.RawSubject(p.spec.OperationMode, p.spec.Organization, ldmpSourceName),
	})
	if err != nil {
		return err
	}
	// What an earlier lap took and did not finish comes first, and in order.
	rewound, err := consumer.Rewind(ctx)
	if err != nil {
		return err
	}
	p.counts["rewound"] = int64(rewound)
	for end := time.Now().Add(p.spec.Lap.Std()); time.Now().Before(end) && !stopped(p.run); {
		messages, err := consumer.Fetch(ctx, prepareSize, prepareWait, p.run.Stopping())
		if err != nil {
			return err
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
			prepared = append(prepared, out)
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
	published, err := p.pipeline.Publish(ctx, prepared)
	p.counts["prepared"] += published.Stored
	p.counts["duplicates"] += published.Duplicates
	return err
}

// problem is why a message is in quarantine.
type problem struct{ class, reason string }

// decodeRecord reads a raw message and the logger's clock.
func decodeRecord(body []byte) (message pipeline.Message[ldmp.Record], clock time.Time, bad *problem) {
	if err := json.Unmarshal(body, &message); err != nil {
		return message, clock, &problem{ClassBadMessage, "not a raw message of a record: " + err.Error()}
	}
	if message.Payload.Station == "" || message.Payload.Table == "" {
		return message, clock, &problem{ClassBadMessage, "not a raw message of a record: it names no station or no table"}
	}
	clock, err := message.Payload.Clock()
	if err != nil {
		return message, clock, &problem{ClassBadMessage, err.Error()}
	}
	return message, clock, nil
}

// points makes the prepared message of a raw one. There is none if no field has a
// value, or a rule skips the record.
func (p *preparation) points(body []byte) (out pipeline.Outgoing, ok bool, bad *problem, err error) {
	message, clock, bad := decodeRecord(body)
	if bad != nil {
		return out, false, bad, nil
	}
	record := message.Payload
	message.Context.Station, message.Context.Table = record.Station, record.Table
	route := p.spec.route(message.Context, clock)
	if route.skip {
		p.counts["skipped"]++
		return out, false, nil, nil
	}
	if err := route.offset.Check(); err != nil {
		return out, false, &problem{ClassBadMessage, fmt.Sprintf("station %s: %v", record.Station, err)}, nil
	}
	at := ldmp.At(clock, route.offset.Std())
	if imported := message.Context.ImportedAt; !imported.IsZero() && at.After(imported.Add(clockSlack)) {
		return out, false, &problem{ClassFutureTimestamp, fmt.Sprintf("station %s, table %s: a record of %s, read at %s",
			record.Station, record.Table, at.Format(time.RFC3339), imported.Format(time.RFC3339))}, nil
	}
	values, missing, wrong := p.values(&route, record.Fields)
	p.counts["missing"] += missing
	if len(wrong) > 0 {
		bad = &problem{ClassBadValue, fmt.Sprintf("station %s, table %s, record %d: %s",
			record.Station, record.Table, record.Number, strings.Join(wrong, "; "))}
	}
	if len(values) == 0 {
		p.counts["empty"]++
		return out, false, bad, nil
	}
	out, err = p.message(message.Context, route, at, values)
	return out, err == nil, bad, err
}

func (p *preparation) message(context pipeline.Context, route ldmpRoute, at time.Time, values map[string]any) (pipeline.Outgoing, error) {
	safe := func(name string) string { return strings.ToLower(pipeline.SafeName(name)) }
	names := []string{
		"{location}", route.location, "{organization}", safe(context.OrgSlug),
		"{station}", safe(context.Station), "{table}", safe(context.Table),
	}
	payload := pipeline.Points{
		Options: pipeline.PointOptions{Database: fill(route.database, names...), Precision: "ms"},
		Points: []pipeline.Point{{
			Measurement: fill(route.measurement, names...), Fields: values, Time: pipeline.Time{Time: at},
		}},
	}
	unique, err := json.Marshal(payload)
	if err != nil {
		return pipeline.Outgoing{}, fmt.Errorf("encode a point of station %s, table %s: %w", context.Station, context.Table, err)
	}
	context.Location, context.UTCOffset = route.location, ""
	subject := pipeline.PrepSubject(route.operation, route.location)
	return outgoing(subject, pipeline.Message[pipeline.Points]{Context: context, Payload: payload}, []string{subject, string(unique)})
}

func (p *preparation) quarantined(message jetstream.Msg, problem *problem) pipeline.Quarantined {
	q := pipeline.Quarantined{
		Stage: pipeline.StagePrepare, Operation: p.spec.OperationMode,
		Name: p.spec.Organization + "." + ldmpSourceName, Class: problem.class, Reason: problem.reason,
		Job: p.run.Job().ID, Subject: message.Subject(), Body: message.Data(),
	}
	if meta, err := message.Metadata(); err == nil {
		q.Sequence = meta.Sequence.Stream
	}
	p.run.Logger().Warn("to quarantine", "class", q.Class, "reason", q.Reason)
	return q
}
