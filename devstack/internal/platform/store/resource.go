package store

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Wrap makes a resource of a message, such as a Station.
func Wrap(message proto.Message) *platformv1.Resource {
	r := &platformv1.Resource{}
	fields := r.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); field.Message().FullName() == message.ProtoReflect().Descriptor().FullName() {
			r.ProtoReflect().Set(field, protoreflect.ValueOfMessage(message.ProtoReflect()))
		}
	}
	return r
}

// Unwrap returns the message in a resource. The zero value is none.
func Unwrap[M proto.Message](r *platformv1.Resource) (m M) {
	if inner := inner(r); inner != nil {
		m, _ = inner.Interface().(M)
	}
	return m
}

// Kind is the kind of a resource.
func Kind(r *platformv1.Resource) platformv1.ResourceKind {
	if r == nil {
		return platformv1.ResourceKind_RESOURCE_KIND_UNSPECIFIED
	}
	field := r.ProtoReflect().WhichOneof(r.ProtoReflect().Descriptor().Oneofs().Get(0))
	if field == nil {
		return platformv1.ResourceKind_RESOURCE_KIND_UNSPECIFIED
	}
	return platformv1.ResourceKind(field.Number())
}

// Name is what people call a resource: station 5b0f…
func Name(kind platformv1.ResourceKind, id string) string {
	field := (&platformv1.Resource{}).ProtoReflect().Descriptor().Fields().ByNumber(protoreflect.FieldNumber(kind))
	if field == nil {
		return fmt.Sprintf("resource %s of kind %d", id, kind)
	}
	return string(field.Name()) + " " + id
}

// ID is the id of a resource.
func ID(r *platformv1.Resource) string { return text(r, "id") }

// Etag is the etag of a resource.
func Etag(r *platformv1.Resource) string { return text(r, "etag") }

// OrganizationID is the organization of a resource, "" if it has none.
func OrganizationID(r *platformv1.Resource) string {
	if Kind(r) == platformv1.ResourceKind_RESOURCE_KIND_ORGANIZATION {
		return ID(r)
	}
	return text(r, "organization_id")
}

// StationID is the station of a resource, "" if it has none.
func StationID(r *platformv1.Resource) string { return text(r, "station_id") }

func inner(r *platformv1.Resource) protoreflect.Message {
	if r == nil {
		return nil
	}
	field := r.ProtoReflect().WhichOneof(r.ProtoReflect().Descriptor().Oneofs().Get(0))
	if field == nil {
		return nil
	}
	return r.ProtoReflect().Get(field).Message()
}

// text is the field of that name, "" if the kind has none.
func text(r *platformv1.Resource, name protoreflect.Name) string {
	m := inner(r)
	if m == nil {
		return ""
	}
	field := m.Descriptor().Fields().ByName(name)
	if field == nil {
		return ""
	}
	return m.Get(field).String()
}

// stamp sets what the server sets in every resource.
func stamp(r *platformv1.Resource, etag string, modification *platformv1.Modification) {
	m := inner(r)
	fields := m.Descriptor().Fields()
	m.Set(fields.ByName("etag"), protoreflect.ValueOfString(etag))
	m.Set(fields.ByName("modification"), protoreflect.ValueOfMessage(modification.ProtoReflect()))
}

func modificationOf(r *platformv1.Resource) *platformv1.Modification {
	m := inner(r)
	modification, _ := m.Get(m.Descriptor().Fields().ByName("modification")).Message().Interface().(*platformv1.Modification)
	return modification
}

// changedKeys names the fields that differ, other than those that the server sets in
// every resource.
func changedKeys(before, after *platformv1.Resource) []string {
	b, a := inner(before), inner(after)
	var keys []string
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if name := field.Name(); name == "etag" || name == "modification" {
			continue
		}
		if a.Has(field) != b.Has(field) || !a.Get(field).Equal(b.Get(field)) {
			keys = append(keys, string(field.Name()))
		}
	}
	return keys
}
