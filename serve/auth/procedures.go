package auth

import (
	"context"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// least is the least role of each procedure with side effects. Those without need
// [RoleViewer].
//
// An operator runs and stops what is declared. What lets a caller choose a spec is an
// admin's: a spec may name a secret and the server that it is sent to. So is what ends or
// drops work for good.
var least = map[string]Role{
	jobsv1connect.JobServiceCreateJobProcedure:     RoleAdmin,
	jobsv1connect.JobServiceUpdateJobProcedure:     RoleAdmin,
	jobsv1connect.JobServiceDeleteJobProcedure:     RoleAdmin,
	jobsv1connect.JobServiceRunJobProcedure:        RoleOperator,
	jobsv1connect.JobServiceStopJobProcedure:       RoleOperator,
	jobsv1connect.JobServiceRestartJobProcedure:    RoleOperator,
	jobsv1connect.JobServicePauseJobProcedure:      RoleOperator,
	jobsv1connect.JobServiceResumeJobProcedure:     RoleOperator,
	jobsv1connect.JobServiceSkipNextStartProcedure: RoleOperator,
	jobsv1connect.JobServiceBackfillJobProcedure:   RoleOperator,

	jobsv1connect.JobSetServiceApplyJobSetProcedure: RoleAdmin,

	jobsv1connect.RunServiceRetryRunProcedure:     RoleOperator,
	jobsv1connect.RunServiceCancelRunProcedure:    RoleOperator,
	jobsv1connect.RunServiceTerminateRunProcedure: RoleAdmin,

	jobsv1connect.QueueServiceEnqueueJobsProcedure:           RoleAdmin,
	jobsv1connect.QueueServiceCancelQueueItemProcedure:       RoleOperator,
	jobsv1connect.QueueServiceMoveQueueItemProcedure:         RoleOperator,
	jobsv1connect.QueueServicePurgeQueueProcedure:            RoleAdmin,
	jobsv1connect.QueueServicePauseQueueProcedure:            RoleOperator,
	jobsv1connect.QueueServiceResumeQueueProcedure:           RoleOperator,
	jobsv1connect.QueueServiceDrainQueueProcedure:            RoleOperator,
	jobsv1connect.QueueServiceSkipFailedItemProcedure:        RoleOperator,
	jobsv1connect.QueueServiceSetQueueFailurePolicyProcedure: RoleOperator,
	jobsv1connect.QueueServiceRecoverQueueProcedure:          RoleOperator,
	jobsv1connect.QueueServiceRetryDeadLettersProcedure:      RoleOperator,
	jobsv1connect.QueueServiceDropDeadLettersProcedure:       RoleAdmin,

	jobsv1connect.LoadServiceSkipHeldMessageProcedure: RoleOperator, // It goes to quarantine.

	jobsv1connect.QuarantineServiceReplayQuarantineItemsProcedure: RoleOperator,
	jobsv1connect.QuarantineServiceDropQuarantineItemsProcedure:   RoleAdmin,

	jobsv1connect.AlertServiceCreateSilenceProcedure: RoleOperator,
	jobsv1connect.AlertServiceDeleteSilenceProcedure: RoleOperator,
}

// Least is the least role that a call needs. A procedure without a row needs an admin.
func Least(spec connect.Spec) Role {
	if !Changes(spec) {
		return RoleViewer
	}
	if role, ok := least[spec.Procedure]; ok {
		return role
	}
	return RoleAdmin
}

// Changes says whether a procedure has side effects. One that there is not has none.
func Changes(spec connect.Spec) bool {
	return spec.Schema != nil && spec.IdempotencyLevel != connect.IdempotencyNoSideEffects
}

// CheckRoles is the interceptor that refuses calls of callers who may not make them, and of
// those whom nobody has authenticated. It tells the API who the caller is.
func CheckRoles(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		caller, ok := CallerOf(ctx)
		if !ok {
			return Unauthenticated("nobody says who makes this call")
		}
		if need := Least(spec); caller.Role < need {
			return api.NewError(connect.CodePermissionDenied, jobsv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED,
				"%s needs the role %s; %s has the role %s", spec.Procedure, need, caller.Name, caller.Role)
		}
		return next(api.WithCaller(ctx, caller.Name), spec, stream)
	}
}

// Unauthenticated is the error of a request without valid credentials.
func Unauthenticated(format string, args ...any) *connect.Error {
	return api.NewError(connect.CodeUnauthenticated, jobsv1.ErrorReason_ERROR_REASON_UNAUTHENTICATED, format, args...)
}
