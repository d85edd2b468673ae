package workers

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// How long asking for work may take, and how long a process may go without
// asking, before its poll loop counts as dead. The server answers after a minute
// when there is no work.
const (
	longestPoll  = 75 * time.Second
	longestPause = 30 * time.Second
)

// polls watches the process ask Temporal for work. A process that lives but has
// stopped asking is as good as dead, and nothing else shows it.
type polls struct {
	mu       sync.Mutex
	underWay map[int]time.Time // when each request began
	next     int
	latest   time.Time // the last begin or end
}

func newPolls() *polls { return &polls{underWay: map[int]time.Time{}, latest: time.Now()} }

// intercept is a grpc.UnaryClientInterceptor.
func (p *polls) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if strings.HasSuffix(method, "/PollActivityTaskQueue") || strings.HasSuffix(method, "/PollWorkflowTaskQueue") {
		defer p.begin()()
	}
	return invoke(ctx, method, request, reply, conn, options...)
}

func (p *polls) begin() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	number := p.next
	p.next++
	p.latest = time.Now()
	p.underWay[number] = p.latest
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.underWay, number)
		p.latest = time.Now()
	}
}

// alive says whether the process asks for work, and when it last did or was
// answered. An error for an answer is one: a server that is down does not make
// the process dead.
func (p *polls) alive() (last time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, began := range p.underWay {
		if time.Since(began) < longestPoll {
			return p.latest, true
		}
	}
	return p.latest, time.Since(p.latest) < longestPause
}
