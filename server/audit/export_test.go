package audit

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// RedactJSON is redactJSON, for tests.
func RedactJSON(text string) string { return string(redactJSON([]byte(text))) }

// ResourceOf is resourceOf, for tests.
func ResourceOf(method protoreflect.MethodDescriptor, request proto.Message) string {
	return resourceOf(method, request)
}
