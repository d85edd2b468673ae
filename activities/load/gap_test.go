package load_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/load"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// link forwards connections to a server, and can lose what the server says.
type link struct {
	listener net.Listener
	loses    atomic.Bool
	made     atomic.Int64 // connections

	mu    sync.Mutex
	conns []net.Conn
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &link{listener: listener}
	t.Cleanup(func() {
		_ = listener.Close()
		l.cut()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			l.mu.Lock()
			l.conns = append(l.conns, client, server)
			l.mu.Unlock()
			l.made.Add(1)
			go func() {
				_, _ = io.Copy(server, client)
				_ = server.Close()
			}()
			go func() {
				_, _ = io.Copy(lossy{l, client}, server)
				_ = client.Close()
			}()
		}
	}()
	return l
}

// cut breaks all connections.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.conns = nil
}

type lossy struct {
	link *link
	io.Writer
}

func (l lossy) Write(b []byte) (int, error) {
	if l.link.loses.Load() {
		return len(b), nil
	}
	return l.Writer.Write(b)
}

// TestMessageLostOnItsWay: the connection to NATS breaks when the first message for
// an idle loader is on its way. The next one must not acknowledge it.
func TestMessageLostOnItsWay(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	b := newBench(t, "lostway", st)
	b.publishNumbers(t, 0, 1)
	b.drain(t)
	waits := func(some bool) {
		stacktest.WaitFor(t, "the fetches that wait", func() (bool, error) { return b.consumer(t).NumWaiting > 0 == some, nil })
	}
	waits(false) // those of before

	l := newLink(t, strings.TrimPrefix(st.NATS, "nats://"))
	client, err := pipeline.Connect(t.Context(), "nats://"+l.listener.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	b.spec.IterationDuration = job.Duration(time.Hour)
	run := b.newRun()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err = load.LiveInflux(client).Handle(t.Context(), run)
	}()
	waits(true)
	l.loses.Store(true)
	b.publishNumbers(t, 1, 2)
	stacktest.WaitFor(t, "the message to be delivered", func() (bool, error) { return b.consumer(t).NumAckPending == 1, nil })
	l.cut()
	l.loses.Store(false)
	stacktest.WaitFor(t, "the loader to be connected again", func() (bool, error) { return l.made.Load() > 1, nil })
	b.publishNumbers(t, 2, 3)
	stacktest.WaitFor(t, "the loader to have answered", func() (bool, error) {
		select {
		case <-ended: // it fetched while it was not connected
			return true, nil
		default:
		}
		return b.loaded(t, pipeline.DefaultMirror), nil
	})
	run.Stop()
	<-ended
	t.Log("the iteration that lost it ended with", err)
	b.spec.IterationDuration = job.Duration(200 * time.Millisecond)
	b.drain(t)
	require.EqualValues(t, 3, b.count(t, "v"))
}

// TestMessageTakenByAnother: another reader waits for messages, and gets the first
// of those that are given again when the loader begins.
func TestMessageTakenByAnother(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	for name, prepare := range map[string]func(*testing.T, *bench){
		"takenfirst": func(t *testing.T, b *bench) { // stored and not acknowledged
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b.proxy.onWrite(func(http.ResponseWriter, *http.Request, []byte) bool {
				cancel()
				return true
			})
			_, err := b.jobType.Handle(ctx, b.newRun())
			require.ErrorIs(t, err, context.Canceled)
		},
		"takenprobe": func(t *testing.T, b *bench) { // the mirror is down
			b.proxy.onWrite(answer(http.StatusServiceUnavailable, "busy", "Retry-After", "1"))
			_, err := b.iteration(t)
			require.Equal(t, errclass.InfluxUnreachable, jobtest.FailureOf(t, err).Class)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, name, st)
			b.publishNumbers(t, 0, 10)
			usual := b.spec
			// One fetch takes all ten, and the iteration ends with the write.
			b.spec.BatchPoints, b.spec.BatchAge, b.spec.IterationDuration = 10, job.Duration(30*time.Second), job.Duration(time.Hour)
			prepare(t, b)
			b.spec = usual
			b.proxy.onWrite(nil)
			require.Equal(t, 10, b.consumer(t).NumAckPending)
			consumer, err := b.client.JetStream().Consumer(t.Context(), pipeline.StreamPrepared, b.consumer(t).Name)
			require.NoError(t, err)
			other, err := consumer.Fetch(1, jetstream.FetchMaxWait(30*time.Second))
			require.NoError(t, err)
			stacktest.WaitFor(t, "the other reader to wait", func() (bool, error) { return b.consumer(t).NumWaiting > 0, nil })
			b.drain(t)
			require.NotNil(t, <-other.Messages(), "it has taken one")
			require.EqualValues(t, 10, b.count(t, "v"))
		})
	}
}

