package workers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// defaultServiceTimeout and minServiceTimeout are about how long a process may be
// silent before it counts as dead.
const (
	defaultServiceTimeout = 15 * time.Second
	minServiceTimeout     = 2 * time.Second
)

// registration is the process as a service: its announcement, and the worker of its
// own task queue. The announcement is a standalone activity that the process
// takes and carries out itself, without a handler: it asks for the task, sends
// heartbeats, and completes it in the end.
type registration struct {
	*host
	namespace string
	service   contract.Service
	// newWorker makes the worker of a task queue of the process's own.
	newWorker func(taskQueue string) (worker.Worker, error)

	drained      chan struct{} // closed when the process takes no more work
	handlersDone chan struct{} // closed when all its runs have ended
	ended        chan struct{} // closed when the announcement is withdrawn

	mu      sync.Mutex
	own     worker.Worker // of the task queue of ownName
	ownName string
	retired sync.WaitGroup // workers of names that the process has lost
}

// register announces the process until withdraw is called.
func (h *host) register(namespace string, newWorker func(string) (worker.Worker, error)) *registration {
	r := &registration{
		host: h, namespace: namespace, service: h.describe(), newWorker: newWorker,
		drained: make(chan struct{}), handlersDone: make(chan struct{}), ended: make(chan struct{}),
	}
	go r.keepRegistered()
	return r
}

// drain tells everyone that the process takes no more work, and gives a function
// that ends what runs on the process's own task queue.
func (r *registration) drain() (stopOwn func()) {
	r.mu.Lock()
	close(r.drained)
	own := r.own
	r.mu.Unlock()
	return func() {
		if own != nil {
			own.Stop()
		}
		r.retired.Wait()
	}
}

// withdraw ends the announcement.
func (r *registration) withdraw() {
	close(r.handlersDone)
	<-r.ended
}

func (r *registration) draining() bool { return isClosed(r.drained) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// keepRegistered keeps the process announced.
func (r *registration) keepRegistered() {
	defer close(r.ended)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-r.handlersDone
		// What is under way may still end; the process does not wait for more.
		time.AfterFunc(2*time.Second, cancel)
	}()
	backoff := job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(15 * time.Second), Coefficient: 2}
	for failures := 0; ; {
		announced, err := r.announce(ctx)
		if err == nil || r.draining() {
			return
		}
		if failures++; announced {
			failures = 1
		}
		r.logger.Warn("this process is not listed as a service", "error", err)
		select {
		case <-time.After(backoff.Wait(failures)):
		case <-r.drained:
			return
		}
	}
}

// announce claims a name and holds it until the process withdraws it, which is no
// error, or until Temporal takes the service for dead.
func (r *registration) announce(ctx context.Context) (announced bool, err error) {
	token, err := r.claim(ctx)
	if err != nil {
		return false, err
	}
	if err := r.serveOwn(); err != nil {
		return false, err
	}
	if err := r.sendHeartbeat(ctx, token); err != nil { // Before anyone can look for it.
		return false, err
	}
	r.logger.Info("announced", "service", r.service.ID(), "tags", r.service.Tags)
	return true, r.sendHeartbeats(ctx, token)
}

// maxNames bounds the numbers that are appended to a name that is taken.
const maxNames = 100

// claim gets a name that no other live process has, and the task that
// announces it. A name whose holder is seen to live is left alone; one whose holder is
// silent is waited for until Temporal takes that one for dead.
func (r *registration) claim(ctx context.Context) (token []byte, err error) {
	if r.service.Name != "" { // Announced before: by the same name if possible.
		token, err := r.claimName(ctx, r.service.Name)
		if err == nil || !errors.Is(err, errNameTaken) {
			return token, err
		}
	}
	for n := 1; n <= maxNames; n++ {
		name := r.Service
		if n > 1 {
			name = fmt.Sprintf("%s-%d", r.Service, n)
		}
		token, err := r.claimName(ctx, name)
		if !errors.Is(err, errNameTaken) {
			return token, err
		}
		r.logger.Info("another process has the name", "service", contract.ServiceTaskQueue(r.Worker, name))
	}
	return nil, fmt.Errorf("the names %s to %s-%d are all taken", r.Service, r.Service, maxNames)
}

var errNameTaken = errors.New("another live process has the name")

func (r *registration) claimName(ctx context.Context, name string) ([]byte, error) {
	heartbeats := int64(-1)
	for {
		token, err := r.start(ctx, name)
		var taken *serviceerror.ActivityExecutionAlreadyStarted
		if !errors.As(err, &taken) {
			return token, err
		}
		holder := r.client.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: contract.ServiceID(r.Worker, name)})
		d, err := holder.Describe(ctx, client.DescribeActivityOptions{})
		if err != nil {
			return nil, fmt.Errorf("ask for the holder of the name %s: %w", name, err)
		}
		if heartbeats >= 0 && d.TotalHeartbeatCount > heartbeats {
			return nil, errNameTaken
		}
		if heartbeats < 0 {
			heartbeats = d.TotalHeartbeatCount
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-r.drained:
			return nil, errors.New("the process is asked to stop")
		}
	}
}

