package audit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/redact"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// Interceptor writes two lines for each call that changes something: one with the code started
// before anything is done, which a process that is killed leaves, and one with the outcome.
// clients read how the resource was and is. While the log takes no lines, such calls are
// refused: nothing is changed that the log would not have. Those that are refused before they
// are read, and dry runs, have the second line alone.
//
// It belongs before [auth.CheckRoles], so that it sees the calls that are refused.
func (l *Log) Interceptor(clients func() *api.Clients) connect.ServerInterceptor {
	return func(next connect.ServerFunc) connect.ServerFunc {
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
			if !auth.Changes(spec) {
				return next(ctx, spec, stream)
			}
			if err := l.Ready(); err != nil {
				l.logger.ErrorContext(ctx, "a call is refused: the audit log takes no lines", "procedure", spec.Procedure, "error", err)
				return errCannotWrite
			}
			call := newCall(ctx, spec, stream, clients())
			call.write = l.Write
			err := next(ctx, spec, call)
			_ = l.Write(call.finish(err)) // It is done by now. The log of the process has told.
			return err
		}
	}
}

var errCannotWrite = api.NewError(connect.CodeUnavailable, jobsv1.ErrorReason_ERROR_REASON_BACKEND_UNAVAILABLE, "the audit log cannot be written")

// started is the code of a call that is about to be carried out.
const started = "started"

// maxChanges bounds the changes of a line.
const maxChanges = 1000

// readTimeout bounds the reads of a resource.
const readTimeout = 15 * time.Second

// call is a stream that notes what goes through it.
type call struct {
	connect.ServerStream
	ctx     context.Context //nolint:containedctx // That of the call, which a stream belongs to.
	spec    connect.Spec
	clients *api.Clients
	write   func(...Record) error

	record  Record
	request proto.Message
	asked   api.Asked
	after   *jobsv1.Job // of the response
}

func newCall(ctx context.Context, spec connect.Spec, stream connect.ServerStream, clients *api.Clients) *call {
	caller, _ := auth.CallerOf(ctx)
	return &call{ServerStream: stream, ctx: ctx, spec: spec, clients: clients, record: Record{
		Time: time.Now().UTC(), Caller: caller.Name, KnownBy: caller.KnownBy, Role: caller.Role.String(), Address: caller.Address, Procedure: spec.Procedure,
	}}
}

// Receive implements connect.ServerStream. What is received is about to be done.
func (c *call) Receive(message any) error {
	err := c.ServerStream.Receive(message)
	if m, ok := message.(proto.Message); ok && err == nil && c.request == nil {
		c.take(m)
		if !c.record.DryRun {
			c.record.Before = c.snapshot("before")
		}
		c.findQueue()
		if !c.record.DryRun {
			return c.begin()
		}
	}
	return err
}

// begin writes that the call is about to be carried out. Its outcome names the same call.
func (c *call) begin() error {
	c.record.Call = rand.Text()
	line := c.record
	line.Code, line.Before = started, nil
	if c.write(line) != nil {
		return errCannotWrite
	}
	return nil
}

// take notes what a request says.
func (c *call) take(request proto.Message) {
	c.request = request
	if method, ok := c.spec.Schema.(protoreflect.MethodDescriptor); ok {
		c.asked = api.AskedBy(method, request)
	}
	c.record.Resource, c.record.Reason = redact.Text(c.asked.Resource()), redact.Text(c.asked.Reason)
	c.record.Request = restOf(request)
	c.record.RequestID, c.record.DryRun = c.asked.RequestID, c.asked.DryRun
}

// Send implements connect.ServerStream.
func (c *call) Send(message any) error {
	switch m := message.(type) {
	case interface{ GetJob() *jobsv1.Job }:
		c.after = m.GetJob()
	case *jobsv1.ApplyJobSetResponse:
		c.record.ChangeCount++
		if encoded, err := protojson.Marshal(m.GetChange()); err == nil && len(c.record.Changes) < maxChanges {
			c.record.Changes = append(c.record.Changes, redact.JSON(encoded))
		}
	}
	return c.ServerStream.Send(message)
}

// finish completes the line of a call that has ended.
func (c *call) finish(err error) Record {
	if c.request == nil && err != nil {
		c.receiveRefused()
	}
	if err == nil && !c.record.DryRun {
		if c.after != nil {
			c.record.After = jobSnapshot(c.after)
		} else {
			c.record.After = c.snapshot("after")
		}
	}
	c.record.outcome(err)
	return c.record
}

// receiveRefused reads the request of a call that was refused, to tell what it was about.
func (c *call) receiveRefused() {
	method, ok := c.spec.Schema.(protoreflect.MethodDescriptor)
	if !ok {
		return
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		return
	}
	request := kind.New().Interface()
	if c.ServerStream.Receive(request) == nil {
		c.take(request)
	}
}

func (r *Record) outcome(err error) {
	if err == nil {
		r.Code = "ok"
		return
	}
	r.Code = connect.CodeOf(err).String()
	reason, _ := api.InfoOf(err)
	r.Error = strings.TrimPrefix(reason.String(), "ERROR_REASON_")
}

// snapshot reads the resource of a request. A job or queue that there is not is nil.
func (c *call) snapshot(when string) json.RawMessage {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), readTimeout)
	defer cancel()
	v := verbs.OfProcedure(c.spec.Procedure)
	if v == nil {
		return nil
	}
	var taken json.RawMessage
	var err error
	switch name := c.asked.Object; {
	case name == "":
	case v.Kind == verbs.KindJob:
		taken, err = c.readJob(ctx, name)
	case v.Kind == verbs.KindQueue:
		taken, err = c.readQueue(ctx, name)
	}
	if err != nil && connect.CodeOf(err) != connect.CodeNotFound {
		c.record.Note = when + " could not be read: " + connect.CodeOf(err).String()
	}
	return taken
}

// findQueue completes the resource of a request that names jobs to be put into their queue.
func (c *call) findQueue() {
	r, ok := c.request.(*jobsv1.EnqueueJobsRequest)
	if !ok || len(r.GetJobIds()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), readTimeout)
	defer cancel()
	response, err := c.clients.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: r.GetJobIds()[0]})
	if queue := response.GetJob().GetQueued().GetQueue(); err == nil && queue != "" {
		c.record.Resource += "/" + queue
	}
}

func (c *call) readJob(ctx context.Context, id string) (json.RawMessage, error) {
	response, err := c.clients.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: id})
	if err != nil {
		return nil, err
	}
	return jobSnapshot(response.GetJob()), nil
}

// jobSnapshot is the definition of a job, and whether it is paused.
func jobSnapshot(job *jobsv1.Job) json.RawMessage {
	definition := proto.CloneOf(job)
	state := definition.GetState()
	definition.State = nil
	if state != nil {
		definition.State = &jobsv1.JobState{Status: state.GetStatus(), PauseReason: state.GetPauseReason()}
	}
	return encode(definition)
}

func (c *call) readQueue(ctx context.Context, name string) (json.RawMessage, error) {
	response, err := c.clients.Queues.GetQueue(ctx, &jobsv1.GetQueueRequest{Name: name})
	if err != nil {
		return nil, err
	}
	q := response.GetQueue()
	return encode(&jobsv1.Queue{
		Name: q.GetName(), Status: q.GetStatus(), Reason: q.GetReason(), OnFailure: q.GetOnFailure(), Waiting: q.GetWaiting(), DeadLetters: q.GetDeadLetters(),
	}), nil
}

func encode(message proto.Message) json.RawMessage {
	encoded, err := protojson.Marshal(message)
	if err != nil {
		return nil
	}
	return redact.JSON(encoded)
}