// taken has another reader acknowledge so many messages, and take some of those that
// follow it.
func (b *bench) taken(t *testing.T, before, n int) []*pipeline.Delivery {
	t.Helper()
	b.publishNumbers(t, 0, before+n)
	consumer, err := b.client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{
		Name: pipeline.LoadConsumer(pipeline.OperationLive, b.name, pipeline.DefaultMirror), Subject: b.subject(), InOrder: true,
	})
	require.NoError(t, err)
	done, err := consumer.Fetch(t.Context(), before, 30*time.Second, nil)
	require.NoError(t, err)
	require.Len(t, done, before)
	require.NoError(t, consumer.Ack(t.Context(), done))
	inHand, err := consumer.Fetch(t.Context(), 20, 30*time.Second, nil)
	require.NoError(t, err)
	require.Len(t, inHand, 20)
	return inHand
}

// TestLateAcknowledgementOfAnother: a loader that was taken for dead acknowledges what
// it has in hand after the next one has begun. The server then takes the
// acknowledgements of that one for older ones, answers them and notes nothing.
func TestLateAcknowledgementOfAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t, "lateack", stacktest.Start(t))
	const before, n = 2000, 1000
	inHand := b.taken(t, before, n)
	late := make(chan error, 1)
	b.proxy.afterWrite(sync.OnceFunc(func() { late <- pipeline.Acknowledge(t.Context(), inHand[:1]) }))
	b.spec.BatchPoints, b.spec.IterationDuration = 100, job.Duration(time.Hour)
	run := b.newRun()
	var result job.Result
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, err = b.jobType.Handle(t.Context(), run)
	}()
	require.NoError(t, <-late)
	stacktest.WaitFor(t, "all to be acknowledged", func() (bool, error) { return b.loaded(t, pipeline.DefaultMirror), nil })
	run.Stop()
	<-ended
	require.NoError(t, err)
	require.EqualValues(t, n-1, result.Counts["messages"], "each is counted once, and the one of the other is not")
	require.EqualValues(t, n, b.count(t, "v"))
}

// TestAcknowledgementsWithoutEffect: another reader acknowledges something after each
// write of the loader, which does not go on like that for ever.
func TestAcknowledgementsWithoutEffect(t *testing.T) {
	t.Parallel()
	b := newBench(t, "notnoted", stacktest.Start(t))
	const before, n = 500, 100
	inHand := b.taken(t, before, n)
	var late atomic.Int64
	b.proxy.afterWrite(func() {
		if i := int(late.Add(1)) - 1; i < len(inHand) {
			_ = pipeline.Acknowledge(t.Context(), inHand[i:i+1])
		}
	})
	b.spec.BatchPoints, b.spec.IterationDuration = n, job.Duration(time.Hour)
	result, err := b.iteration(t)
	failure := jobtest.FailureOf(t, err)
	require.Equal(t, errclass.AckNotNoted, failure.Class)
	require.False(t, failure.Kind.Final())
	require.Contains(t, err.Error(), "location notnoted (live) is not loaded into mirror default, since the last 5 acknowledgements to consumer load-live-notnoted had no effect")
	require.Zero(t, result.Counts["messages"])
	writes := late.Load()
	require.GreaterOrEqual(t, writes, int64(5)) // more if a fetch brought a part
	require.LessOrEqual(t, int(writes), len(inHand))

	b.proxy.afterWrite(nil)
	b.spec.IterationDuration = job.Duration(200 * time.Millisecond)
	require.EqualValues(t, n-writes, b.drain(t)["messages"])
	require.EqualValues(t, n, b.count(t, "v"))
}
