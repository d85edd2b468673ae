package temporalclient

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"

	"github.com/dendrascience/dendra-jobs/internal/tracing"
)

// headerKey is where the SDKs of Temporal carry a span.
const headerKey = "_tracer-data"

// TracingInterceptor carries spans through workflows and activities, by their
// headers. It changes no command of a workflow. Queries and updates have none: they
// come all the time.
func TracingInterceptor() (interceptor.Interceptor, error) {
	traced, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		DisableQueryTracing: true, DisableUpdateTracing: true, DisableSignalTracing: true,
		DisableBaggage: true, AllowInvalidParentSpans: true,
	})
	if err != nil {
		return nil, fmt.Errorf("traces of Temporal: %w", err)
	}
	return traced, nil
}

// Header carries the span of ctx to a workflow that is started by a call of the API. It is
// nil if there is none.
func Header(ctx context.Context) *commonpb.Header {
	carrier := tracing.Carrier(ctx)
	if len(carrier) == 0 {
		return nil
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(carrier)
	if err != nil {
		return nil // a map of strings has no error
	}
	return &commonpb.Header{Fields: map[string]*commonpb.Payload{headerKey: payload}}
}
