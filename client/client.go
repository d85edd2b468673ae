// Package client is what operators do with jobs, runs and queues: list and
// describe them, start and follow runs, stop, restart, pause, resume and trigger
// jobs, put jobs into queues. All of it goes to Temporal; nothing is kept here.
//
// Everything that carries this system's search attributes is ours; what does
// not, even under our names, is reported as [ErrNotOurs] and never changed.
package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// Errors that callers tell apart.
var (
	// ErrNotFound says that there is no such job, run or queue.
	ErrNotFound = errors.New("not found")
	// ErrNotOurs says that something else holds a name of ours.
	ErrNotOurs = errors.New("not ours")
	// ErrMoved says that something has changed since it was looked at.
	ErrMoved = errors.New("plan again")
	// ErrTooLate says that the server took a change after the time that it was for.
	ErrTooLate = errors.New("too late to skip")
	// ErrNoWorker says that no worker answered in time.
	ErrNoWorker = errors.New("no worker answers")
	// ErrSlow says that the server itself did not answer in time.
	ErrSlow = errors.New("temporal does not answer in time")
)

var errNotInQueue = fmt.Errorf("%w in the queue", ErrNotFound)

// Client does what operators ask for in one namespace.
type Client struct {
	*conn
	Jobs    *JobClient
	Runs    *RunClient
	Queues  *QueueClient
	Workers *WorkerClient
}

// JobClient lists, describes and changes jobs.
type JobClient struct{ *conn }

// RunClient starts, lists, follows and ends runs.
type RunClient struct{ *conn }

// QueueClient puts items into queues, and manages queues and their items.
type QueueClient struct{ *conn }

// WorkerClient tells of worker processes.
type WorkerClient struct{ *conn }

// conn is what the clients share.
type conn struct {
	temporal  sdk.Client
	namespace string
	identity  string        // of this process, in histories
	enqueuing chan struct{} // a slot for each enqueue under way
}

func (c *conn) jobs() *JobClient     { return &JobClient{c} }
func (c *conn) runs() *RunClient     { return &RunClient{c} }
func (c *conn) queues() *QueueClient { return &QueueClient{c} }

// New makes a client of the namespace that the Temporal client is for.
func New(temporal sdk.Client, namespace string) *Client {
	c := &conn{
		temporal: temporal, namespace: namespace, identity: identity(),
		enqueuing: make(chan struct{}, concurrency),
	}
	return &Client{conn: c, Jobs: c.jobs(), Runs: c.runs(), Queues: c.queues(), Workers: &WorkerClient{c}}
}

// identity names this program and process as the SDK's calls do that are given
// no other name.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s@%s/%d", filepath.Base(os.Args[0]), host, os.Getpid())
}

// NamespaceID is the id of the namespace: another cluster's namespace of the same
// name has another.
func (c *conn) NamespaceID(ctx context.Context) (string, error) {
	response, err := call(ctx, c.temporal.WorkflowService().DescribeNamespace, &workflowservice.DescribeNamespaceRequest{
		Namespace: c.namespace,
	})
	return response.GetNamespaceInfo().GetId(), explain("namespace "+c.namespace, err)
}

// Temporal is the underlying client.
func (c *conn) Temporal() sdk.Client { return c.temporal }

// Namespace is the namespace that the client works in.
func (c *conn) Namespace() string { return c.namespace }

// answerTimeout is how long a message or query may wait for a worker.
const answerTimeout = 10 * time.Second

// concurrency bounds the calls under way at once, unless someone asks otherwise.
const concurrency = 8

// Each calls do for 0..n-1, several at a time, and joins the errors.
func Each(n int, do func(i int) error) error { return EachOf(n, concurrency, do) }

// EachOf is Each with a bound on the calls under way at once; 0 is the default.
// When the server is gone or refuses a call, no further calls are begun: they
// would all wait and fail alike.
func EachOf(n, parallel int, do func(i int) error) error {
	if parallel <= 0 {
		parallel = concurrency
	}
	errs := make([]error, n)
	// The first error that says so ends ctx.
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error {
			if ctx.Err() == nil {
				errs[i] = do(i)
			}
			if isGone(errs[i]) {
				return errs[i]
			}
			return nil
		})
	}
	_ = group.Wait() // Its error is one of errs.
	return errors.Join(errs...)
}

// isGone says that a server answers no more, or not us.
func isGone(err error) bool {
	var unavailable *serviceerror.Unavailable
	var denied *serviceerror.PermissionDenied
	return errors.As(err, &unavailable) || errors.As(err, &denied)
}

