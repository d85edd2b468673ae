package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/away"
	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/internal/sdkmetrics"
	"github.com/dendrascience/dendra-jobs/internal/secrets"
	"github.com/dendrascience/dendra-jobs/internal/systemd"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// Config says how a worker process hosts its job types.
type Config struct {
	// BuildID is the version of a versioned worker. Defaults to the first 12 characters of the
	// commit that the program was built from.
	BuildID string
	// Deployment is the name of the Worker Deployment that the process belongs to, which makes
	// it a versioned worker. Defaults to "": it takes the runs of every build.
	Deployment string
	// Needs are servers that the process needs besides Temporal, by name, with how each is asked
	// whether it answers.
	Needs map[string]func(context.Context) error
	// NoQueues leaves the task queue of queues, contract.QueuesTaskQueue, to other processes:
	// only one deployment can have it.
	NoQueues bool
	// Alive says why the process cannot work any more, so that only a restart helps.
	// Defaults to nil: nothing but the process itself is looked at.
	Alive func() error
	// DrainTimeout is how long a stop may take: runs that have not ended or
	// handed themselves over by then are given up. Defaults to 30 seconds.
	DrainTimeout time.Duration
	// HealthAddress is where the health and metrics endpoints listen, host:port; port 0
	// picks a free one. Defaults to "", no endpoint.
	HealthAddress string
	// Identity names the process in histories and the Web UI. Defaults to
	// <worker type>@<host>/<pid>.
	Identity string
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// MaxConcurrentRuns bounds the handlers that run at once in this process.
	// Defaults to 50.
	MaxConcurrentRuns int
	// Service is the name of this process as a service, which jobs may be bound
	// to: unique among the live processes of the worker type, and best the same
	// after a restart. A number is appended to a name that another live process
	// has. Defaults to the name of the host.
	Service string
	// RunLogs keeps the lines that handlers log. Defaults to nil: they are in the
	// process's log alone.
	RunLogs RunLogs
	// ServiceTimeout is how long the process may be silent before the service
	// counts as dead. At least two seconds. Defaults to 15 seconds.
	ServiceTimeout time.Duration
	// Tags are what jobs may be bound by, besides host and name, which every
	// service has.
	Tags map[string]string
	// Temporal overrides the connection settings of the environment. A test has to
	// give the address, so that its worker takes no runs of a stack beside it.
	Temporal temporalclient.Settings
	// Types are the job types to host; at least one, each once.
	Types []job.Type
	// Worker is the worker type, whose name is the task queue to poll.
	Worker job.WorkerType

	// workflows registers the workflows. Only tests, of builds that differ, set it.
	workflows func(workflows.Registry)
}

