package api

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/otelconnect"
	"go.opentelemetry.io/otel/propagation"

	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/internal/tracing"
)

// codeOK is the label of calls without an error.
const codeOK = "ok"

// observe counts calls, and measures those that are no streams.
func observe(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		if spec.Schema == nil {
			return next(ctx, spec, stream) // Callers choose such names: they are no labels.
		}
		began := time.Now()
		err := next(ctx, spec, stream)
		code := codeOK
		if err != nil {
			code = connect.CodeOf(err).String()
		}
		procedure := strings.TrimPrefix(spec.Procedure, "/")
		metrics.APICalls.Inc(procedure, code)
		if spec.StreamType == connect.StreamTypeUnary {
			metrics.APIDuration.Observe(time.Since(began), procedure)
		}
		return err
	}
}

// traced makes a span of each call while the process makes traces. What a caller says of its
// own trace is believed.
func traced(logger *slog.Logger) connect.ServerInterceptor {
	pass := func(next connect.ServerFunc) connect.ServerFunc { return next }
	if !tracing.On() {
		return pass
	}
	interceptor, err := otelconnect.NewServerInterceptor(
		otelconnect.WithTrustRemote(), otelconnect.WithoutMetrics(), otelconnect.WithPropagator(propagation.TraceContext{}))
	if err != nil {
		logger.Error("calls of the Job API have no traces", "error", err)
		return pass
	}
	return interceptor
}
