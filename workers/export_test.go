package workers

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// Polls watches calls to Temporal, as the host does.
type Polls struct{ *polls }

// NewPolls starts at the present time.
func NewPolls() Polls { return Polls{newPolls()} }

// Call makes a call by its method.
func (p Polls) Call(ctx context.Context, method string, invoke grpc.UnaryInvoker) error {
	return p.intercept(ctx, "/temporal.api.workflowservice.v1.WorkflowService/"+method, nil, nil, nil, invoke)
}

// Alive reports whether the process asks for work.
func (p Polls) Alive() bool {
	_, alive := p.alive()
	return alive
}

// Chooser chooses services for runs, one after the other.
type Chooser struct{ chooser }

// Choose chooses at a time.
func (c *Chooser) Choose(in contract.ChooseServiceInput, services []client.LiveService, now time.Time) (string, error) {
	return c.choose(serviceSearch{in}, services, 0, now)
}

// Lease is the context of a handler with a clock of the test's.
type Lease struct{ *lease }

// NewLease was renewed at the present time by the clock.
func NewLease(ctx context.Context, heartbeatTimeout time.Duration, now func() time.Duration) Lease {
	return Lease{newLease(ctx, heartbeatTimeout, now(), now)}
}

// Renew takes in that a heartbeat was acknowledged, which was sent at a time by the clock.
func (l Lease) Renew(sent time.Duration) { l.renew(sent) }

// Heartbeater sends the heartbeats of an attempt.
type Heartbeater struct{ *heartbeater }

// NewHeartbeater is that of an attempt whose task came at an unknown time. Record is what
// becomes of a heartbeat.
func NewHeartbeater(heartbeatTimeout time.Duration, now func() time.Duration, record func(context.Context) error) Heartbeater {
	return Heartbeater{&heartbeater{
		run: &run{logger: slog.New(slog.DiscardHandler)}, now: now, timeout: heartbeatTimeout, requests: make(chan stopCause),
		record: func(ctx context.Context, _ contract.Heartbeat) error { return record(ctx) },
	}}
}

// Begin reports whether the attempt has the run, and gives its lease if it has.
func (b Heartbeater) Begin(ctx context.Context) (lease context.Context, ours bool) {
	ours = b.begin(ctx, newTasks(b.now, nil))
	return b.lease, ours
}

// Keep sends heartbeats until ctx ends or the run is lost.
func (b Heartbeater) Keep(ctx context.Context) { b.keep(ctx) }

// Clock is the clock of the host.
func Clock() func() time.Duration { return newClock() }

// Tasks watches answers with tasks of the type Test, by a clock of the test's.
type Tasks struct {
	tasks *tasks
}

// NewTasks has seen none.
func NewTasks(now func() time.Duration) Tasks {
	return Tasks{newTasks(now, []string{"Test"})}
}

// Call makes a call that is answered by a reply.
func (t Tasks) Call(ctx context.Context, reply any, invoke grpc.UnaryInvoker) error {
	return t.tasks.intercept(ctx, "", nil, reply, nil, invoke)
}

// Begin gives when the process asked for a task, once.
func (t Tasks) Begin(token string) (asked time.Duration, known bool) {
	return t.tasks.begin([]byte(token))
}

// Choose decides among services, as ChooseService does.
func Choose(in contract.ChooseServiceInput, services []client.LiveService, waited time.Duration) (string, error) {
	return serviceSearch{in}.choose(services, waited)
}

// Backoff is how long a run has waited at its n-th attempt to find a service, and how
// long it waits then.
func Backoff(in contract.ChooseServiceInput, n int) (waited, next time.Duration) {
	return serviceSearch{in}.backoff(n)
}

// NewWatcher serves WatchRunActivity, with room to watch so many runs at once.
func NewWatcher(places int) func(context.Context, contract.WatchRunInput) error {
	return newWatcher(places).WatchRun
}

// Register registers what a host of the job types serves on its three task queues.
func Register(types []job.Type, jobs, queues, service worker.Registry) {
	h := &host{Config: Config{workflows: workflows.Register, Types: types}}
	h.register(jobsTaskQueue, jobs)
	h.register(queuesTaskQueue, queues)
	h.register(serviceTaskQueue, service)
}

// WithWorkflows is a program with other workflows.
func WithWorkflows(p Program, register func(workflows.Registry)) Program {
	p.workflows = register
	return p
}
