// Package breaking keeps changes of the Job API from breaking its clients: the contract may
// grow, and nothing of it may go or change.
package breaking

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// File is the committed list, in the root of the repository.
const File = "proto/contract.txt"

// List names all that clients rely on in some files of a contract, in order: messages with
// their fields, enums with their values, and methods. A line says all that may not change.
func List(files ...protoreflect.FileDescriptor) []string {
	var l list
	for _, file := range files {
		l.messages(file.Messages())
		l.enums(file.Enums())
		for i := range file.Services().Len() {
			l.methods(file.Services().Get(i))
		}
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines)
}

type list struct{ lines []string }

func (l *list) add(format string, args ...any) {
	l.lines = append(l.lines, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

func (l *list) messages(messages protoreflect.MessageDescriptors) {
	for i := range messages.Len() {
		m := messages.Get(i)
		if m.IsMapEntry() {
			continue // Its field says what is in it.
		}
		l.add("message %s", m.FullName())
		for n := range m.Fields().Len() {
			f := m.Fields().Get(n)
			l.add("field %s = %d %s %s", f.FullName(), f.Number(), typeOf(f), presence(f))
		}
		l.messages(m.Messages())
		l.enums(m.Enums())
	}
}

func typeOf(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return fmt.Sprintf("map<%s, %s>", typeOf(f.MapKey()), typeOf(f.MapValue()))
	case f.IsList():
		return "repeated " + kindOf(f)
	}
	return kindOf(f)
}

func kindOf(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Message() != nil:
		return string(f.Message().FullName())
	case f.Enum() != nil:
		return string(f.Enum().FullName())
	}
	return f.Kind().String()
}

func presence(f protoreflect.FieldDescriptor) string {
	switch oneof := f.ContainingOneof(); {
	case f.HasOptionalKeyword():
		return "optional"
	case oneof != nil:
		return "oneof " + string(oneof.Name())
	}
	return ""
}

func (l *list) enums(enums protoreflect.EnumDescriptors) {
	for i := range enums.Len() {
		values := enums.Get(i).Values()
		for n := range values.Len() {
			l.add("enum %s %s = %d", enums.Get(i).FullName(), values.Get(n).Name(), values.Get(n).Number())
		}
	}
}

func (l *list) methods(service protoreflect.ServiceDescriptor) {
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		stream := ""
		if m.IsStreamingServer() {
			stream = "stream "
		}
		if m.IsStreamingClient() {
			stream += "from streams "
		}
		l.add("method %s %s returns %s%s", m.FullName(), m.Input().FullName(), stream, m.Output().FullName())
	}
}

// Missing are the lines of a former list that the present one does not have: what breaks
// clients.
func Missing(former, present []string) []string {
	var missing []string
	for _, line := range former {
		if line != "" && !slices.Contains(present, line) {
			missing = append(missing, line)
		}
	}
	return missing
}
