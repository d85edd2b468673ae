package verbs

import (
	"context"
	"fmt"
	"strings"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Caller makes calls of the Job API: a *connect.Client.
type Caller interface {
	CallUnary(ctx context.Context, spec connect.Spec, request, response any) error
}

// Do does the verb. The error is the API's.
func (v *Verb) Do(ctx context.Context, c Caller, a Args) (Done, error) {
	method, err := v.method()
	if err != nil {
		return Done{}, err
	}
	answer, err := messageOf(method.Output())
	if err != nil {
		return Done{}, err
	}
	options, _ := method.Options().(*descriptorpb.MethodOptions) // It has no others.
	request, err := v.requestOf(method, a)
	if err != nil {
		return Done{}, err
	}
	spec := connect.Spec{
		StreamType: connect.StreamTypeUnary, Schema: method, Procedure: v.Procedure,
		IdempotencyLevel: connect.IdempotencyLevel(options.GetIdempotencyLevel()),
	}
	if err := c.CallUnary(ctx, spec, request, answer); err != nil {
		return Done{}, err
	}
	return v.Meaning(a, answer), nil
}

// Meaning is what an answer of its procedure says.
func (v *Verb) Meaning(a Args, answer proto.Message) (done Done) {
	if v.done != nil {
		done = v.done(a, answer)
	}
	done.Answer = answer
	return done
}

// requestOf is the request of a procedure that the arguments make.
func (v *Verb) requestOf(method protoreflect.MethodDescriptor, a Args) (request proto.Message, err error) {
	if v.request != nil {
		request = v.request(a)
	} else if request, err = messageOf(method.Input()); err != nil {
		return nil, err
	}
	if a.With != nil {
		proto.Merge(request, a.With)
	}
	if field := reasonOf(method); field != nil && a.Reason != "" {
		request.ProtoReflect().Set(field, protoreflect.ValueOfString(a.Reason))
	}
	return request, nil
}

// TakesReason reports whether the request has a reason. That of a silence is in the silence.
func (v *Verb) TakesReason() bool {
	method, err := v.method()
	return err == nil && reasonOf(method) != nil
}

// TakesDuration reports whether the request has how long what is done lasts.
func (v *Verb) TakesDuration() bool {
	method, err := v.method()
	return err == nil && method.Input().Fields().ByName("duration") != nil
}

// reasonOf is the field of a procedure's request that says why it is called, nil if it has none.
func reasonOf(method protoreflect.MethodDescriptor) protoreflect.FieldDescriptor {
	return method.Input().Fields().ByName("reason")
}

// method is the verb's procedure in the contract.
func (v *Verb) method() (protoreflect.MethodDescriptor, error) {
	name := strings.ReplaceAll(strings.TrimPrefix(v.Procedure, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, fmt.Errorf("procedure %s of verb %s: %w", v.Procedure, v.Name, err)
	}
	method, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s of verb %s is no procedure", v.Procedure, v.Name)
	}
	return method, nil
}

func messageOf(d protoreflect.MessageDescriptor) (proto.Message, error) {
	found, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		return nil, fmt.Errorf("message %s: %w", d.FullName(), err)
	}
	return found.New().Interface(), nil
}