func (c Config) withDefaults() Config {
	if c.DrainTimeout == 0 {
		c.DrainTimeout = 30 * time.Second
	}
	if c.Identity == "" {
		c.Identity = fmt.Sprintf("%s@%s/%d", c.Worker, hostName(), os.Getpid())
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.MaxConcurrentRuns == 0 {
		c.MaxConcurrentRuns = 50
	}
	if c.Service == "" {
		c.Service = serviceName(containerName(hostName()))
	}
	if c.ServiceTimeout == 0 {
		c.ServiceTimeout = defaultServiceTimeout
	}
	if c.workflows == nil {
		c.workflows = workflows.Register
	}
	return c.withBuildID()
}

func (c Config) validate() error {
	var problems []error
	if err := job.CheckKey("worker type", string(c.Worker)); err != nil {
		problems = append(problems, err)
	}
	if c.Worker == contract.QueuesTaskQueue {
		problems = append(problems, fmt.Errorf("worker type %q is the name of the queues' own task queue", c.Worker))
	}
	if c.DrainTimeout < 0 {
		problems = append(problems, fmt.Errorf("drain timeout %s is negative", c.DrainTimeout))
	}
	if c.MaxConcurrentRuns < 0 {
		problems = append(problems, fmt.Errorf("%d concurrent runs are less than one", c.MaxConcurrentRuns))
	}
	if testing.Testing() && c.Temporal.Address == "" {
		problems = append(problems, errors.New("a worker in a test needs the address of the test's own Temporal"))
	}
	if len(c.Types) == 0 {
		problems = append(problems, errors.New("a worker needs at least one job type"))
	}
	problems = append(problems, c.validateService()...)
	problems = append(problems, c.validateVersion()...)
	seen := map[string]bool{}
	for _, t := range c.Types {
		if err := job.CheckTypeName(t.Name); err != nil {
			problems = append(problems, err)
		}
		if t.Worker != c.Worker {
			problems = append(problems, fmt.Errorf("job type %s belongs to worker type %s, not %s", t.Name, t.Worker, c.Worker))
		}
		if seen[t.Name] {
			problems = append(problems, fmt.Errorf("job type %s is registered twice", t.Name))
		}
		seen[t.Name] = true
	}
	return errors.Join(problems...)
}

// temporalServer is how the health endpoint names Temporal.
const temporalServer = "Temporal"

// host is a running worker process.
type host struct {
	Config
	schemas       map[string]*schema.Schema // of specs, by job type
	secrets       secrets.Resolver
	identity      string
	logger        *slog.Logger
	client        client.Client // once connected
	jobs          job.Jobs      // for handlers, once connected
	payloadKeys   []string      // ids, once connected
	now           clock
	polls         *polls
	tasks         *tasks
	slots         *slots
	servers       away.Watch
	running       atomic.Int64 // handlers at work
	stuckHandlers atomic.Int64 // of these, the ones that were given up
	state         atomic.Pointer[state]
}

// state is what the health endpoint reports.
type state string

const (
	stateConnecting state = "connecting"
	stateServing    state = "serving"
	stateDraining   state = "draining"
)

func (h *host) enter(s state) { h.state.Store(&s) }

// Run hosts the job types until ctx is canceled, then drains and returns nil.
// Until Temporal can be reached it keeps trying, and says so in its log; also when Temporal
// goes away while the process starts.
func Run(ctx context.Context, config Config) error {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return err
	}
	schemas, err := specSchemas(config.Types)
	if err != nil {
		return err
	}
	h := &host{
		Config:   config,
		schemas:  schemas,
		secrets:  secrets.New(os.Getenv),
		identity: config.Identity,
		logger:   config.Logger.With("worker", config.Identity),
		now:      newClock(),
		polls:    newPolls(),
		slots:    newSlots(config.MaxConcurrentRuns),
	}
	h.tasks = newTasks(h.now, h.names())
	h.enter(stateConnecting)
	h.servers.Add(temporalServer, nil)
	for name, ask := range config.Needs {
		h.servers.Add(name, ask)
	}
	go h.servers.Run(ctx)
	metrics.WorkerServing.Add(0, string(h.Worker))
	zeroMetrics(h.names())
	metrics.Slots.Add(int64(config.MaxConcurrentRuns), string(h.Worker))
	defer metrics.Slots.Add(-int64(config.MaxConcurrentRuns), string(h.Worker))
	stopHealth, err := h.serveHealth(ctx)
	if err != nil {
		return err
	}
	defer stopHealth()

	h.client, err = h.connect(ctx)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil // Stopped before Temporal could be reached.
		}
		return err
	}
	defer h.client.Close()
	h.servers.Add(temporalServer, func(ctx context.Context) error {
		_, err := h.client.CheckHealth(ctx, &client.CheckHealthRequest{})
		return err
	})
	options, err := temporalclient.Options(h.Temporal)
	if err != nil {
		return err
	}
	h.sayWhere(ctx, options)
	h.jobs = newJobs(h.client, options.Namespace)
	return h.serve(ctx, options.Namespace)
}

// connect keeps trying until Temporal answers or ctx ends.
func (h *host) connect(ctx context.Context) (client.Client, error) {
	settings := h.Temporal
	settings.Identity = h.identity
	settings.Logger = h.logger
	settings.Intercept = h.intercept
	var err error
	if settings.Metrics, err = sdkmetrics.Handler(); err != nil {
		return nil, fmt.Errorf("metrics of the SDK: %w", err)
	}
	keys, err := temporalclient.PayloadKeys(settings)
	if err != nil {
		return nil, err
	}
	h.payloadKeys = keys.IDs()
	if _, err := temporalclient.Options(settings); err != nil {
		return nil, err
	}
	var connected client.Client
	err = h.untilServed(ctx, func() error {
		var err error
		connected, err = temporalclient.Dial(ctx, settings)
		return err
	})
	return connected, err
}

// untilServed tries again until Temporal lets a step of the start succeed, or ctx ends.
func (h *host) untilServed(ctx context.Context, try func() error) error {
	backoff := job.Backoff{Initial: job.Duration(500 * time.Millisecond), Max: job.Duration(15 * time.Second), Coefficient: 2}
	for attempt := 1; ; attempt++ {
		err := try()
		h.servers.Note(temporalServer, err)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait := backoff.Wait(attempt)
		h.logger.Warn("cannot serve yet", "error", err, "retry_in", wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// sayWhere logs which server the process has joined. One that nothing names may be
// another than people think.
func (h *host) sayWhere(ctx context.Context, options client.Options) {
	version, err := temporalclient.Version(ctx, h.client)
	if err != nil {
		version = "unknown"
	}
	attributes := []any{"temporal", options.HostPort, "namespace", options.Namespace, "version", version}
	if !temporalclient.AddressGiven(h.Temporal) {
		attributes = append(attributes, "note", "no address is set: this is what listens at the usual one")
	}
	h.logger.Info("connected", attributes...)
}

// intercept is a grpc.UnaryClientInterceptor: the host sees every call, and what
// the configuration brings sees it after the host.
func (h *host) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	chain := []grpc.UnaryClientInterceptor{h.tasks.intercept, h.polls.intercept, sendCheckpoint, h.boundShutdownCalls}
	if h.Temporal.Intercept != nil {
		chain = append([]grpc.UnaryClientInterceptor{h.Temporal.Intercept}, chain...)
	}
	for _, next := range chain {
		inner := invoke
		invoke = func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, options ...grpc.CallOption) error {
			return next(ctx, method, request, reply, conn, inner, options...)
		}
	}
	return invoke(ctx, method, request, reply, conn, options...)
}

// shutdownCallTimeout is how long a process that stops may take to tell Temporal that it asks for
// no more work, and again to withdraw its announcement. Both are within the drain timeout, also if
// Temporal is away: the SDK alone waits ten seconds for the first.
func (h *host) shutdownCallTimeout() time.Duration { return min(2*time.Second, h.DrainTimeout/8) }

// handlerDrainTimeout is what the drain timeout leaves to handlers.
func (h *host) handlerDrainTimeout() time.Duration { return h.DrainTimeout - 2*h.shutdownCallTimeout() }

// boundShutdownCalls is a grpc.UnaryClientInterceptor.
func (h *host) boundShutdownCalls(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if strings.HasSuffix(method, "/ShutdownWorker") {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.shutdownCallTimeout())
		defer cancel()
	}
	return invoke(ctx, method, request, reply, conn, options...)
}

