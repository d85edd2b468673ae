package extract

import (
	"context"
	"fmt"

	"github.com/dendrascience/dendra-jobs/internal/hobolink"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

type prepareHobo struct{ pipeline *pipeline.Client }

// PrepareHoboTimeFrame makes the job type of that name. A nil client is enough to
// describe it.
//
// For spec.IterationDuration, an iteration takes raw messages of an organization's
// HOBO loggers and publishes the points that their extract has published beside
// them. It is there for raw messages that come without an extract: those that are
// replayed from the archive.
func PrepareHoboTimeFrame(client *pipeline.Client) job.Type {
	h := &prepareHobo{pipeline: client}
	return job.NewType("PrepareHoboTimeFrame", job.WorkerExtract,
		"Makes points of replayed readings of HOBO loggers, as their extract did, and addresses them to a location.",
		h.handle, job.ModeContinuous)
}

func (h *prepareHobo) handle(ctx context.Context, run job.Run, spec PrepareHoboSpec) (job.Result, error) {
	p := newPreparation(run, spec.IterationDuration, h.pipeline, spec.OperationMode, spec.Organization, hoboSource)
	l := &hoboPreparation{spec: spec, loggers: map[string]HoboDestination{}, count: p.Count}
	for _, logger := range spec.Loggers {
		l.loggers[logger.Serial] = logger
	}
	p.points = l.points
	err := p.work(ctx)
	return job.Result{
		Message: fmt.Sprintf("%d readings of %s prepared as %d messages", p.Counted("messages"), spec.Organization, p.Counted("prepared")),
		Counts:  p.Counts(),
	}, err
}

// hoboPreparation makes points of samples.
type hoboPreparation struct {
	spec    PrepareHoboSpec
	loggers map[string]HoboDestination
	count   func(name string, n int64)
}

// points makes the prepared message of a raw one. There is none if no observation
// has a value.
func (p *hoboPreparation) points(body []byte) (out pipeline.Outgoing, ok bool, bad *problem, err error) {
	context, observations, bad := decodeSample(body)
	if bad != nil {
		return out, false, bad, nil
	}
	to := p.spec.destination(p.loggers[observations[0].Logger], context)
	out, ok, err = hoboMessage(context, to, observations)
	if err == nil && !ok {
		p.count("empty", 1)
	}
	return out, ok, nil, err
}

// decodeSample reads a raw message: observations of one logger and one time, at
// least one.
func decodeSample(body []byte) (context pipeline.Context, observations []hobolink.Observation, bad *problem) {
	refuse := func(format string, args ...any) (pipeline.Context, []hobolink.Observation, *problem) {
		return context, nil, &problem{errclass.BadMessage, "not a raw message of a HOBO logger: " + fmt.Sprintf(format, args...)}
	}
	var message pipeline.Message[HoboSample]
	if err := pipeline.Unmarshal(body, &message); err != nil {
		return refuse("%v", err)
	}
	context = message.Context
	if context.Station == "" || context.Table == "" {
		return refuse("its context names no station or no table")
	}
	if err := context.CheckStorage(); err != nil {
		return refuse("%v", err)
	}
	sample := message.Payload
	if len(sample.Observations) == 0 {
		return refuse("it has no observations")
	}
	observations = make([]hobolink.Observation, 0, len(sample.Observations))
	for i, raw := range sample.Observations {
		o, err := hobolink.ParseObservation(raw)
		if err != nil {
			return refuse("observation %d: %v", i+1, err)
		}
		if at := o.Time.Format(hoboTimestamp); at != sample.Timestamp {
			return refuse("observation %d is of %s, the message of %.40q", i+1, at, sample.Timestamp)
		}
		if i > 0 && o.Logger != observations[0].Logger {
			return refuse("it has observations of loggers %s and %s", observations[0].Logger, o.Logger)
		}
		observations = append(observations, o)
	}
	return context, observations, nil
}
