package platformv1_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// The generated code is that of the .proto files; if not, run make generate.
func TestGeneratedCodeIsUpToDate(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.proto")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	compiler := protocompile.Compiler{Resolver: protocompile.CompositeResolver{
		&protocompile.SourceResolver{ImportPaths: []string{"../../.."}},
		protocompile.ResolverFunc(registered), // imports of other modules
	}}
	for _, file := range files {
		path := "dendra/platform/v1/" + file
		compiled, err := compiler.Compile(t.Context(), path)
		require.NoError(t, err)
		generated, err := registered(path)
		require.NoError(t, err, "run make generate")
		require.True(t, proto.Equal(plain(t, compiled[0]), plain(t, generated.Desc)),
			"the generated code of %s is not up to date: run make generate", path)
	}
}

// The kind of a resource is the number of its field.
func TestKindsAreFieldNumbers(t *testing.T) {
	t.Parallel()
	kinds := platformv1.ResourceKind(0).Descriptor().Values()
	fields := (&platformv1.Resource{}).ProtoReflect().Descriptor().Fields()
	require.Equal(t, fields.Len()+1, kinds.Len())
	for i := range fields.Len() {
		field := fields.Get(i)
		kind := kinds.ByNumber(protoreflect.EnumNumber(field.Number()))
		require.NotNil(t, kind, field.Name())
		require.Equal(t, "RESOURCE_KIND_"+strings.ToUpper(string(field.Name())), string(kind.Name()))
	}
}

func registered(path string) (protocompile.SearchResult, error) {
	file, err := protoregistry.GlobalFiles.FindFileByPath(path)
	return protocompile.SearchResult{Desc: file}, err
}

// plain is a file without positions, with its options as the registered extensions
// decode them.
func plain(t *testing.T, file protoreflect.FileDescriptor) proto.Message {
	t.Helper()
	described := protodesc.ToFileDescriptorProto(file)
	described.SourceCodeInfo = nil
	text, err := proto.Marshal(described)
	require.NoError(t, err)
	again := &descriptorpb.FileDescriptorProto{}
	require.NoError(t, proto.Unmarshal(text, again))
	return again
}
