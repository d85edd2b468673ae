package api_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

func TestErrorsHaveCodesAndReasons(t *testing.T) {
	t.Parallel()
	const secret = "at 10.0.0.7 of the cluster"
	for _, c := range []struct {
		err    error
		code   connect.Code
		reason string
		shown  bool // the text goes to the caller
	}{
		{client.ErrNotFound, connect.CodeNotFound, "NOT_FOUND", true},
		{client.ErrNotInQueue, connect.CodeNotFound, "NOT_FOUND", true},
		{client.ErrNotOurs, connect.CodeFailedPrecondition, "NOT_OWNED", true},
		{client.ErrMoved, connect.CodeAborted, "ETAG_MISMATCH", true},
		{client.ErrTooLate, connect.CodeFailedPrecondition, "UNSUPPORTED", true},
		{client.ErrNoWorker, connect.CodeUnavailable, "NO_WORKER", true},
		{fmt.Errorf("%w (%w)", client.ErrOutcomeUnknown, client.ErrSlow), connect.CodeDeadlineExceeded, "CANCELED", true},
		{client.ErrSlow, connect.CodeUnavailable, "BACKEND_UNAVAILABLE", true},
		{client.ErrOtherSpec, connect.CodeAlreadyExists, "ALREADY_EXISTS", true},
		{client.ErrNotRetried, connect.CodeFailedPrecondition, "NOT_RETRIED", true},
		{&client.UnsupportedError{Action: "pause", JobID: "a.b", Mode: job.ModeQueued}, connect.CodeFailedPrecondition, "UNSUPPORTED", true},
		{&client.QueueEndedError{Queue: "q"}, connect.CodeFailedPrecondition, "UNSUPPORTED", true},
		{&client.StateError{}, connect.CodeFailedPrecondition, "UNSUPPORTED", true},
		{schedules.ErrUnderWay, connect.CodeFailedPrecondition, "UNSUPPORTED", true},
		{schedules.ErrMassPrune, connect.CodeFailedPrecondition, "MASS_DELETE", true},
		{schedules.ErrRefused, connect.CodeUnavailable, "BACKEND_UNAVAILABLE", true},
		{pipeline.ErrNoItem, connect.CodeNotFound, "NOT_FOUND", true},
		{job.Fail(errclass.PipelineUnreachable, "nats does not answer"), connect.CodeUnavailable, "BACKEND_UNAVAILABLE", true},
		{temporal.NewApplicationError("the queue is draining", "QueueDraining"), connect.CodeFailedPrecondition, "UNSUPPORTED", true},
		{context.Canceled, connect.CodeCanceled, "CANCELED", true},
		{context.DeadlineExceeded, connect.CodeDeadlineExceeded, "CANCELED", true},
		{serviceerror.NewNotFound("no such workflow"), connect.CodeNotFound, "NOT_FOUND", true},
		{serviceerror.NewUnavailable(secret), connect.CodeUnavailable, "BACKEND_UNAVAILABLE", false},
		{serviceerror.NewPermissionDenied(secret, ""), connect.CodeUnavailable, "BACKEND_UNAVAILABLE", false},
		{serviceerror.NewInvalidArgument(secret), connect.CodeInvalidArgument, "INVALID_REQUEST", false},
		{errors.New(secret), connect.CodeInternal, "INTERNAL", false},
		{connect.NewError(connect.CodeResourceExhausted, "too large"), connect.CodeResourceExhausted, "TOO_LARGE", true},
		{connect.NewError(connect.CodeInvalidArgument, "not JSON"), connect.CodeInvalidArgument, "INVALID_REQUEST", true},
		{connect.NewError(connect.CodeUnknown, secret), connect.CodeInternal, "INTERNAL", false},
	} {
		explained := api.Explain(t.Context(), fmt.Errorf("what was done: %w", c.err))
		reason, _ := api.InfoOf(explained)
		require.Equal(t, c.code, explained.Code(), "%v", c.err)
		require.Equal(t, c.reason, short(reason), "%v", c.err)
		if _, wire := errors.AsType[*connect.Error](c.err); c.shown && !wire {
			require.Equal(t, "what was done: "+c.err.Error(), explained.Message())
		}
		require.NotContains(t, explained.Message(), secret)
		require.Equal(t, explained, api.Explain(t.Context(), explained), "once is enough")
	}
	require.True(t, api.HasRunOtherSpec(api.Explain(t.Context(), fmt.Errorf("job a.b: %w, and more", client.ErrOtherSpec))))
	require.Nil(t, api.Explain(t.Context(), nil))
	require.Equal(t, jobsv1.ErrorReason_ERROR_REASON_UNSPECIFIED, reasonOf(errors.New("of another API")))
}

func reasonOf(err error) jobsv1.ErrorReason {
	reason, _ := api.InfoOf(err)
	return reason
}
