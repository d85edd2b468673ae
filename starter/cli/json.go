package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// writeMessage writes a message of the Job API as its JSON. A list without entries is
// there as [], for scripts that go through it.
func writeMessage(w io.Writer, message proto.Message) error {
	text, err := protojson.Marshal(message)
	if err != nil {
		return err
	}
	for _, name := range emptyLists(message.ProtoReflect()) {
		text = bytes.TrimSuffix(text, []byte("}"))
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(text, `"`+name+`":[]}`...)
	}
	// The white space of protojson changes from build to build.
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err = indented.WriteTo(w)
	return err
}

// emptyLists names the fields of a list's response that have no entries.
func emptyLists(message protoreflect.Message) []string {
	if !strings.HasPrefix(string(message.Descriptor().Name()), "List") {
		return nil
	}
	var names []string
	fields := message.Descriptor().Fields()
	for n := range fields.Len() {
		if field := fields.Get(n); field.IsList() && field.Message() != nil && !message.Has(field) {
			names = append(names, field.JSONName())
		}
	}
	return names
}
