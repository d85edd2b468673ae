package api

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// definition are the fields of a job with those of the contract. They are pairs by their
// names: a field of package job is that of the message with the name that its JSON has. An
// option that JobOptions does not have is a field of Job.
var definition = fieldsOf(reflect.TypeFor[job.Job](), (*jobsv1.Job)(nil).ProtoReflect().Descriptor())

// wireNames are the fields of the contract with other names than those of definitions.
var wireNames = map[string]string{"at": "start_time", "start_at": "start_time", "end_at": "end_time"}

// jobField is a field of a definition, and the one of the contract.
type jobField struct {
	index  []int  // in the struct
	name   string // in JSON, jobs.toml and problems
	wire   protoreflect.FieldDescriptor
	fields []jobField // of a message of the contract
}

func fieldsOf(of reflect.Type, message protoreflect.MessageDescriptor) []jobField {
	var fields []jobField
	for _, declared := range reflect.VisibleFields(of) {
		if declared.Anonymous {
			continue // Its fields are visible too.
		}
		f := jobField{index: declared.Index}
		f.name, _, _ = strings.Cut(declared.Tag.Get("json"), ",")
		wireName := f.name
		if other, ok := wireNames[f.name]; ok {
			wireName = other
		}
		f.wire = message.Fields().ByName(protoreflect.Name(wireName))
		if f.wire != nil && !f.wire.IsMap() && f.wire.Message() != nil && f.wire.Message().ParentFile() == message.ParentFile() {
			within := declared.Type
			if within.Kind() == reflect.Pointer {
				within = within.Elem()
			}
			for _, inner := range fieldsOf(within, f.wire.Message()) {
				if inner.wire != nil {
					f.fields = append(f.fields, inner)
					continue
				}
				inner.index, inner.wire = slices.Concat(f.index, inner.index), message.Fields().ByName(protoreflect.Name(inner.name))
				fields = append(fields, inner)
			}
		}
		fields = append(fields, f)
	}
	return fields
}

// fieldOf is the field of a request that a problem of a job is about.
func fieldOf(prefix string, problem job.Problem) string {
	fields := definition
	for i, name := range problem.Path {
		named := func(f jobField) bool { return f.name == name }
		at := slices.IndexFunc(fields, named)
		if options := slices.IndexFunc(fields, func(f jobField) bool { return f.name == optionsField }); i == 0 && at < 0 {
			prefix, fields = prefix+"."+optionsField, fields[options].fields
			at = slices.IndexFunc(fields, named)
		}
		if at < 0 { // A key of a spec, or of a tag.
			return prefix + "." + strings.Join(problem.Path[i:], ".")
		}
		prefix, fields = prefix+"."+string(fields[at].wire.Name()), fields[at].fields
	}
	return prefix
}

// optionsField is the field whose own fields stand beside the others in jobs.toml, and so in
// problems.
const optionsField = "options"

// JobMessage is a definition on the wire: without etag and state.
func JobMessage(j job.Job) *jobsv1.Job {
	m := &jobsv1.Job{}
	write(reflect.ValueOf(j), m.ProtoReflect(), definition)
	return m
}

// write sets the fields of a message. What is zero is left out, unless that is a value.
func write(from reflect.Value, into protoreflect.Message, fields []jobField) {
	for _, f := range fields {
		v := from.FieldByIndex(f.index)
		switch isPointer := v.Kind() == reflect.Pointer; {
		case isPointer && v.IsNil(), !isPointer && v.IsZero() && !f.wire.HasOptionalKeyword():
			continue
		case isPointer:
			v = v.Elem()
		}
		if f.fields != nil {
			write(v, into.Mutable(f.wire).Message(), f.fields)
		} else if value := wireValue(v, f.wire, into); value.IsValid() {
			into.Set(f.wire, value)
		}
	}
}

// wireValue is a value as the field of a message has it.
func wireValue(v reflect.Value, f protoreflect.FieldDescriptor, of protoreflect.Message) protoreflect.Value {
	message := func(m proto.Message) protoreflect.Value { return protoreflect.ValueOfMessage(m.ProtoReflect()) }
	switch value := v.Interface().(type) {
	case job.Duration:
		return message(durationpb.New(value.Std()))
	case time.Time:
		return message(timestamppb.New(value))
	case json.RawMessage:
		if object := structOf(value); object != nil {
			return message(object)
		}
		return protoreflect.Value{}
	case map[string]string:
		entries := of.NewField(f)
		for key, text := range value {
			entries.Map().Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(text))
		}
		return entries
	case encoding.TextMarshaler:
		text, _ := value.MarshalText() // That of an owner does not fail.
		return protoreflect.ValueOfString(string(text))
	}
	if f.Enum() != nil {
		return protoreflect.ValueOfEnum(readmodel.EnumNumber(f.Enum(), v.String()))
	}
	return protoreflect.ValueOf(v.Convert(basicTypes[f.Kind()]).Interface())
}

// basicTypes are the Go types of the kinds of fields that need no more than a conversion.
var basicTypes = map[protoreflect.Kind]reflect.Type{
	protoreflect.StringKind: reflect.TypeFor[string](),
	protoreflect.BoolKind:   reflect.TypeFor[bool](),
	protoreflect.DoubleKind: reflect.TypeFor[float64](),
	protoreflect.Int32Kind:  reflect.TypeFor[int32](),
}
