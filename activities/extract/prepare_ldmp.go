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
	p := newPreparation(run, spec.IterationDuration, h.pipeline, spec.OperationMode, spec.Organization, ldmp.Source)
	l, err := newLdmpPreparation(spec, p.Count)
	if err != nil {
		return job.Result{}, job.Fail(errclass.InvalidSpec, "job %s: %w", run.Job().ID, err)
	}
	p.points = l.points
	err = p.work(ctx)
	return job.Result{
		Message: fmt.Sprintf("%d records of %s prepared as %d messages", p.Counted("messages"), spec.Organization, p.Counted("prepared")),
		Counts:  p.Counts(),
	}, err
}

// ldmpPreparation makes points of records.
type ldmpPreparation struct {
	spec         PrepareLdmpSpec
	stringFields []*regexp.Regexp
	count        func(name string, n int64)
}

func newLdmpPreparation(spec PrepareLdmpSpec, count func(name string, n int64)) (*ldmpPreparation, error) {
	l := &ldmpPreparation{spec: spec, count: count}
	for _, text := range spec.StringFields {
		pattern, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("string_fields: %w", err)
		}
		l.stringFields = append(l.stringFields, pattern)
	}
	return l, nil
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

// points makes the prepared message of a raw one. There is none if there is no point.
func (p *ldmpPreparation) points(body []byte) (out pipeline.Outgoing, ok bool, bad *problem, err error) {
	context, point, ok, bad := p.point(body)
	if !ok {
		return out, false, bad, nil
	}
	out, err = point.message(context)
	return out, err == nil, bad, err
}

// point makes the point of a raw message. There is none if no field has a value, or a rule
// skips the record.
func (p *ldmpPreparation) point(body []byte) (context pipeline.Context, point Point, ok bool, bad *problem) {
	message, clock, bad := decodeRecord(body)
	if bad != nil {
		return context, point, false, bad
	}
	record := message.Payload
	// The context has the slug of the station, the record the name that the vendor has for it.
	message.Context.Station, message.Context.Table = cmp.Or(message.Context.Station, record.Station), record.Table
	route := p.spec.route(message.Context, clock)
	if route.skip {
		p.count("skipped", 1)
		return context, point, false, nil
	}
	if err := route.offset.Check(); err != nil {
		return context, point, false, &problem{errclass.BadMessage, fmt.Sprintf("station %s: %v", record.Station, err)}
	}
	at := ldmp.At(clock, route.offset.Std())
	if imported := message.Context.ImportedAt; !imported.IsZero() && at.After(imported.Add(clockSlack)) {
		return context, point, false, &problem{errclass.FutureTimestamp, fmt.Sprintf("station %s, table %s: a record of %s, read at %s",
			record.Station, record.Table, at.Format(time.RFC3339), imported.Format(time.RFC3339))}
	}
	values, missing, wrong := p.values(&route, record.Fields)
	p.count("missing", missing)
	if len(wrong) > 0 {
		bad = &problem{errclass.BadValue, fmt.Sprintf("station %s, table %s, record %d: %s",
			record.Station, record.Table, record.Number, strings.Join(wrong, "; "))}
	}
	if len(values) == 0 {
		p.count("empty", 1)
		return context, point, false, bad
	}
	point = Point{Destination: p.destination(message.Context, route), Time: at, Fields: values}
	message.Context.UTCOffset = ""
	return message.Context, point, true, bad
}

func (p *ldmpPreparation) destination(context pipeline.Context, route ldmpRoute) Destination {
	safe := func(name string) string { return strings.ToLower(pipeline.SafeName(name)) }
	names := []named{
		{"location", route.location}, {"organization", safe(context.OrgSlug)},
		{"station", safe(context.Station)}, {"table", safe(context.Table)},
	}
	// A rule wins over the names that the message brings, and these over the spec's.
	name := func(rule, message, spec string) string {
		if rule == "" && message != "" {
			return message
		}
		return fill(cmp.Or(rule, spec), names...)
	}
	return Destination{
		Operation: route.operation, Location: route.location,
		Database:    name(route.database, context.StorageDatabase, p.spec.Database),
		Measurement: name(route.measurement, context.StorageTable, p.spec.Measurement),
	}
}

// RecordPoints makes points of raw messages, as PrepareCampbellScientificLdmp does.
type RecordPoints struct{ of *ldmpPreparation }

// PointsBy makes points by the spec of a job PrepareCampbellScientificLdmp.
func PointsBy(spec PrepareLdmpSpec) (RecordPoints, error) {
	of, err := newLdmpPreparation(spec, func(string, int64) {})
	return RecordPoints{of}, err
}

// Point makes the point of a raw message, if there is one to be made. Refused says why the
// message, or fields of it, would go to quarantine, "" if nothing would.
func (r RecordPoints) Point(raw pipeline.Outgoing) (point Point, ok bool, refused string) {
	_, point, ok, bad := r.of.point(raw.Body)
	if bad != nil {
		refused = bad.reason
	}
	return point, ok, refused
}
