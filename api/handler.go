package api

import (
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectgzip"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/grpcreflect"

	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// Bounds of a request message in bytes.
const (
	MaxRequest = 1 << 20
	// MaxBatch is that of methods that take many jobs.
	MaxBatch = 32 << 20
)

// batchMethods are the methods that take many jobs.
var batchMethods = []string{
	jobsv1connect.JobSetServicePlanJobSetProcedure,
	jobsv1connect.JobSetServiceApplyJobSetProcedure,
	jobsv1connect.QueueServiceEnqueueJobsProcedure,
}

// TakesManyJobs reports whether a procedure takes many jobs, so that a call is large and costs
// much.
func TakesManyJobs(procedure string) bool { return slices.Contains(batchMethods, procedure) }

// Handler serves the API over HTTP: Connect with JSON and protobuf, gRPC and gRPC-Web. gRPC
// and reflection need HTTP/2, without TLS too: see [http.Protocols].
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	errors := connecthttp.NewErrorWriter()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_ = errors.Write(w, r, noMethod(r.URL.Path)) // Whoever has left needs no answer.
	})
	bounds := []connecthttp.Option{
		connecthttp.WithCodecs(newBinaryCodec(), newJSONCodec()), connecthttp.WithCompressors(boundedGzip{connectgzip.New()}),
		connecthttp.WithConditionalOptions(func(spec connect.Spec) []connecthttp.Option {
			if TakesManyJobs(spec.Procedure) {
				return []connecthttp.Option{connecthttp.WithReadMaxBytes(MaxBatch)}
			}
			return []connecthttp.Option{connecthttp.WithReadMaxBytes(MaxRequest)}
		}),
	}
	connecthttp.Mount(mux, s.connect, bounds...)
	services := s.services()
	health := connect.NewServer(s.explainErrors)
	s.registerHealth(health, services)
	connecthttp.Mount(mux, health, bounds...)
	reflector := grpcreflect.NewStaticReflector(append(services, healthService)...)
	mux.Handle(grpcreflect.NewHandlerV1(reflector))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector))
	return mux
}

// services are the names of the services of the API.
func (s *Server) services() []string {
	var names []string
	for spec := range s.connect.Specs() {
		service, _, _ := strings.Cut(strings.TrimPrefix(spec.Procedure, "/"), "/")
		if !slices.Contains(names, service) {
			names = append(names, service)
		}
	}
	return names
}
