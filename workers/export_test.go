package workers

import (
	"context"
	"time"

	"google.golang.org/grpc"
)

// Polls watches calls to Temporal, as the host does.
type Polls struct{ *polls }

// NewPolls starts at the present time.
func NewPolls() Polls { return Polls{newPolls()} }

// Call makes a call by its method.
func (p Polls) Call(ctx context.Context, method string, invoke grpc.UnaryInvoker) error {
	return p.intercept(ctx, "/temporal.api.workflowservice.v1.WorkflowService/"+method, nil, nil, nil, invoke)
}

// Alive says whether the process asks for work.
func (p Polls) Alive() bool {
	_, alive := p.alive()
	return alive
}

// NewLease makes the context of a handler, and the function that prolongs it.
func NewLease(ctx context.Context, limit time.Duration) (lease context.Context, renew func() bool) {
	l := newLease(ctx, limit)
	return l, l.renew
}

// Pulse is the pulse of a process that is felt when the test says so.
type Pulse struct{ *pulse }

// NewPulse starts at the present time.
func NewPulse() Pulse { return Pulse{newPulse()} }

// Feel notes the time.
func (p Pulse) Feel() { p.feel() }

// PausedLately says that work may be stale.
func (p Pulse) PausedLately() bool { return p.pausedLately() }
