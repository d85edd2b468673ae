package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"
)

// TestABusyServerIsAskedLongerThanALostTaskTakes has a Schedule refuse a reader for as long as
// Temporal takes to give a lost task to another worker.
func TestABusyServerIsAskedLongerThanALostTaskTakes(t *testing.T) {
	t.Parallel()
	const lost = 10 * time.Second
	busy := serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW, "consistent query buffer is full")
	for name, test := range map[string]struct {
		err      error
		answered bool
	}{
		"busy":  {busy, true},
		"away":  {serviceerror.NewUnavailable("connection refused"), false},
		"wrong": {serviceerror.NewInvalidArgument("no such thing"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				answer := func(context.Context, string, ...grpc.CallOption) (string, error) {
					if time.Since(began) < lost {
						return "", test.err
					}
					return "answer", nil
				}
				out, err := call(t.Context(), answer, "question")
				if !test.answered {
					require.ErrorIs(t, err, test.err)
					require.Less(t, time.Since(began), lost)
					return
				}
				require.NoError(t, err)
				require.Equal(t, "answer", out)
			})
		})
	}
}