// start makes the activity that announces the service, and takes its task.
func (r *registration) start(ctx context.Context, name string) ([]byte, error) {
	const timeout = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	service := r.service
	service.Name, service.Started = name, time.Now()
	service.Tags = maps.Clone(r.service.Tags)
	service.Tags[job.TagName] = name
	// A queue that nobody else asks, so that the task comes here.
	queue := service.ID() + "/" + rand.Text()
	handle, err := r.client.ExecuteActivity(ctx, client.StartActivityOptions{
		ID:                     contract.ServiceID(r.Worker, name),
		TaskQueue:              queue,
		ScheduleToStartTimeout: timeout,
		StartToCloseTimeout:    10 * 365 * 24 * time.Hour,
		HeartbeatTimeout:       r.ServiceTimeout,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		ActivityIDReusePolicy:  enumspb.ACTIVITY_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		Summary:                fmt.Sprintf("%s on %s, process %d", service.ID(), service.Host(), os.Getpid()),
	}, contract.ServiceType, service)
	if err != nil {
		return nil, fmt.Errorf("announce service %s: %w", service.ID(), err)
	}
	task, err := r.client.WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
		Namespace: r.namespace,
		TaskQueue: &taskqueuepb.TaskQueue{Name: queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Identity:  r.identity,
	})
	if err != nil {
		return nil, fmt.Errorf("announce service %s: %w", service.ID(), err)
	}
	if len(task.GetTaskToken()) == 0 {
		return nil, fmt.Errorf("announce service %s: its task (%s) did not come", service.ID(), handle.GetRunID())
	}
	r.service = service
	return task.GetTaskToken(), nil
}

// serveOwn starts the worker of the process's own task queue, unless it runs
// already. What runs under a name that the process has lost is handed over.
func (r *registration) serveOwn() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining() || r.ownName == r.service.Name {
		return nil
	}
	if old := r.own; old != nil {
		r.retired.Go(old.Stop)
	}
	r.own, r.ownName = nil, ""
	own, err := r.newWorker(r.service.ID())
	if err != nil {
		return err
	}
	if err := own.Start(); err != nil {
		return fmt.Errorf("serve task queue %s: %w", r.service.ID(), err)
	}
	r.own, r.ownName = own, r.service.Name
	return nil
}

// sendHeartbeats tells Temporal that the process lives, until its runs have ended.
func (r *registration) sendHeartbeats(ctx context.Context, token []byte) error {
	ticker := time.NewTicker(r.ServiceTimeout / 4)
	defer ticker.Stop()
	drained := r.drained
	for {
		select {
		case <-ticker.C:
		case <-drained:
			drained = nil // Told once at once, then as ever.
		case <-r.handlersDone:
			return r.complete(ctx, token)
		}
		if err := r.sendHeartbeat(ctx, token); err != nil {
			return err
		}
	}
}

// sendHeartbeat tells Temporal how the process does. It gives an error only if Temporal
// takes the service for dead; a call that fails is made up for by the next.
func (r *registration) sendHeartbeat(ctx context.Context, token []byte) error {
	last, alive := r.polls.alive()
	if !alive && !r.draining() {
		r.logger.Error("this process has stopped asking for work", "last", last)
		return nil
	}
	details, err := converter.GetDefaultDataConverter().ToPayloads(contract.ServiceHeartbeat{
		Running: int(r.running.Load()), LastPoll: last, Draining: r.draining(),
		StuckHandlers: int(r.stuckHandlers.Load()),
	})
	if err != nil {
		return fmt.Errorf("encode a heartbeat: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, r.ServiceTimeout/2)
	defer cancel()
	_, err = r.client.WorkflowService().RecordActivityTaskHeartbeat(ctx, &workflowservice.RecordActivityTaskHeartbeatRequest{
		Namespace: r.namespace, TaskToken: token, Details: details, Identity: r.identity,
	})
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return fmt.Errorf("temporal takes service %s for dead: %w", r.service.ID(), err)
	case err != nil:
		r.logger.Debug("a sign of life was not taken", "error", err)
	}
	return nil
}

// complete withdraws the announcement.
func (r *registration) complete(ctx context.Context, token []byte) error {
	_, err := r.client.WorkflowService().RespondActivityTaskCompleted(ctx, &workflowservice.RespondActivityTaskCompletedRequest{
		Namespace: r.namespace, TaskToken: token, Identity: r.identity,
	})
	if err != nil {
		r.logger.Warn("the announcement could not be withdrawn", "error", err)
	}
	return nil
}
