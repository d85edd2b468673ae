// Package replay runs the histories of a Temporal server with the workflows of this program, and
// says which of them the code does not fit. It changes nothing.
package replay

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// Options say which histories are replayed.
type Options struct {
	Temporal temporalclient.Settings
	// Since is the earliest end of a run. Open ones are always replayed.
	Since time.Time
	// Most bounds the histories of each workflow type: the latest. 0 means all.
	Most int
	// Register adds the workflows. Defaults to those of this program.
	Register func(workflows.Registry)
}

// Report is what a replay has found.
type Report struct {
	// Replayed counts histories, by workflow type.
	Replayed map[string]int `json:"replayed"`
	// Different are those that the code does not fit.
	Different []Difference `json:"different"`
}

// Difference is a history that the code does not fit.
type Difference struct {
	WorkflowType string `json:"workflow_type"`
	WorkflowID   string `json:"workflow_id"`
	RunID        string `json:"run_id"`
	// Open says that the run is under way: it would fail.
	Open bool `json:"open"`
	// Where is the event of the history, and what the code does in its place.
	Where string `json:"where"`
}

// atOnce bounds the histories that are replayed at a time: most of the time is the server's.
const atOnce = 4

// names are the workflow types that a function registers.
type names []string

// RegisterWorkflowWithOptions implements workflows.Registry.
func (n *names) RegisterWorkflowWithOptions(_ any, options workflow.RegisterOptions) {
	*n = append(*n, options.Name)
}

// Run replays the histories of a server. The error is that of a server that cannot be asked.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Register == nil {
		o.Register = workflows.Register
	}
	settings, err := temporalclient.Options(o.Temporal)
	if err != nil {
		return nil, err
	}
	temporal, err := temporalclient.Dial(ctx, o.Temporal)
	if err != nil {
		return nil, err
	}
	defer temporal.Close()
	r := replayer{Options: o, client: temporal, namespace: settings.Namespace, report: &Report{Replayed: map[string]int{}, Different: []Difference{}}}
	var types names
	o.Register(&types)
	for _, name := range types {
		if err := r.replayType(ctx, name); err != nil {
			return nil, err
		}
	}
	return r.report, nil
}

type replayer struct {
	Options
	client    client.Client
	namespace string

	mu     sync.Mutex
	report *Report
}

// replayType replays the histories of one workflow type.
func (r *replayer) replayType(ctx context.Context, name string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	defer wait.Wait()
	query := fmt.Sprintf("WorkflowType = '%s' AND (ExecutionStatus = 'Running' OR CloseTime >= '%s')", name, r.Since.UTC().Format(time.RFC3339))
	request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: r.namespace, Query: query, PageSize: 1000}
	for count := 0; ; {
		page, err := r.client.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("list workflows of type %s: %w", name, causeOf(ctx, err))
		}
		for _, info := range page.GetExecutions() {
			if r.Most > 0 && count == r.Most {
				break
			}
			count++
			slots <- struct{}{}
			wait.Go(func() {
				defer func() { <-slots }()
				if err := r.replay(ctx, name, info.GetExecution(), info.GetCloseTime() == nil); err != nil {
					cancel(err)
				}
			})
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 || r.Most > 0 && count == r.Most {
			wait.Wait()
			return causeOf(ctx, nil)
		}
	}
}

// causeOf is why a context was canceled, or else err.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// replay replays one history.
func (r *replayer) replay(ctx context.Context, name string, execution *commonpb.WorkflowExecution, open bool) error {
	history, err := r.history(ctx, execution)
	if err != nil {
		return fmt.Errorf("read the history of %s: %w", execution.GetWorkflowId(), err)
	}
	if history == nil {
		return nil // It has been deleted meanwhile.
	}
	code, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{})
	if err != nil {
		return err
	}
	r.Register(code)
	different := code.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Replayed[name]++
	if different != nil {
		where, _, _ := strings.Cut(different.Error(), "\n")
		r.report.Different = append(r.report.Different, Difference{
			WorkflowType: name, WorkflowID: execution.GetWorkflowId(), RunID: execution.GetRunId(), Open: open, Where: where,
		})
	}
	return nil
}
