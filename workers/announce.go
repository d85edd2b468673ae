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

	"github.com/dendrascience/dendra-jobs/contract"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/dendrascience/dendra-jobs/job"
)

// defaultServiceTimeout and minServiceTimeout are about how long a process may be
// silent before it counts as dead.
const (
	defaultServiceTimeout = 15 * time.Second
	minServiceTimeout     = 2 * time.Second
)

// member is the process as a service: its announcement, and the worker of its
// own task queue. The announcement is a standalone activity that the process
// takes and carries out itself, without a handler: it asks for the task, sends
// heartbeats, and completes it in the end.
type member struct {
	*host
	namespace string
	service   contract.Service
	// newWorker makes the worker of a task queue of the process's own.
	newWorker func(taskQueue string) (worker.Worker, error)

	drained chan struct{} // closed when the process takes no more work
	left    chan struct{} // closed when all its runs have ended
	ended   chan struct{} // closed when the announcement is withdrawn

	mu      sync.Mutex
	own     worker.Worker // of the task queue of ownName
	ownName string
	retired sync.WaitGroup // workers of names that the process has lost
}

// join announces the process until leave is called.
func (h *host) join(namespace string, newWorker func(string) (worker.Worker, error)) (*member, error) {
	service, err := h.describe()
	if err != nil {
		return nil, err
	}
	m := &member{
		host: h, namespace: namespace, service: service, newWorker: newWorker,
		drained: make(chan struct{}), left: make(chan struct{}), ended: make(chan struct{}),
	}
	go m.live()
	return m, nil
}

// drain tells everyone that the process takes no more work, and gives the names of
// its own task queues, none or one, and a function that ends what runs on them.
func (m *member) drain() (taskQueues []string, stopOwn func()) {
	m.mu.Lock()
	close(m.drained)
	own := m.own
	if own != nil {
		taskQueues = []string{contract.ServiceTaskQueue(m.Worker, m.ownName)}
	}
	m.mu.Unlock()
	return taskQueues, func() {
		if own != nil {
			own.Stop()
		}
		m.retired.Wait()
	}
}

// leave withdraws the announcement.
func (m *member) leave() {
	close(m.left)
	<-m.ended
}

func (m *member) draining() bool { return isClosed(m.drained) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// live keeps the process announced.
func (m *member) live() {
	defer close(m.ended)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-m.left
		// What is under way may still end; the process does not wait for more.
		time.AfterFunc(2*time.Second, cancel)
	}()
	backoff := job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(15 * time.Second), Coefficient: 2}
	for failures := 0; ; {
		announced, err := m.announce(ctx)
		if err == nil || m.draining() {
			return
		}
		if failures++; announced {
			failures = 1
		}
		m.logger.Warn("this process is not listed as a service", "error", err)
		select {
		case <-time.After(backoff.Wait(failures)):
		case <-m.drained:
			return
		}
	}
}

// announce claims a name and stands for it until the process leaves, which is no
// error, or until Temporal takes the service for dead.
func (m *member) announce(ctx context.Context) (announced bool, err error) {
	token, err := m.claim(ctx)
	if err != nil {
		return false, err
	}
	if err := m.serveOwn(); err != nil {
		return false, err
	}
	if err := m.beat(ctx, token); err != nil { // Before anyone can look for it.
		return false, err
	}
	m.logger.Info("announced", "service", m.service.ID(), "tags", m.service.Tags)
	return true, m.stand(ctx, token)
}

// maxNames bounds the numbers that are appended to a name that is taken.
const maxNames = 100

// claim gets a name that no other live process has, and the task of standing for
// it. A name whose holder is seen to live is left alone; one whose holder is
// silent is waited for until Temporal takes that one for dead.
func (m *member) claim(ctx context.Context) (token []byte, err error) {
	if m.service.Name != "" { // Announced before: by the same name if possible.
		token, err := m.claimName(ctx, m.service.Name)
		if err == nil || !errors.Is(err, errNameTaken) {
			return token, err
		}
	}
	for n := 1; n <= maxNames; n++ {
		name := m.Service
		if n > 1 {
			name = fmt.Sprintf("%s-%d", m.Service, n)
		}
		token, err := m.claimName(ctx, name)
		if !errors.Is(err, errNameTaken) {
			return token, err
		}
		m.logger.Info("another process has the name", "service", contract.ServiceTaskQueue(m.Worker, name))
	}
	return nil, fmt.Errorf("the names %s to %s-%d are all taken", m.Service, m.Service, maxNames)
}

var errNameTaken = errors.New("another live process has the name")

