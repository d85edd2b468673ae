// Package typescript_test compares the generated TypeScript with the contract.
package typescript_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"

	_ "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Generated files hold the descriptor of their contract.
var embedded = regexp.MustCompile(`fileDesc\("([A-Za-z0-9+/]+)"`)

func TestGeneratedCodeFitsTheContract(t *testing.T) {
	t.Parallel()
	files := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("dendra.jobs.v1", func(file protoreflect.FileDescriptor) bool {
		files++
		name := filepath.Join("src", "gen", strings.TrimSuffix(file.Path(), ".proto")+"_pb.ts")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%v: run npm run generate", err)
			return true
		}
		match := embedded.FindSubmatch(text)
		if match == nil {
			t.Errorf("%s has no descriptor", name)
			return true
		}
		encoded, err := base64.RawStdEncoding.DecodeString(string(match[1]))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return true
		}
		var got descriptorpb.FileDescriptorProto
		if err := proto.Unmarshal(encoded, &got); err != nil {
			t.Errorf("%s: %v", name, err)
			return true
		}
		want := protodesc.ToFileDescriptorProto(file)
		// TypeScript imports what a file depends on, and derives the JSON names.
		for _, d := range []*descriptorpb.FileDescriptorProto{want, &got} {
			d.Dependency = nil
			dropJSONNames(d.GetMessageType())
		}
		if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
			t.Errorf("%s is not made from the contract; run npm run generate (-contract +file):\n%s", name, diff)
		}
		return true
	})
	if files == 0 {
		t.Fatal("there is no contract")
	}
}

// A client has all services, and exports all messages.
func TestClientHasEveryService(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("src/index.ts")
	if err != nil {
		t.Fatal(err)
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("dendra.jobs.v1", func(file protoreflect.FileDescriptor) bool {
		lines := []string{`export * from "./gen/` + strings.TrimSuffix(file.Path(), ".proto") + `_pb.js";`}
		for i := range file.Services().Len() {
			lines = append(lines, `: createClient(`+string(file.Services().Get(i).Name())+`, transport),`)
		}
		for _, line := range lines {
			if !strings.Contains(string(text), line) {
				t.Errorf("src/index.ts lacks %s", line)
			}
		}
		return true
	})
}

// dropJSONNames removes the names that follow from those of the fields.
func dropJSONNames(messages []*descriptorpb.DescriptorProto) {
	for _, m := range messages {
		for _, f := range m.GetField() {
			f.JsonName = nil
		}
		dropJSONNames(m.GetNestedType())
	}
}
