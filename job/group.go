package job

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// PanicError is a panic that became an error.
type PanicError struct {
	// Value is what panic was called with.
	Value any
	// Stack is the stack of the goroutine, as package runtime/debug writes it.
	Stack string
}

// Error implements error. It leaves out the stack.
func (p *PanicError) Error() string { return fmt.Sprintf("panicked: %v", p.Value) }

// Safely calls do. A panic in it becomes an error of class Panic, which wraps a [PanicError].
func Safely(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = Fail(errclass.Panic, "%w", &PanicError{Value: value, Stack: string(debug.Stack())})
		}
	}()
	return do()
}

// Group runs goroutines of a handler. A panic in one of them would end the whole process, and so
// the runs of others: in a group it is an error as [Safely] makes it.
type Group struct{ group *errgroup.Group }

// NewGroup makes a group. Its context ends with ctx, with the first error, or with [Group.Wait].
func NewGroup(ctx context.Context) (*Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	return &Group{group}, ctx
}

// Go calls do in a goroutine. It waits while the group is at its limit.
func (g *Group) Go(do func() error) { g.group.Go(func() error { return Safely(do) }) }

// SetLimit bounds how many goroutines work at once. Defaults to no limit. It comes before Go.
func (g *Group) SetLimit(n int) { g.group.SetLimit(n) }

// Wait waits for all goroutines, and gives the first error.
func (g *Group) Wait() error { return g.group.Wait() }

// Until is a context that ends with ctx, or when the time after the close of stop has passed.
// Cancel frees what it holds.
func Until(ctx context.Context, stop <-chan struct{}, after time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if stop == nil {
		return ctx, cancel
	}
	go func() {
		defer cancel()
		select {
		case <-stop:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(after):
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
