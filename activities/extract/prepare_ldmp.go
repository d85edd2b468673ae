package extract

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/iterate"
)

type prepareLdmp struct{ pipeline *pipeline.Client }

// PrepareCampbellScientificLdmp makes the job type of that name. A nil client is
// enough to describe it.
//
// For spec.IterationDuration, an iteration takes raw messages of an organization's
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
	it := iterate.New(run, spec.IterationDuration.Std(), progressOfPreparation)
	l := &ldmpPreparation{spec: spec, count: it.Count}
	for _, text := range spec.StringFields {
		pattern, err := regexp.Compile(text)
		if err != nil {
			return job.Result{}, job.Fail(errclass.InvalidSpec, "job %s: string_fields: %w", run.Job().ID, err)
		}
		l.stringFields = append(l.stringFields, pattern)
	}
	p := &preparation{
		Iteration: it, pipeline: h.pipeline,
		operation: spec.OperationMode, organization: spec.Organization, source: ldmp.Source,
		points: l.points,
	}
	err := p.work(ctx)
	return job.Result{
		Message: fmt.Sprintf("%d records of %s prepared as %d messages", it.Counted("messages"), spec.Organization, it.Counted("prepared")),
		Counts:  it.Counts(),
	}, err
}

// ldmpPreparation makes points of records.
type ldmpPreparation struct {
	spec         PrepareLdmpSpec
	stringFields []*regexp.Regexp
	count        func(name string, n int64)
}

// decodeRecord reads a raw message and the logger's clock.
func decodeRecord(body []byte) (message pipeline.Message[ldmp.Record], clock time.Time, bad *problem) {
	if err := pipeline.Unmarshal(body, &message); err != nil {
		return message, clock, &problem{errclass.BadMessage, "not a raw message of a record: " + err.Error()}
	}
	if message.Payload.Station == "" || message.Payload.Table == "" {
		return message, clock, &problem{errclass.BadMessage, "not a raw message of a record: it names no station or no table"}
	}
	if err := message.Context.CheckStorage(); err != nil {
		return message, clock, &problem{errclass.BadMessage, err.Error()}
	}
	clock, err := message.Payload.Clock()
	if err != nil {
		return message, clock, &problem{errclass.BadMessage, err.Error()}
	}
	return message, clock, nil
}

// points makes the prepared message of a raw one. There is none if no field has a
// value, or a rule skips the record.
func (p *ldmpPreparation) points(body []byte) (out pipeline.Outgoing, ok bool, bad *problem, err error) {
	message, clock, bad := decodeRecord(body)
	if bad != nil {
		return out, false, bad, nil
	}
	record := message.Payload
	// The context has the slug of the station, the record the name that the vendor has for it.
	message.Context.Station, message.Context.Table = cmp.Or(message.Context.Station, record.Station), record.Table
	route := p.spec.route(message.Context, clock)
	if route.skip {
		p.count("skipped", 1)
		return out, false, nil, nil
	}
	if err := route.offset.Check(); err != nil {
		return out, false, &problem{errclass.BadMessage, fmt.Sprintf("station %s: %v", record.Station, err)}, nil
	}
	at := ldmp.At(clock, route.offset.Std())
	if imported := message.Context.ImportedAt; !imported.IsZero() && at.After(imported.Add(clockSlack)) {
		return out, false, &problem{errclass.FutureTimestamp, fmt.Sprintf("station %s, table %s: a record of %s, read at %s",
			record.Station, record.Table, at.Format(time.RFC3339), imported.Format(time.RFC3339))}, nil
	}
	values, missing, wrong := p.values(&route, record.Fields)
	p.count("missing", missing)
	if len(wrong) > 0 {
		bad = &problem{errclass.BadValue, fmt.Sprintf("station %s, table %s, record %d: %s",
			record.Station, record.Table, record.Number, strings.Join(wrong, "; "))}
	}
	if len(values) == 0 {
		p.count("empty", 1)
		return out, false, bad, nil
	}
	out, err = p.message(message.Context, route, at, values)
	return out, err == nil, bad, err
}

func (p *ldmpPreparation) message(context pipeline.Context, route ldmpRoute, at time.Time, values map[string]any) (pipeline.Outgoing, error) {
	safe := func(name string) string { return strings.ToLower(pipeline.SafeName(name)) }
	names := []string{
		"{location}", route.location, "{organization}", safe(context.OrgSlug),
		"{station}", safe(context.Station), "{table}", safe(context.Table),
	}
	context.UTCOffset = ""
	// A rule wins over the names that the message brings, and these over the spec's.
	name := func(rule, message, spec string) string {
		if rule == "" && message != "" {
			return message
		}
		return fill(cmp.Or(rule, spec), names...)
	}
	to := destination{
		operation: route.operation, location: route.location,
		database:    name(route.database, context.StorageDatabase, p.spec.Database),
		measurement: name(route.measurement, context.StorageTable, p.spec.Measurement),
	}
	return to.message(context, at, values)
}
