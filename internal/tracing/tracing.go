// Package tracing makes OpenTelemetry traces. It is off unless the standard variables
// of OpenTelemetry name a collector.
package tracing

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Variables that turn traces on. The exporter, the sampler and the batches read the others
// of OpenTelemetry. The protocol is OTLP over HTTP.
const (
	EnvEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	EnvTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envDisabled       = "OTEL_SDK_DISABLED"
)

// flushTimeout bounds how long the end of a process waits for its last spans.
const flushTimeout = 5 * time.Second

var on atomic.Bool

// On reports whether the process makes traces.
func On() bool { return on.Load() }

// Start turns traces on if the environment names a collector. The service is the name of
// the program, unless OTEL_SERVICE_NAME has another. Stop sends what is left, for at most
// five seconds. A collector that is away loses spans and holds up nothing.
func Start(ctx context.Context, service string) (stop func(), err error) {
	if os.Getenv(EnvEndpoint) == "" && os.Getenv(EnvTracesEndpoint) == "" || os.Getenv(envDisabled) == "true" {
		return func() {}, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces to %s: %w", os.Getenv(EnvEndpoint), err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", service)), resource.WithFromEnv(),
		resource.WithHost(), resource.WithProcessPID())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	otel.SetTracerProvider(provider)
	on.Store(true)
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		_ = provider.Shutdown(ctx) // the collector is away: the spans are lost
	}, nil
}

const library = "github.com/dendrascience/dendra-jobs"

// Span begins a span below that of ctx. Call end with the error of what it is about, nil
// if there is none. The attributes are pairs of names and values. The text of the
// error stays out of the trace, since it may hold more than a trace should.
func Span(ctx context.Context, name string, attributes ...string) (spanned context.Context, end func(error)) {
	if !on.Load() {
		return ctx, func(error) {}
	}
	pairs := make([]attribute.KeyValue, 0, len(attributes)/2)
	for i := 0; i+1 < len(attributes); i += 2 {
		pairs = append(pairs, attribute.String(attributes[i], attributes[i+1]))
	}
	spanned, span := otel.Tracer(library).Start(ctx, name, trace.WithAttributes(pairs...))
	return spanned, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// Call begins a span of a call to a server. A call without a span above it has none: it is
// not part of a run, or a loop of the process makes it.
func Call(ctx context.Context, name string, attributes ...string) (spanned context.Context, end func(error)) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func(error) {}
	}
	return Span(ctx, name, attributes...)
}

// Carrier is the span of ctx as it travels to another process; empty if there is none.
func Carrier(ctx context.Context) map[string]string {
	carrier := propagation.MapCarrier{}
	if on.Load() {
		propagation.TraceContext{}.Inject(ctx, carrier)
	}
	return carrier
}

// IDs are the ids of the span of ctx, for logs; "" if there is none.
func IDs(ctx context.Context) (traceID, spanID string) {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return "", ""
	}
	return span.TraceID().String(), span.SpanID().String()
}
