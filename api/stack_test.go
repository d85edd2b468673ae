package api_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/runlogs"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/workers"
)

// world is a server of the API with a worker, which all tests share.
type world struct {
	server   *api.Server
	client   *client.Client
	pipeline *pipeline.Client
	url      string // of the server over HTTP
	log      *stacktest.Output
	stack    *stacktest.Stack
	temporal sdk.Client
	platform *reconciletest.Platform
}

// TestStack works with the API on a real Temporal, NATS and worker.
func TestStack(t *testing.T) {
	t.Parallel()
	w := startWorld(t, stacktest.Start(t))
	// In the short form one transport of Go is drawn. The commands below speak JSON over HTTP.
	drawn := []string{"in process", "grpc"}[stacktest.Random(t).IntN(2)]
	for name, clients := range w.transports() {
		if !stacktest.Long() && name != drawn {
			continue
		}
		t.Run("every method "+name, func(t *testing.T) {
			t.Parallel()
			everyMethod(t, w, strings.ReplaceAll(name, " ", "-")+"-x", clients)
		})
	}
	t.Run("plain HTTP", func(t *testing.T) { t.Parallel(); plainHTTP(t, w) })
	t.Run("every method by curl", func(t *testing.T) { t.Parallel(); methodsByCurl(t, w) })
	t.Run("methods by buf curl", func(t *testing.T) { t.Parallel(); methodsByBuf(t, w) })
	t.Run("health", func(t *testing.T) { t.Parallel(); health(t, w) })
	t.Run("abuse", func(t *testing.T) { t.Parallel(); abuse(t, w) })
	t.Run("secrets", func(t *testing.T) { t.Parallel(); secrets(t, w) })
	t.Run("streams that are left", func(t *testing.T) { t.Parallel(); leftStreams(t, w) })
	t.Run("one watch of a run", func(t *testing.T) { t.Parallel(); oneWatch(t, w) })
	t.Run("pages of runs", func(t *testing.T) { t.Parallel(); pagesOfRuns(t, w) })
	t.Run("repeated creates", func(t *testing.T) { t.Parallel(); repeatedCreates(t, w) })
	t.Run("documented commands", func(t *testing.T) { t.Parallel(); documentedCommands(t, w) })
	t.Run("drift", func(t *testing.T) { t.Parallel(); driftByHand(t, w) })
	t.Run("pages of jobs", func(t *testing.T) { t.Parallel(); pagesOfJobs(t, w) })
	t.Run("ownership", func(t *testing.T) { t.Parallel(); ownership(t, w) })
}

// stepSpec is the spec of the test's job types.
type stepSpec struct {
	Steps int `json:"steps" minimum:"1" help:"steps of a run"`
	// Gate is a file that a run waits for.
	Gate string `json:"gate,omitempty" help:"a file to wait for"`
	Fail bool   `json:"fail,omitempty" help:"ends as failed"`
	// Token is never read.
	Token job.SecretRef `json:"token,omitempty" help:"a secret"`
}

func takeSteps(ctx context.Context, run job.Run, spec stepSpec) (job.Result, error) {
	if spec.Fail {
		return job.Result{}, job.Final("Told", "told to fail")
	}
	run.Checkpoint(job.Progress{Done: 1, Total: int64(spec.Steps), Message: "on the way"}, nil)
	if err := workertest.Pass(ctx, run, spec.Gate); err != nil {
		return job.Result{}, err
	}
	return job.Result{
		Message: "all steps taken", Counts: map[string]int64{"steps": int64(spec.Steps)}, Output: job.EncodeJSON(map[string]int{"last": spec.Steps}),
	}, nil
}

// ownTypes are known to the server; announcedType comes from the worker alone.
func ownTypes() []job.Type {
	return []job.Type{
		job.NewType("TakeSteps", "apitest", "Takes steps.", takeSteps),
		job.NewType("OnlyRecurring", "apitest", "Cannot be run once.", takeSteps, job.ModeRecurring),
	}
}

// documentedType is the built-in job type of the commands of docs/job-api.md.
func documentedType(t *testing.T) job.Type {
	t.Helper()
	types := activities.Types()
	at := slices.IndexFunc(types, func(known job.Type) bool { return known.Name == "ExtractHoboTimeFrame" })
	require.GreaterOrEqual(t, at, 0)
	return types[at]
}

func announcedType() job.Type {
	return job.NewType("AnnouncedSteps", "apitest", "Comes from a worker.", takeSteps)
}

