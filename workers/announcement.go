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

	control "github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// defaultServiceTimeout and minServiceTimeout are about how long a process may be
// silent before it counts as dead.
const (
	defaultServiceTimeout = 15 * time.Second
	minServiceTimeout     = 2 * time.Second
)

// announcement is the process as a service: its entry in Temporal, and the worker of its
// own task queue. The entry is a standalone activity that the process takes and
// carries out itself, without a handler: it asks for the task, sends heartbeats, and
// completes it in the end.
type announcement struct {
	*host
	namespace string
	service   contract.Service
	options   worker.Options // of the worker of its own task queue

	drained      chan struct{} // closed when the process takes no more work
	handlersDone chan struct{} // closed when all its runs have ended
	ended        chan struct{} // closed when the announcement is withdrawn

	mu      sync.Mutex
	own     worker.Worker // of the task queue of ownName
	ownName string
	retired sync.WaitGroup // workers of names that the process has lost
}

// announce announces the process until withdraw is called.
func (h *host) announce(namespace string, options worker.Options) *announcement {
	a := &announcement{
		host: h, namespace: namespace, service: h.describe(), options: options,
		drained: make(chan struct{}), handlersDone: make(chan struct{}), ended: make(chan struct{}),
	}
	go a.keepAnnounced()
	return a
}

// drain announces that the process takes no more work, and gives a function that ends
// what runs on the process's own task queue.
func (a *announcement) drain() (stopOwn func()) {
	a.mu.Lock()
	close(a.drained)
	own := a.own
	a.mu.Unlock()
	return func() {
		if own != nil {
			own.Stop()
		}
		a.retired.Wait()
	}
}

// withdraw ends the announcement.
func (a *announcement) withdraw() {
	close(a.handlersDone)
	<-a.ended
}

func (a *announcement) draining() bool { return isClosed(a.drained) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// keepAnnounced announces the process again whenever Temporal takes it for dead.
func (a *announcement) keepAnnounced() {
	defer close(a.ended)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-a.handlersDone
		// What is under way may still end; the process does not wait for more.
		time.AfterFunc(a.shutdownCallTimeout(), cancel)
	}()
	backoff := job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(15 * time.Second), Coefficient: 2}
	said := false // that the server has no services
	for failures := 0; ; {
		announced, err := a.announceOnce(ctx)
		if err == nil || a.draining() {
			return
		}
		if failures++; announced {
			failures = 1
		}
		switch lacking := errors.Is(err, control.ErrNoServices); {
		case lacking && !said: // Until the server is another release.
			said = true
			a.logger.Warn("services are missing: starter knows neither this process nor job types that it alone has, and no job can be bound to it",
				"reason", err)
		case !lacking:
			said = false
			a.logger.Warn("this process is not listed as a service", "error", err)
		}
		select {
		case <-time.After(backoff.Wait(failures)):
		case <-a.drained:
			return
		}
	}
}

// announceOnce claims a name and holds it until the process withdraws it, which is no
// error, or until Temporal takes the service for dead.
func (a *announcement) announceOnce(ctx context.Context) (announced bool, err error) {
	if err := control.New(a.client, a.namespace).Workers.CheckServices(ctx); err != nil {
		return false, err
	}
	token, err := a.claim(ctx)
	if err != nil {
		return false, err
	}
	if err := a.serveOwn(); err != nil {
		return false, err
	}
	if err := a.sendHeartbeat(ctx, token); err != nil { // Before anyone can look for it.
		return false, err
	}
	a.logger.Info("announced", "service", a.service.ID(), "tags", a.service.Tags)
	return true, a.sendHeartbeats(ctx, token)
}

// maxNames bounds the numbers that are appended to a name that is taken.
const maxNames = 100

// claim gets a name that no other live process has, and the task that
// announces it. A name whose holder is seen to live is left alone; one whose holder is
// silent is waited for until Temporal takes that one for dead.
func (a *announcement) claim(ctx context.Context) (token []byte, err error) {
	if a.service.Name != "" { // Announced before: by the same name if possible.
		token, err := a.claimName(ctx, a.service.Name)
		if err == nil || !errors.Is(err, errNameTaken) {
			return token, err
		}
	}
	for n := 1; n <= maxNames; n++ {
		name := a.Service
		if n > 1 {
			name = fmt.Sprintf("%s-%d", a.Service, n)
		}
		token, err := a.claimName(ctx, name)
		if !errors.Is(err, errNameTaken) {
			return token, err
		}
		a.logger.Info("another process has the name", "service", contract.ServiceTaskQueue(a.Worker, name))
	}
	return nil, fmt.Errorf("the names %s to %s-%d are all taken", a.Service, a.Service, maxNames)
}

var errNameTaken = errors.New("another live process has the name")

