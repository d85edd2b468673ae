package workers

import (
	"context"
	"strings"
	"sync"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// farewells watches the process tell Temporal that it asks for no more work, which
// the SDK does for each task queue when its worker stops. From then on Temporal
// gives it none.
type farewells struct {
	mu   sync.Mutex
	left map[string]bool // task queues that Temporal has not been told of
	said func()
}

// expect has done called once Temporal knows of all of the task queues.
func (f *farewells) expect(taskQueues []string, done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.said = map[string]bool{}, done
	for _, name := range taskQueues {
		f.left[name] = true
	}
}

// intercept is a grpc.UnaryClientInterceptor.
func (f *farewells) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, reply, conn, options...)
	if farewell, ok := request.(*workflowservice.ShutdownWorkerRequest); ok && err == nil && strings.HasSuffix(method, "/ShutdownWorker") {
		f.say(farewell.GetTaskQueue())
	}
	return err
}

func (f *farewells) say(taskQueue string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.left[taskQueue] {
		return
	}
	if delete(f.left, taskQueue); len(f.left) == 0 {
		f.said()
	}
}
