package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// loadService implements dendra.jobs.v1.LoadService.
type loadService struct{ *Server }

// pipeline is the client of NATS.
func (s *Server) pipeline() (*pipeline.Client, error) {
	if s.Pipeline == nil {
		return nil, newError(connect.CodeUnavailable, backendDown, "this server is not connected to NATS, which loads, the quarantine, bookmarks, audits, logs of runs and the history of changes need")
	}
	return s.Pipeline, nil
}

// ListLoads implements the service. Before the first worker there are no streams, and so
// no loads.
func (s *loadService) ListLoads(ctx context.Context, r *jobsv1.ListLoadsRequest) (*jobsv1.ListLoadsResponse, error) {
	client, err := s.pipeline()
	if err != nil {
		return nil, err
	}
	loads, err := client.Loads(ctx)
	if err != nil && !errors.Is(err, pipeline.ErrNoStream) {
		return nil, err
	}
	response := &jobsv1.ListLoadsResponse{}
	if err != nil {
		response.Note = fmt.Sprintf("there is no stream %s on %s: no worker has connected to it yet", pipeline.StreamPrepared, client.Address())
	}
	for _, load := range loads {
		if r.GetLocation() != "" && r.GetLocation() != load.Location {
			continue
		}
		response.Loads = append(response.Loads, readmodel.LoadMessage(load, time.Now()))
	}
	return response, nil
}

// SkipHeldMessage implements the service.
func (s *loadService) SkipHeldMessage(ctx context.Context, r *jobsv1.SkipHeldMessageRequest) (*jobsv1.SkipHeldMessageResponse, error) {
	client, err := s.pipeline()
	if err != nil {
		return nil, err
	}
	flow, mirror := pipeline.Operation(r.GetFlow()), r.GetMirror()
	if flow == "" {
		flow = pipeline.OperationLive
	}
	if mirror == "" {
		mirror = pipeline.DefaultMirror
	}
	if err := flow.Check(); err != nil {
		return nil, badRequest(violation{"flow", err.Error()})
	}
	loads, err := client.Loads(ctx)
	if err != nil && !errors.Is(err, pipeline.ErrNoStream) {
		return nil, err
	}
	for _, load := range loads {
		if load.Location != r.GetLocation() || load.Operation != flow || load.Mirror != mirror {
			continue
		}
		shown := readmodel.LoadMessage(load, time.Now())
		if whyNot := verbs.SkipHeldMessage.WhyNot(verbs.OfLoad(shown)); whyNot != "" {
			return nil, newError(connect.CodeFailedPrecondition, unsupported, "load %s: %s", readmodel.LoadName(shown), whyNot)
		}
		held := load.Breaker.Held
		if r.GetSequence() != 0 && r.GetSequence() != int64(held.Sequence) {
			return nil, newError(connect.CodeAborted, etagMismatch, "message %d does not block mirror %s of location %s any more: look again", r.GetSequence(), mirror, load.Location)
		}
		return &jobsv1.SkipHeldMessageResponse{Sequence: int64(held.Sequence), Subject: held.Subject}, client.RequestSkip(ctx, load.Consumer(), *held)
	}
	return nil, newError(connect.CodeNotFound, notFound, "nothing was loaded of location %.100q with flow %s into mirror %.100q", r.GetLocation(), flow, mirror)
}
