package load

import (
	"context"
	"net/http"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/iterate"
)

// Option changes what the job type works with.
type Option func(*liveInflux)

// WithHTTPClient sets what requests to InfluxDB are made with.
func WithHTTPClient(client *http.Client) Option { return func(h *liveInflux) { h.http = client } }

// WithBackoff sets how long a mirror is left alone after its first failure, and at
// most. Defaults to half a second and a minute.
func WithBackoff(first, most time.Duration) Option {
	return func(h *liveInflux) { h.backoff = backoff{first, most} }
}

type liveInflux struct {
	pipeline *pipeline.Client
	http     *http.Client
	backoff  backoff
}

// LiveInflux makes the job type LiveLoadInfluxV1. A nil client is enough to
// describe it.
//
// For spec.IterationDuration, an iteration takes messages for each mirror, writes
// their points in batches, and acknowledges a message when each of its points is
// stored, kept in quarantine, or counted as older than the database keeps. A mirror
// that fails is left alone for a while, and tried again; nothing more is
// acknowledged for it, and it gets the same messages again, in the order of the
// stream. The iteration fails when no mirror can go on.
func LiveInflux(client *pipeline.Client, options ...Option) job.Type {
	h := &liveInflux{pipeline: client, backoff: backoff{500 * time.Millisecond, 30 * time.Second}}
	for _, option := range options {
		option(h)
	}
	return job.NewType("LiveLoadInfluxV1", job.WorkerLoad,
		"Loads the prepared messages of a location into InfluxDB 1.x.",
		h.handle, job.ModeContinuous)
}

func (h *liveInflux) handle(ctx context.Context, run job.Run, spec LiveInfluxSpec) (job.Result, error) {
	l := &iteration{
		spec: spec, pipeline: h.pipeline, backoff: h.backoff,
		over: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	rules, err := spec.rules()
	if err != nil {
		return job.Result{}, job.Fail(errclass.InvalidSpec, "job %s: %w", run.Job().ID, err)
	}
	l.rules = rules
	l.Iteration = iterate.New(run, spec.IterationDuration.Std(), l.progress)
	for _, m := range spec.mirrors() {
		config := influx.Config{URL: m.InfluxURL, Username: m.Username, HTTPClient: h.http}
		unopened, err := influx.NewWriter(config)
		if err != nil {
			return job.Result{}, job.Fail(errclass.InvalidSpec, "job %s: mirror %s: %w", run.Job().ID, m.Name, err)
		}
		l.writers = append(l.writers, newMirrorWriter(l, m, config, unopened.Address()))
	}
	err = l.Loop(ctx, l.load)
	return l.result(), err
}
