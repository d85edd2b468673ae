package api

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// mask are the paths of an update mask. None stands for all that people declare.
type mask []string

// declaredFields are the fields of a job that an update may change.
var declaredFields = []string{"spec", "one_shot", "recurring", "continuous", "queued", "options", "paused"}

func (m mask) has(path string) bool { return slices.Contains(m, path) }

// readMask reads an update mask: paths with commas between them. Those in the camel case of
// JSON are taken too.
func readMask(text string) (mask, error) {
	var paths mask
	for path := range strings.SplitSeq(text, ",") {
		path = strings.TrimSpace(path)
		if path == "" {
			continue
		}
		name, rest, _ := strings.Cut(path, ".")
		if name = snakeName(name); rest != "" {
			// Keys of a spec or of tags are as they are.
			if name != "spec" {
				field, key, nested := strings.Cut(rest, ".")
				if rest = snakeName(field); nested {
					rest += "." + key
				}
			}
			path = name + "." + rest
		} else {
			path = name
		}
		if !slices.Contains(declaredFields, name) {
			return nil, badMask(path, "it is not a field that an update changes: those are "+strings.Join(declaredFields, ", "))
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func badMask(path, text string) error {
	return badRequest(violation{"update_mask", fmt.Sprintf("%.100q: %s", path, text)})
}

func snakeName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// merge sets the fields of the mask.
func (m mask) merge(into, from *jobsv1.Job) error {
	if len(m) == 0 {
		into.Mode = nil
		for _, name := range declaredFields {
			copyField(into.ProtoReflect(), from.ProtoReflect(), field(into.ProtoReflect(), name))
		}
		return nil
	}
	from = proto.CloneOf(from)
	for _, path := range m {
		if err := mergePath(into.ProtoReflect(), from.ProtoReflect(), path, path); err != nil {
			return err
		}
	}
	return nil
}

func field(m protoreflect.Message, name string) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(protoreflect.Name(name))
}

// copyField copies a field, or clears it.
func copyField(into, from protoreflect.Message, f protoreflect.FieldDescriptor) {
	if !from.Has(f) {
		if f.ContainingOneof() == nil || f.HasOptionalKeyword() {
			into.Clear(f)
		}
		return // Another mode is set.
	}
	into.Set(f, proto.Clone(from.Interface()).ProtoReflect().Get(f))
}

// mergePath copies what a path leads to: a field, a field of a message, or a key of a map
// or of a spec.
func mergePath(into, from protoreflect.Message, path, whole string) error {
	name, rest, nested := strings.Cut(path, ".")
	f := field(into, name)
	switch {
	case f == nil:
		return badMask(whole, "there is no such field")
	case !nested && !from.Has(f) && f.ContainingOneof() != nil && !f.HasOptionalKeyword():
		return badMask(whole, "the request does not set it, and a job has exactly one mode")
	case !nested:
		copyField(into, from, f)
		return nil
	case f.IsMap() && f.MapValue().Kind() == protoreflect.StringKind:
		mergeKey(into, from, f, rest)
		return nil
	case f.Message() == nil || f.IsMap() || f.IsList():
		return badMask(whole, "it has no fields")
	case f.ContainingOneof() != nil && !into.Has(f):
		return badMask(whole, "the job has another mode")
	}
	if object, ok := into.Mutable(f).Message().Interface().(*structpb.Struct); ok {
		wanted, _ := from.Get(f).Message().Interface().(*structpb.Struct)
		mergeSpec(object, wanted, rest)
		return nil
	}
	return mergePath(into.Mutable(f).Message(), from.Get(f).Message(), rest, whole)
}

// mergeKey copies the value of a key of a map of texts.
func mergeKey(into, from protoreflect.Message, f protoreflect.FieldDescriptor, name string) {
	key := protoreflect.ValueOfString(name).MapKey()
	if value := from.Get(f).Map(); value.Has(key) {
		into.Mutable(f).Map().Set(key, value.Get(key))
		return
	}
	into.Mutable(f).Map().Clear(key)
}

// mergeSpec copies the value of a key of a spec.
func mergeSpec(into, from *structpb.Struct, key string) {
	value, ok := from.GetFields()[key]
	switch {
	case !ok:
		delete(into.GetFields(), key)
	case into.GetFields() == nil:
		into.Fields = map[string]*structpb.Value{key: value}
	default:
		into.Fields[key] = value
	}
}