func (m *member) claimName(ctx context.Context, name string) ([]byte, error) {
	beats := int64(-1)
	for {
		token, err := m.start(ctx, name)
		var taken *serviceerror.ActivityExecutionAlreadyStarted
		if !errors.As(err, &taken) {
			return token, err
		}
		holder := m.client.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: contract.ServiceID(m.Worker, name)})
		d, err := holder.Describe(ctx, client.DescribeActivityOptions{})
		if err != nil {
			return nil, fmt.Errorf("ask for the holder of the name %s: %w", name, err)
		}
		if beats >= 0 && d.TotalHeartbeatCount > beats {
			return nil, errNameTaken
		}
		if beats < 0 {
			beats = d.TotalHeartbeatCount
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-m.drained:
			return nil, errors.New("the process is asked to stop")
		}
	}
}

// start makes the activity that stands for the service, and takes its task.
func (m *member) start(ctx context.Context, name string) ([]byte, error) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	service := m.service
	service.Name, service.Started = name, time.Now()
	service.Tags = maps.Clone(m.service.Tags)
	service.Tags[job.TagName] = name
	// A queue that nobody else asks, so that the task comes here.
	queue := service.ID() + "/" + rand.Text()
	handle, err := m.client.ExecuteActivity(ctx, client.StartActivityOptions{
		ID:                     contract.ServiceID(m.Worker, name),
		TaskQueue:              queue,
		ScheduleToStartTimeout: patience,
		StartToCloseTimeout:    10 * 365 * 24 * time.Hour,
		HeartbeatTimeout:       m.ServiceTimeout,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		ActivityIDReusePolicy:  enumspb.ACTIVITY_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		Summary:                fmt.Sprintf("%s on %s, process %d", service.ID(), service.Host(), os.Getpid()),
	}, contract.ServiceType, service)
	if err != nil {
		return nil, fmt.Errorf("announce service %s: %w", service.ID(), err)
	}
	task, err := m.client.WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
		Namespace: m.namespace,
		TaskQueue: &taskqueuepb.TaskQueue{Name: queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Identity:  m.identity,
	})
	if err != nil {
		return nil, fmt.Errorf("announce service %s: %w", service.ID(), err)
	}
	if len(task.GetTaskToken()) == 0 {
		return nil, fmt.Errorf("announce service %s: its task (%s) did not come", service.ID(), handle.GetRunID())
	}
	m.service = service
	return task.GetTaskToken(), nil
}

// serveOwn starts the worker of the process's own task queue, unless it runs
// already. What runs under a name that the process has lost is handed over.
func (m *member) serveOwn() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.draining() || m.ownName == m.service.Name {
		return nil
	}
	if old := m.own; old != nil {
		m.retired.Go(old.Stop)
	}
	m.own, m.ownName = nil, ""
	own, err := m.newWorker(m.service.ID())
	if err != nil {
		return err
	}
	if err := own.Start(); err != nil {
		return fmt.Errorf("serve task queue %s: %w", m.service.ID(), err)
	}
	m.own, m.ownName = own, m.service.Name
	return nil
}

// stand sends heartbeats until the process leaves.
func (m *member) stand(ctx context.Context, token []byte) error {
	beats := time.NewTicker(m.ServiceTimeout / 4)
	defer beats.Stop()
	drained := m.drained
	for {
		select {
		case <-beats.C:
		case <-drained:
			drained = nil // Told once at once, then as ever.
		case <-m.left:
			return m.complete(ctx, token)
		}
		if err := m.beat(ctx, token); err != nil {
			return err
		}
	}
}

// beat tells Temporal how the process does. The error says that the service is
// dead to Temporal; that nobody can be told is none.
func (m *member) beat(ctx context.Context, token []byte) error {
	last, alive := m.polls.alive()
	if !alive && !m.draining() {
		m.logger.Error("this process has stopped asking for work", "last", last)
		return nil
	}
	details, err := converter.GetDefaultDataConverter().ToPayloads(contract.ServiceBeat{
		Running: int(m.running.Load()), LastPoll: last, Draining: m.draining(),
		Deaf: int(m.deaf.Load()), ClockAhead: m.skew.known().Seconds(),
	})
	if err != nil {
		return fmt.Errorf("encode a heartbeat: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, m.ServiceTimeout/2)
	defer cancel()
	_, err = m.client.WorkflowService().RecordActivityTaskHeartbeat(ctx, &workflowservice.RecordActivityTaskHeartbeatRequest{
		Namespace: m.namespace, TaskToken: token, Details: details, Identity: m.identity,
	})
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return fmt.Errorf("temporal takes service %s for dead: %w", m.service.ID(), err)
	case err != nil:
		m.logger.Debug("a sign of life was not taken", "error", err)
	}
	return nil
}

// complete withdraws the announcement.
func (m *member) complete(ctx context.Context, token []byte) error {
	_, err := m.client.WorkflowService().RespondActivityTaskCompleted(ctx, &workflowservice.RespondActivityTaskCompletedRequest{
		Namespace: m.namespace, TaskToken: token, Identity: m.identity,
	})
	if err != nil {
		m.logger.Warn("the announcement could not be withdrawn", "error", err)
	}
	return nil
}