func (h *host) serve(ctx context.Context, namespace string) error {
	fatal := make(chan error, 3)
	options := worker.Options{
		// For the workflows' own activities: the SDK would hold heartbeats back for
		// four fifths of the heartbeat timeout. Those of runs are the host's own.
		MaxHeartbeatThrottleInterval: 100 * time.Millisecond,
		// How long the workflows of a worker that died wait for it before another
		// goes on with them.
		StickyScheduleToStartTimeout: 2 * time.Second,
		// Pollers of the SDK's default may all turn to the worker's own (sticky) task queue,
		// for up to a minute: who starts or recovers a workflow would wait for them.
		WorkflowTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
			InitialNumberOfPollers: 1, MinimumNumberOfPollers: 1, MaximumNumberOfPollers: 5,
		}),
		WorkerStopTimeout: h.handlerDrainTimeout(),
		Interceptors:      []interceptor.WorkerInterceptor{&runCounter{}},
		OnFatalError:      func(err error) { fatal <- err },
	}
	var all []worker.Worker
	err := h.untilServed(ctx, func() error {
		var err error
		all, err = h.startAll(options)
		return err
	})
	if err != nil {
		return nil //nolint:nilerr // Stopped before Temporal was there again.
	}
	go h.becomeCurrent(ctx)
	service := h.announce(namespace, options)
	h.enter(stateServing)
	metrics.WorkerServing.Add(1, string(h.Worker))
	unit := systemd.Serving(func() bool { return !h.restartNeeded() }, h.logger)
	defer unit.Close()
	h.logger.Info("serving", "task_queue", contract.TaskQueue(h.Worker), "job_types", strings.Join(h.names(), ", "))

	select {
	case <-ctx.Done():
	case err = <-fatal:
		h.logger.Error("the connection to Temporal is lost for good", "error", err)
	}
	h.enter(stateDraining)
	unit.Stopping()
	metrics.WorkerServing.Add(-1, string(h.Worker))
	h.logger.Info("draining", "running", h.running.Load(), "timeout", h.DrainTimeout)
	stopOwn := service.drain()
	var own sync.WaitGroup
	own.Go(stopOwn)
	stopAll(all)
	own.Wait()
	service.withdraw()
	h.logger.Info("stopped", "running", h.running.Load())
	return err
}

// startAll starts the workers of the task queues, or none. It waits up to ten seconds for
// a Temporal that does not answer. The SDK starts a worker once only, so they are new.
func (h *host) startAll(options worker.Options) ([]worker.Worker, error) {
	if built := readBuild().Revision; built != "" {
		worker.SetBinaryChecksum(built) // Else the SDK reads the whole program, for a hash.
	}
	jobs, err := h.newWorker(jobsTaskQueue, contract.TaskQueue(h.Worker), options)
	if err != nil {
		return nil, err
	}
	all := []worker.Worker{jobs}
	if !h.NoQueues {
		queues, err := h.newWorker(queuesTaskQueue, contract.QueuesTaskQueue, options)
		if err != nil {
			return nil, err
		}
		all = append(all, queues)
	}
	for i, w := range all {
		if err := w.Start(); err != nil {
			stopAll(all[:i])
			return nil, fmt.Errorf("Temporal went away while the worker started: %w", err)
		}
	}
	return all, nil
}

// stopAll stops polling at once everywhere, and waits for what runs.
func stopAll(all []worker.Worker) {
	var wait sync.WaitGroup
	for _, w := range all {
		wait.Go(w.Stop)
	}
	wait.Wait()
}

// names are those of the job types.
func (h *host) names() []string {
	names := make([]string, len(h.Types))
	for i, t := range h.Types {
		names[i] = t.Name
	}
	slices.Sort(names)
	return names
}
