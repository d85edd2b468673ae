package api

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// Definition is the job that a message declares. What is left out has its default. It
// lists what cannot be read; whether the job is valid is for [job.Job.Validate] and its
// job type to say.
func Definition(m *jobsv1.Job) (job.Job, []job.Problem) {
	j := job.Job{Spec: json.RawMessage("{}"), Options: job.DefaultOptions(ModeOf(m))}
	var r reader
	r.read(m.ProtoReflect(), reflect.ValueOf(&j).Elem(), definition, nil)
	return j, r.problems
}

// ModeOf is the mode of a job, "" if it has none.
func ModeOf(m *jobsv1.Job) job.Mode {
	message := m.ProtoReflect()
	set := message.WhichOneof(message.Descriptor().Oneofs().ByName("mode"))
	if set == nil {
		return ""
	}
	return modeOf(string(set.Name()))
}

// reader reads values, and notes what is wrong with them.
type reader struct{ problems []job.Problem }

func (r *reader) at(path []string, format string, args ...any) {
	r.problems = append(r.problems, job.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// read sets the fields of a struct that a message has.
func (r *reader) read(from protoreflect.Message, into reflect.Value, fields []jobField, path []string) {
	for _, f := range fields {
		if !from.Has(f.wire) {
			continue
		}
		v, place := into.FieldByIndex(f.index), path
		if v.Kind() == reflect.Pointer {
			v.Set(reflect.New(v.Type().Elem()))
			v = v.Elem()
		}
		if f.name != optionsField {
			place = append(slices.Clip(path), f.name)
		}
		if f.fields != nil {
			r.read(from.Get(f.wire).Message(), v, f.fields, place)
		} else {
			r.value(from.Get(f.wire), v, f.wire, place)
		}
	}
}

// value sets a value to that of the field of a message.
func (r *reader) value(from protoreflect.Value, into reflect.Value, f protoreflect.FieldDescriptor, path []string) {
	switch value := into.Addr().Interface().(type) {
	case *job.Duration:
		r.duration(value, from.Message().Interface(), path)
	case *time.Time:
		r.time(value, from.Message().Interface(), path)
	case *json.RawMessage:
		*value = r.spec(from.Message().Interface())
	case *map[string]string:
		*value = map[string]string{}
		from.Map().Range(func(key protoreflect.MapKey, text protoreflect.Value) bool {
			(*value)[key.String()] = text.String()
			return true
		})
	case encoding.TextUnmarshaler:
		if err := value.UnmarshalText([]byte(from.String())); err != nil {
			r.at(path, "%s", err)
		}
	default:
		if f.Enum() != nil {
			into.SetString(readmodel.EnumWord(f.Enum(), from.Enum()))
			return
		}
		into.Set(reflect.ValueOf(from.Interface()).Convert(into.Type()))
	}
}

func (r *reader) time(into *time.Time, from proto.Message, path []string) {
	t, _ := from.(*timestamppb.Timestamp)
	if t.CheckValid() != nil {
		r.at(path, "it is not a time from the year 1 to 9999")
		return
	}
	*into = t.AsTime()
}

func (r *reader) duration(into *job.Duration, from proto.Message, path []string) {
	d, _ := from.(*durationpb.Duration)
	switch {
	case d.CheckValid() != nil:
		r.at(path, "it is not a duration of at most 10,000 years")
	case d.GetSeconds() < 0 || d.GetNanos() < 0:
		r.at(path, "the duration is negative")
	case d.GetSeconds() > math.MaxInt64/int64(time.Second)-1:
		r.at(path, "the duration is longer than 292 years")
	default:
		*into = job.Duration(d.AsDuration())
	}
}

// maxWhole is the largest number up to which floating-point numbers hold every whole one.
const maxWhole = 1 << 53

// wireOfSpec is more bytes of a message than any byte of JSON becomes: a digit and a comma
// are eleven.
const wireOfSpec = 8

// spec is the JSON text of a spec.
func (r *reader) spec(from proto.Message) json.RawMessage {
	s, _ := from.(*structpb.Struct)
	if proto.Size(s) > wireOfSpec*job.MaxSpecBytes { // It need not become a text to be too large.
		r.at([]string{"spec"}, "the spec has more than %d bytes: pass large data by reference", job.MaxSpecBytes)
		return nil
	}
	r.whole(structpb.NewStructValue(s), append(make([]string, 0, MaxDepth), "spec"))
	text, err := json.Marshal(s.AsMap())
	if err != nil {
		r.at([]string{"spec"}, "it has a number that is not finite")
		return nil
	}
	return text
}

// whole reports numbers that have lost digits on the way. It writes on into the path.
func (r *reader) whole(v *structpb.Value, path []string) {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_NumberValue:
		if math.Abs(kind.NumberValue) > maxWhole && kind.NumberValue == math.Trunc(kind.NumberValue) {
			r.at(slices.Clone(path), "a whole number beyond 2^53 loses digits on the way; write it as a text if the job type takes one")
		}
	case *structpb.Value_StructValue:
		for _, name := range sortedKeys(kind.StructValue.GetFields()) {
			r.whole(kind.StructValue.GetFields()[name], append(path, name))
		}
	case *structpb.Value_ListValue:
		for n, element := range kind.ListValue.GetValues() {
			r.whole(element, append(path, strconv.Itoa(n)))
		}
	}
}
