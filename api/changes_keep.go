package api

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/changes"
	"github.com/dendrascience/dendra-jobs/internal/redact"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// noted is what a call that changes something says and does.
type noted struct {
	asked    Asked
	response proto.Message

	mu sync.Mutex
	// definitions are those that have changed.
	definitions []schedules.Change
}

type notedKey struct{}

// noteDefinitions notes a change of a definition that was made, for the history.
func noteDefinitions(ctx context.Context, report schedules.Report) {
	n, ok := ctx.Value(notedKey{}).(*noted)
	if !ok || report.Err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.definitions = append(n.definitions, report.Change)
}

// keepChanges keeps each call of a verb that has changed something in the history, whether it
// comes over the network or from this process. It is the innermost interceptor: what is refused
// before changes nothing. A call neither waits for the history nor fails with it. Items that are
// put into a queue are its work: they would drown what people do.
func (s *Server) keepChanges(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		v := verbs.OfProcedure(spec.Procedure)
		method, ok := spec.Schema.(protoreflect.MethodDescriptor)
		if v == nil || v == verbs.EnqueueJobs || s.changes == nil || !ok {
			return next(ctx, spec, stream)
		}
		n := &noted{}
		err := next(context.WithValue(ctx, notedKey{}, n), spec, &notedStream{stream, method, n})
		var told error // With the code that callers see.
		if err != nil {
			told = s.explain(ctx, err)
		}
		for _, record := range n.records(v, told) {
			record.Time, record.Caller, record.Verb = time.Now().UTC(), callerOf(ctx), v.Name
			record.Reason = redact.Text(n.asked.Reason)
			s.changes.Keep(record)
		}
		return err
	}
}

// notedStream notes the request and the last answer of a call.
type notedStream struct {
	connect.ServerStream
	method protoreflect.MethodDescriptor
	noted  *noted
}

// Receive implements connect.ServerStream.
func (s *notedStream) Receive(message any) error {
	err := s.ServerStream.Receive(message)
	if m, ok := message.(proto.Message); ok && err == nil {
		s.noted.asked = AskedBy(s.method, m)
	}
	return err
}

// Send implements connect.ServerStream.
func (s *notedStream) Send(message any) error {
	if m, ok := message.(proto.Message); ok {
		s.noted.response = m
	}
	return s.ServerStream.Send(message)
}

// records are the changes that a call has made: one for each definition, or one.
func (n *noted) records(v *verbs.Verb, err error) []changes.Record {
	var records []changes.Record
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.definitions {
		change := &n.definitions[i]
		before, after := change.Definitions()
		records = append(records, changes.Record{
			Kind: string(verbs.KindJob), Object: change.JobID, Result: string(change.Action) + "d",
			Before: definitionJSON(before), After: definitionJSON(after),
		})
	}
	if len(records) > 0 || v.Kind == verbs.KindJobSet || n.asked.DryRun {
		return records
	}
	record := changes.Record{Kind: n.asked.Kind}
	record.Object, record.Detail = n.object(v)
	if err != nil {
		if !mayHaveChanged(err) {
			return nil
		}
		record.Result = "not known: " + redact.Text(oneLine(err))
		return []changes.Record{record}
	}
	done := v.Meaning(verbs.Args{Names: n.asked.Names}, n.response)
	changed, ok := n.response.(interface{ GetChange() *jobsv1.JobChange })
	if done.Unchanged || ok && changed.GetChange().GetAction() == jobsv1.JobAction_JOB_ACTION_UNCHANGED {
		return nil
	}
	record.Result = redact.Text(cmp.Or(done.Result, "done"))
	return []changes.Record{record}
}

// object is what a call was about, and more of its name.
func (n *noted) object(v *verbs.Verb) (object, detail string) {
	names := n.asked.Names
	switch {
	case len(names) == 0:
		return "", ""
	case v.Kind == verbs.KindRun:
		workflowID, _, _ := strings.Cut(names[0], "@")
		return contract.JobIDOfRun(workflowID), names[0]
	case v.Kind == verbs.KindLoad:
		return strings.Join(names, "/"), ""
	case v.Kind == verbs.KindJob && n.asked.Object != "":
		return n.asked.Object, ""
	}
	return names[0], redact.Text(strings.Join(names[1:], "/"))
}

// mayHaveChanged reports whether a call that failed may have changed something.
func mayHaveChanged(err error) bool {
	switch connect.CodeOf(err) {
	case connect.CodeUnknown, connect.CodeInternal, connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeCanceled:
		return true
	}
	return false
}

// definitionJSON is a definition as the history keeps it, nil if there is none.
func definitionJSON(j *job.Job) []byte {
	if j == nil {
		return nil
	}
	text, err := protojson.Marshal(JobMessage(*j))
	if err != nil {
		return nil
	}
	return redact.JSON(text)
}
