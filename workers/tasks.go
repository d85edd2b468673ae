package workers

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// tasks knows when the process asked for the tasks that it was given. A task was
// not given out before that, and however long the answer was delayed, in a
// connection that was cut off or in a process that stood still, it shows.
type tasks struct {
	now   clock
	types map[string]bool // activities to remember tasks of

	mu    sync.Mutex
	asked map[string]time.Duration // by task token
}

// forgottenAfter is when a task that was never begun is forgotten: the SDK drops
// tasks when a worker stops.
const forgottenAfter = time.Hour

func newTasks(now clock, types []string) *tasks {
	t := &tasks{now: now, types: map[string]bool{}, asked: map[string]time.Duration{}}
	for _, name := range types {
		t.types[name] = true
	}
	return t
}

// intercept is a grpc.UnaryClientInterceptor.
func (t *tasks) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	asked := t.now()
	err := invoke(ctx, method, request, reply, conn, options...)
	if err != nil {
		return err
	}
	switch reply := reply.(type) {
	case *workflowservice.PollActivityTaskQueueResponse:
		t.note(asked, reply)
	case *workflowservice.RespondWorkflowTaskCompletedResponse: // Brings activities that begin at once.
		for _, task := range reply.GetActivityTasks() {
			t.note(asked, task)
		}
	}
	return nil
}

func (t *tasks) note(asked time.Duration, task *workflowservice.PollActivityTaskQueueResponse) {
	if len(task.GetTaskToken()) == 0 {
		return // There was no work.
	}
	if !t.types[task.GetActivityType().GetName()] {
		return
	}
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for token, asked := range t.asked {
		if now-asked > forgottenAfter {
			delete(t.asked, token)
		}
	}
	t.asked[string(task.GetTaskToken())] = asked
}

// begin gives the time at which the process asked for a task, and forgets it.
func (t *tasks) begin(token []byte) (asked time.Duration, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	asked, known = t.asked[string(token)]
	delete(t.asked, string(token))
	return asked, known
}
