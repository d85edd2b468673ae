package api

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/client"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// limitTime bounds calls that are no streams.
func (s *Server) limitTime(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		if spec.StreamType == connect.StreamTypeUnary {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, s.Timeout)
			defer cancel()
		}
		return next(ctx, spec, stream)
	}
}

// explainErrors gives every error a code and a reason, and turns panics into errors.
func (s *Server) explainErrors(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				s.Logger.ErrorContext(ctx, "a call of the Job API panicked", "procedure", spec.Procedure, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
				err = internalError()
			}
		}()
		explained := s.explain(ctx, worded(spec.Procedure, next(ctx, spec, stream)))
		if explained != nil && explained.Code() == connect.CodeInternal {
			s.Logger.ErrorContext(ctx, "a call of the Job API failed", "procedure", spec.Procedure, "error", explained.Unwrap())
		}
		if explained == nil {
			return nil // And not a nil of another type.
		}
		return explained
	}
}

// worded says in the words of a verb why it does not fit a job.
func worded(procedure string, err error) error {
	refused, ok := errors.AsType[*client.UnsupportedError](err)
	if !ok {
		return err
	}
	of := verbs.Subject{Job: verbs.JobState{Mode: word(string(refused.Mode))}}
	if refused.Stopped {
		of.Job.Status = jobsv1.JobStatus_JOB_STATUS_STOPPED
	}
	if v := verbs.OfProcedure(procedure); v != nil && !v.Applies(of) {
		return newError(connect.CodeFailedPrecondition, unsupported, "%s", verbs.About("job "+refused.JobID, v.WhyNot(of)))
	}
	return err
}

// withoutTemporal are the services, and the methods of others, that do not ask Temporal.
var withoutTemporal = []string{
	jobsv1connect.ArchiveServiceName, jobsv1connect.BookmarkServiceName, jobsv1connect.ChangeServiceName, jobsv1connect.LoadServiceName, jobsv1connect.QuarantineServiceName,
	jobsv1connect.ReverseSyncServiceName, jobsv1connect.UploadServiceName, jobsv1connect.IntegrationServiceListIntegrationsProcedure,
	jobsv1connect.IntegrationServiceCheckIntegrationProcedure, jobsv1connect.IntegrationServiceEnableIntegrationProcedure,
	jobsv1connect.IntegrationServiceDisableIntegrationProcedure,
}

// connected connects to Temporal before a call that asks it.
func (s *Server) connected(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		service, _, _ := strings.Cut(strings.TrimPrefix(spec.Procedure, "/"), "/")
		if s.Connect != nil && !slices.Contains(withoutTemporal, service) && !slices.Contains(withoutTemporal, spec.Procedure) {
			if err := s.Connect(ctx); err != nil {
				return newError(connect.CodeUnavailable, backendDown, "%s", oneLine(err))
			}
		}
		return next(ctx, spec, stream)
	}
}

// unknownMethod refuses calls of methods that there are not.
func unknownMethod(_ context.Context, spec connect.Spec, _ connect.ServerStream) error {
	return noMethod(spec.Procedure)
}

func noMethod(procedure string) *connect.Error {
	return newError(connect.CodeUnimplemented, unknownProcedure, "there is no method %.200s", procedure)
}
