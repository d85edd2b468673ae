package readmodel_test

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// TestEveryCallTakesATurn calls each method of Temporal's service, with an empty request, and
// then through the SDK.
func TestEveryCallTakesATurn(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	r, err := readmodel.New(t.Context(), readmodel.Config{Temporal: st.Settings()})
	require.NoError(t, err)
	temporal, turns := r.CountTurns()
	t.Cleanup(temporal.Temporal().Close)
	service := reflect.ValueOf(temporal.Temporal().WorkflowService())
	require.Greater(t, service.NumMethod(), 90)
	for n := range service.NumMethod() {
		name, method := service.Type().Method(n).Name, service.Method(n)
		request := reflect.New(method.Type().In(1).Elem())
		method.Call([]reflect.Value{reflect.ValueOf(t.Context()), request})
		require.Equal(t, n+1, turns(), name)
	}
	before := turns()
	_, err = temporal.Queues.List(t.Context())
	require.NoError(t, err)
	require.Greater(t, turns(), before)
}

func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReader(t, readmodel.Config{CallsPerSecond: 4}, time.Second, nil)
		start(t, r)
		begin := time.Now()
		for range 1000 {
			require.NoError(t, r.Call(t.Context(), t.Context(), func(context.Context) error { return nil }))
		}
		require.InDelta(t, 1000/(4*0.9), time.Since(begin).Seconds(), 5, "a tenth is left for drift")
	})
}

// TestWaitTakesNoTimeOfACall requires that a call has its ten seconds though it has waited for
// longer than the SDK allows, and that it ends with its read.
func TestWaitTakesNoTimeOfACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReader(t, readmodel.Config{CallsPerSecond: 0.1}, time.Second, nil)
		start(t, r)
		type key struct{}
		allowed, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "of the call"), time.Second)
		defer cancel()
		for range 12 {
			begun := false
			require.NoError(t, r.Call(t.Context(), allowed, func(ctx context.Context) error {
				begun = true
				deadline, _ := ctx.Deadline()
				require.Equal(t, 10*time.Second, time.Until(deadline))
				require.Equal(t, "of the call", ctx.Value(key{}))
				return ctx.Err()
			}))
			require.True(t, begun)
		}
		require.Error(t, allowed.Err())

		elapse(time.Minute)
		read, end := context.WithCancel(t.Context())
		require.ErrorIs(t, r.Call(read, t.Context(), func(ctx context.Context) error {
			end()
			<-ctx.Done()
			return ctx.Err()
		}), context.Canceled)
	})
}
