package api

import (
	"context"
	"slices"
	"time"

	"connectrpc.com/connect/v2"
	sdk "go.temporal.io/sdk/client"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const (
	healthService = "grpc.health.v1.Health"
	// healthTimeout is how long Temporal may take to answer a check.
	healthTimeout = 3 * time.Second
	// healthEvery is how often a watched server is checked.
	healthEvery = 5 * time.Second
)

// registerHealth serves grpc.health.v1: a service is serving while Temporal answers.
func (s *Server) registerHealth(server *connect.Server, services []string) {
	methods := healthpb.File_grpc_health_v1_health_proto.Services().ByName("Health").Methods()
	check := func(ctx context.Context, name string) (*healthpb.HealthCheckResponse, error) {
		if name != "" && !slices.Contains(services, name) {
			return nil, newError(connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND, "there is no service %.100q", name)
		}
		return &healthpb.HealthCheckResponse{Status: s.healthStatus(ctx)}, nil
	}
	server.Register(connect.Method{
		Spec: connect.Spec{
			StreamType: connect.StreamTypeUnary, Schema: methods.ByName("Check"),
			Procedure: "/" + healthService + "/Check", IdempotencyLevel: connect.IdempotencyNoSideEffects,
		},
		Handler: func(ctx context.Context, _ connect.Spec, stream connect.ServerStream) error {
			var request healthpb.HealthCheckRequest
			if err := stream.Receive(&request); err != nil {
				return err
			}
			response, err := check(ctx, request.GetService())
			if err != nil {
				return err
			}
			return stream.Send(response)
		},
	}, connect.Method{
		Spec: connect.Spec{
			StreamType: connect.StreamTypeServer, Schema: methods.ByName("Watch"), Procedure: "/" + healthService + "/Watch",
		},
		Handler: func(ctx context.Context, _ connect.Spec, stream connect.ServerStream) error {
			var request healthpb.HealthCheckRequest
			if err := stream.Receive(&request); err != nil {
				return err
			}
			return watchHealth(ctx, stream, func() (*healthpb.HealthCheckResponse, error) { return check(ctx, request.GetService()) })
		},
	})
}

// watchHealth sends the status whenever it changes. Of a service that is not known the
// protocol wants a status and no error.
func watchHealth(ctx context.Context, stream connect.ServerStream, check func() (*healthpb.HealthCheckResponse, error)) error {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	sent := healthpb.HealthCheckResponse_UNKNOWN
	for {
		response, err := check()
		if err != nil {
			response = &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVICE_UNKNOWN}
		}
		if response.GetStatus() != sent {
			sent = response.GetStatus()
			if err := stream.Send(response); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (s *Server) healthStatus(ctx context.Context) healthpb.HealthCheckResponse_ServingStatus {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if _, err := s.Client.Temporal().CheckHealth(ctx, &sdk.CheckHealthRequest{}); err != nil {
		return healthpb.HealthCheckResponse_NOT_SERVING
	}
	return healthpb.HealthCheckResponse_SERVING
}