func startWorld(t *testing.T, st *stacktest.Stack) *world {
	t.Helper()
	temporal := st.Dial(t)
	w := &world{client: client.New(temporal, st.Namespace), log: &stacktest.Output{}, stack: st, temporal: temporal, platform: reconciletest.New(t)}
	w.pipeline = st.Pipeline(t)

	logs := runlogs.Keep(context.Background(), w.pipeline, newLogger(w.log))
	t.Cleanup(logs.Close)
	workertest.Run(t, st, workers.Config{RunLogs: logs, Logger: newLogger(w.log), Types: append(ownTypes(), announcedType())})
	workertest.WaitListed(t, w.client)

	w.server = api.New(api.Config{
		Client: w.client, Store: w.store, Pipeline: w.pipeline, Platform: w.platform.Client, Types: append(ownTypes(), documentedType(t)), Logger: newLogger(w.log),
		Reads: readmodel.Config{Temporal: st.Settings()},
	})
	t.Cleanup(w.server.Close)
	w.url = serve(t, w.server.Handler())
	w.awaitSchedules(t)
	return w
}

// store is the S3 store of the stack.
func (w *world) store() (*objects.Store, error) { return objects.New(objectstest.Config(w.stack.S3)) }

// awaitSchedules waits for Temporal to take schedules. A server that has just started, on a
// machine with other work, may not answer within the time that a call has.
func (w *world) awaitSchedules(t *testing.T) {
	t.Helper()
	clients := w.server.InProcess()
	first := steps(t, "take_steps.first")
	first.Mode = &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{Cron: "0 6 * * *"}}
	stacktest.WaitFor(t, "the first schedule", func() (bool, error) {
		_, err := clients.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: first})
		return err == nil, err
	})
	stacktest.WaitFor(t, "the first schedule to be gone", func() (bool, error) {
		_, err := clients.Jobs.DeleteJob(t.Context(), &jobsv1.DeleteJobRequest{Id: first.GetId()})
		return err == nil || connect.CodeOf(err) == connect.CodeNotFound, err
	})
}

// serve serves HTTP/1.1, and HTTP/2 without TLS.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, Protocols: protocols()}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return "http://" + listener.Addr().String()
}

func protocols() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// http2 is a client of HTTP/2 without TLS.
func http2() *http.Client {
	p := &http.Protocols{}
	p.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{Protocols: p}}
}

// calledClients are clients of the API that note which methods have answered.
type calledClients struct {
	*api.Clients
	mu     sync.Mutex
	called map[string]bool
}

// through gives clients that call through a transport.
func (w *world) through(transport connect.Transport) *calledClients {
	called := &calledClients{called: map[string]bool{}}
	called.Clients = api.NewClients(transport, called.note)
	return called
}

// over gives clients that call over HTTP.
func (w *world) over(c *http.Client, options ...connecthttp.Option) *calledClients {
	return w.through(connecthttp.NewTransport(c, w.url, options...))
}

// jsonWithGet has calls written as people write them.
func jsonWithGet() []connecthttp.Option {
	return []connecthttp.Option{connecthttp.WithProtoJSON(), connecthttp.WithHTTPGet(), connecthttp.WithHTTPGetMaxURLSize(4<<10, true)}
}

// transports are the ways to the server of the Go client.
func (w *world) transports() map[string]*calledClients {
	inProcess := &calledClients{called: map[string]bool{}}
	inProcess.Clients = w.server.InProcess(inProcess.note)
	return map[string]*calledClients{
		"in process": inProcess,
		"protobuf":   w.over(&http.Client{}),
		"json":       w.over(&http.Client{}, jsonWithGet()...),
		"grpc":       w.over(http2(), connecthttp.WithGRPC()),
		"grpc web":   w.over(&http.Client{}, connecthttp.WithGRPCWeb()),
	}
}

// note is an interceptor.
func (c *calledClients) note(next connect.ClientFunc) connect.ClientFunc {
	return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
		stream, err := next(ctx, spec)
		if err != nil {
			return nil, err
		}
		return &notedStream{ClientStream: stream, answered: func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.called[spec.Procedure] = true
		}}, nil
	}
}

type notedStream struct {
	connect.ClientStream
	answered func()
}

func (s *notedStream) Receive(message any) error {
	err := s.ClientStream.Receive(message)
	if err == nil {
		s.answered()
	}
	return err
}

// requireAllCalled requires that every method has answered.
func (c *calledClients) requireAllCalled(t *testing.T, w *world) {
	t.Helper()
	var missing []string
	for _, procedure := range w.server.Procedures() {
		if !c.called[procedure] {
			missing = append(missing, procedure)
		}
	}
	require.Empty(t, missing, "these methods have not answered")
	require.Greater(t, len(c.called), 40)
}

// receiver is the client's side of a stream.
type receiver[M any] interface {
	Receive() (M, error)
	Close() error
}

// drain reads a stream to its end.
func drain[M any](t *testing.T, stream receiver[M], err error) []M {
	t.Helper()
	require.NoError(t, err)
	defer func() { require.NoError(t, stream.Close()) }()
	var all []M
	for {
		message, err := stream.Receive()
		if err != nil {
			require.True(t, isEOF(err), "%v", err)
			return all
		}
		all = append(all, message)
	}
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

func newLogger(to io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
