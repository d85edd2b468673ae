package breaking_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/dendrascience/dendra-jobs/internal/breaking"
)

func TestTheContractBreaksNoClient(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", breaking.File))
	require.NoError(t, err)
	committed := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Greater(t, len(committed), 300)
	present := breaking.List(breaking.Jobs()...)
	require.Empty(t, breaking.Missing(committed, present), "clients rely on this")
	require.Empty(t, breaking.Missing(present, committed), "new in the contract: make generate")
}

func TestWhatBreaksClients(t *testing.T) {
	t.Parallel()
	former := breaking.List(breaking.Jobs()...)
	file := func(name string) func(*descriptorpb.FileDescriptorProto) bool {
		return func(f *descriptorpb.FileDescriptorProto) bool { return strings.HasSuffix(f.GetName(), name) }
	}
	for name, c := range map[string]struct {
		in     func(*descriptorpb.FileDescriptorProto) bool
		change func(*descriptorpb.FileDescriptorProto)
		want   string
	}{
		"a new field": {file("/job.proto"), func(f *descriptorpb.FileDescriptorProto) {
			f.MessageType[0].Field = append(f.MessageType[0].Field, &descriptorpb.FieldDescriptorProto{
				Name: proto.String("extra"), Number: proto.Int32(99), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
				Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			})
		}, ""},
		"a field that went": {file("/job.proto"), func(f *descriptorpb.FileDescriptorProto) {
			f.MessageType[0].Field = f.MessageType[0].Field[1:]
		}, "field dendra.jobs.v1.Job.id = 1 string"},
		"another number": {file("/job.proto"), func(f *descriptorpb.FileDescriptorProto) {
			f.MessageType[0].Field[0].Number = proto.Int32(99)
		}, "field dendra.jobs.v1.Job.id = 1 string"},
		"another name": {file("/job.proto"), func(f *descriptorpb.FileDescriptorProto) {
			f.MessageType[0].Field[0].Name, f.MessageType[0].Field[0].JsonName = proto.String("name"), proto.String("name")
		}, "field dendra.jobs.v1.Job.id = 1 string"},
		"another type": {file("/job.proto"), func(f *descriptorpb.FileDescriptorProto) {
			f.MessageType[0].Field[0].Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
		}, "field dendra.jobs.v1.Job.id = 1 string"},
		"another number of an enum": {file("/run_service.proto"), func(f *descriptorpb.FileDescriptorProto) {
			f.EnumType[0].Value[1].Number = proto.Int32(99)
		}, "enum dendra.jobs.v1.RunStatus RUN_STATUS_RUNNING = 1"},
		"a method that went": {file("/run_service.proto"), func(f *descriptorpb.FileDescriptorProto) {
			f.Service[0].Method = f.Service[0].Method[1:]
		}, "method dendra.jobs.v1.RunService.GetRun dendra.jobs.v1.GetRunRequest returns dendra.jobs.v1.GetRunResponse"},
		"a stream that is none": {file("/run_service.proto"), func(f *descriptorpb.FileDescriptorProto) {
			for _, m := range f.GetService()[0].GetMethod() {
				m.ServerStreaming = nil
			}
		}, "method dendra.jobs.v1.RunService.WatchRun dendra.jobs.v1.WatchRunRequest returns stream dendra.jobs.v1.WatchRunResponse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var files []protoreflect.FileDescriptor
			changed := false
			for _, present := range breaking.Jobs() {
				f := protodesc.ToFileDescriptorProto(present)
				if c.in(f) {
					c.change(f)
					changed = true
				}
				made, err := protodesc.NewFile(f, protoregistry.GlobalFiles)
				require.NoError(t, err)
				files = append(files, made)
			}
			require.True(t, changed)
			missing := breaking.Missing(former, breaking.List(files...))
			if c.want == "" {
				require.Empty(t, missing)
				return
			}
			require.Equal(t, []string{c.want}, missing)
		})
	}
}