func (a *announcement) claimName(ctx context.Context, name string) ([]byte, error) {
	heartbeats := int64(-1)
	for {
		token, err := a.start(ctx, name)
		var taken *serviceerror.ActivityExecutionAlreadyStarted
		if !errors.As(err, &taken) {
			return token, err
		}
		holder := a.client.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: contract.ServiceID(a.Worker, name)})
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
		case <-a.drained:
			return nil, errors.New("the process is asked to stop")
		}
	}
}

// start makes the activity that announces the service, and takes its task.
func (a *announcement) start(ctx context.Context, name string) ([]byte, error) {
	const timeout = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	service := a.service
	service.Name, service.Started = name, time.Now()
	service.Tags = maps.Clone(a.service.Tags)
	service.Tags[job.TagName] = name
	// A queue that nobody else asks, so that the task comes here.
	queue := service.ID() + "/" + rand.Text()
	handle, err := a.client.ExecuteActivity(ctx, client.StartActivityOptions{
		ID:                     contract.ServiceID(a.Worker, name),
		TaskQueue:              queue,
		ScheduleToStartTimeout: timeout,
		StartToCloseTimeout:    10 * 365 * 24 * time.Hour,
		HeartbeatTimeout:       a.ServiceTimeout,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		ActivityIDReusePolicy:  enumspb.ACTIVITY_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		Summary:                fmt.Sprintf("%s on %s, process %d", service.ID(), service.Host(), os.Getpid()),
	}, contract.ServiceType, service)
	if err != nil {
		return nil, fmt.Errorf("announce service %s: %w", service.ID(), err)
	}
	task, err := a.client.WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
		Namespace: a.namespace,
		TaskQueue: &taskqueuepb.TaskQueue{Name: queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Identity:  a.identity,
	})
	if err != nil {
		return nil, fmt.Errorf("announce service %s: %w", service.ID(), err)
	}
	if len(task.GetTaskToken()) == 0 {
		return nil, fmt.Errorf("announce service %s: its task (%s) did not come", service.ID(), handle.GetRunID())
	}
	a.service = service
	return task.GetTaskToken(), nil
}

// serveOwn starts the worker of the process's own task queue, unless it runs
// already. What runs under a name that the process has lost is handed over.
func (a *announcement) serveOwn() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining() || a.ownName == a.service.Name {
		return nil
	}
	if old := a.own; old != nil {
		a.retired.Go(old.Stop)
	}
	a.own, a.ownName = nil, ""
	own, err := a.newWorker(serviceTaskQueue, a.service.ID(), a.options)
	if err != nil {
		return err
	}
	if err := own.Start(); err != nil {
		return fmt.Errorf("serve task queue %s: %w", a.service.ID(), err)
	}
	a.own, a.ownName = own, a.service.Name
	return nil
}

// sendHeartbeats sends heartbeats of the service until its runs have ended.
func (a *announcement) sendHeartbeats(ctx context.Context, token []byte) error {
	ticker := time.NewTicker(a.ServiceTimeout / 4)
	defer ticker.Stop()
	drained := a.drained
	for {
		select {
		case <-ticker.C:
		case <-drained:
			drained = nil // Sent at once, then in intervals as before.
		case <-a.handlersDone:
			return a.complete(ctx, token)
		}
		if err := a.sendHeartbeat(ctx, token); err != nil {
			return err
		}
	}
}

// sendHeartbeat sends one heartbeat. It gives an error only if Temporal takes the
// service for dead: after a call that failed the next one counts.
func (a *announcement) sendHeartbeat(ctx context.Context, token []byte) error {
	last, alive := a.polls.alive()
	if !alive && !a.draining() {
		a.logger.Error("this process has stopped asking for work", "last", last)
		return nil
	}
	details, err := converter.GetDefaultDataConverter().ToPayloads(contract.ServiceHeartbeat{
		Running: int(a.running.Load()), LastPoll: last, Draining: a.draining(),
		StuckHandlers: int(a.stuckHandlers.Load()),
	})
	if err != nil {
		return fmt.Errorf("encode a heartbeat: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, a.ServiceTimeout/2)
	defer cancel()
	_, err = a.client.WorkflowService().RecordActivityTaskHeartbeat(ctx, &workflowservice.RecordActivityTaskHeartbeatRequest{
		Namespace: a.namespace, TaskToken: token, Details: details, Identity: a.identity,
	})
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return fmt.Errorf("temporal takes service %s for dead: %w", a.service.ID(), err)
	case err != nil:
		a.logger.Debug("a heartbeat of the service was not acknowledged", "error", err)
	}
	return nil
}

// complete withdraws the announcement.
func (a *announcement) complete(ctx context.Context, token []byte) error {
	_, err := a.client.WorkflowService().RespondActivityTaskCompleted(ctx, &workflowservice.RespondActivityTaskCompletedRequest{
		Namespace: a.namespace, TaskToken: token, Identity: a.identity,
	})
	if err != nil {
		a.logger.Warn("the announcement could not be withdrawn", "error", err)
	}
	return nil
}