// explain turns a server's answer about something named into one sentence.
func explain(what string, err error) error {
	var notFound *serviceerror.NotFound
	var invalid *serviceerror.InvalidArgument
	var app *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrSlow):
		return fmt.Errorf("%s: %w", what, err)
	case errors.As(err, &invalid) && strings.Contains(invalid.Message, "RunId"):
		return fmt.Errorf("%s: %w", what, ErrNotFound) // What is no run id names no run.
	case errors.As(err, &app) && app.Type() == contract.ErrorTypeNotInQueue:
		return fmt.Errorf("%s: %w", what, errNotInQueue)
	case errors.As(err, &notFound):
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	case unanswered(err):
		return fmt.Errorf("%s: %w within %s: is a worker of its type running?", what, ErrNoWorker, answerTimeout)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// unanswered says that no worker took a query or message in time. Which error
// that gives depends on who noticed first: the client, the server, or the part
// of the server that knows when a worker last asked for work.
func unanswered(err error) bool {
	var update *sdk.WorkflowUpdateServiceTimeoutOrCanceledError
	var late *serviceerror.DeadlineExceeded
	var canceled *serviceerror.Canceled
	var refused *serviceerror.FailedPrecondition
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &update) ||
		errors.As(err, &late) || errors.As(err, &canceled) ||
		errors.As(err, &refused) && strings.Contains(refused.Message, "no poller seen")
}

// ofServer makes an error of a call that no worker has to answer, and that took too
// long, say so.
func ofServer(ctx context.Context, err error) error {
	var late *serviceerror.DeadlineExceeded
	var canceled *serviceerror.Canceled
	if ctx.Err() == nil && (errors.As(err, &late) || errors.As(err, &canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return ErrSlow
	}
	return err
}

// NotInQueue says that a queue is there, and a job is not in it.
func NotInQueue(err error) bool { return errors.Is(err, errNotInQueue) }

func isNotFound(err error) bool {
	var notFound *serviceerror.NotFound
	return errors.As(err, &notFound)
}

// Attribute reads a keyword search attribute; "" when it is not set.
func Attribute(attributes *commonpb.SearchAttributes, name string) string {
	payload, ok := attributes.GetIndexedFields()[name]
	if !ok {
		return ""
	}
	var value string
	if err := decode(payload, &value); err != nil {
		return ""
	}
	return value
}

// Definition reads the job that a workflow's memo carries.
func Definition(memo *commonpb.Memo) (job.Job, bool) {
	payload, ok := memo.GetFields()[contract.MemoJob]
	if !ok {
		return job.Job{}, false
	}
	var j job.Job
	if err := decode(payload, &j); err != nil {
		return job.Job{}, false
	}
	return j, true
}

// pauseOf reads whether a continuous job is paused, and why.
func pauseOf(memo *commonpb.Memo) contract.Pause {
	var pause contract.Pause
	payload, ok := memo.GetFields()[contract.MemoPaused]
	if !ok || decode(payload, &pause) != nil {
		return contract.Pause{}
	}
	return pause
}

// failing reads whether the latest iterations of a continuous job failed, nil if
// they did not.
func failing(memo *commonpb.Memo) *contract.Failing {
	payload, ok := memo.GetFields()[contract.MemoFailing]
	if !ok {
		return nil
	}
	var f contract.Failing
	if err := decode(payload, &f); err != nil || !f.Failing {
		return nil
	}
	return &f
}

// listWorkflows goes through everything that a visibility query finds.
func (c *conn) listWorkflows(ctx context.Context, query string, limit int, visit func(*workflowpb.WorkflowExecutionInfo)) error {
	return c.eachWorkflow(ctx, query, limit, func(info *workflowpb.WorkflowExecutionInfo) error {
		visit(info)
		return nil
	})
}

// eachWorkflow is listWorkflows, and ends with the first error of visit.
func (c *conn) eachWorkflow(ctx context.Context, query string, limit int, visit func(*workflowpb.WorkflowExecutionInfo) error) error {
	var page []byte
	for count := 0; ; {
		response, err := c.temporal.ListWorkflow(ctx, listRequest(c.namespace, query, page, limit-count))
		if err != nil {
			return fmt.Errorf("list workflows: %w", ofServer(ctx, err))
		}
		for _, info := range response.GetExecutions() {
			if err := visit(info); err != nil {
				return err
			}
			if count++; limit > 0 && count == limit {
				return nil
			}
		}
		if page = response.GetNextPageToken(); len(page) == 0 {
			return nil
		}
	}
}
