package payloadcodec_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/internal/payloadcodec"
	"github.com/dendrascience/dendra-jobs/internal/payloadcodec/payloadcodectest"
)

func read(t testing.TB, ids ...string) payloadcodec.Keys {
	t.Helper()
	keys, err := payloadcodec.Read(payloadcodectest.File(t, ids...))
	require.NoError(t, err)
	return keys
}

func plain(data string) []*commonpb.Payload {
	return []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(data)}}
}

func TestAKeyOpensWhatItEncrypted(t *testing.T) {
	t.Parallel()
	older, rotated := read(t, "older"), read(t, "newer", "older")
	for _, data := range []string{"", `"spec"`, string(bytes.Repeat([]byte("x"), 1<<20))} {
		encrypted, err := older.Encode(plain(data))
		require.NoError(t, err)
		require.NotEmpty(t, encrypted[0].GetData())
		require.Equal(t, "older", string(encrypted[0].GetMetadata()["encryption-key-id"]))
		again, err := older.Encode(plain(data))
		require.NoError(t, err)
		require.NotEqual(t, encrypted[0].GetData(), again[0].GetData(), "each has a nonce of its own")
		for _, keys := range []payloadcodec.Keys{older, rotated} {
			opened, err := keys.Decode(encrypted)
			require.NoError(t, err)
			require.True(t, proto.Equal(plain(data)[0], opened[0]))
		}
	}
	encrypted, err := rotated.Encode(plain("x"))
	require.NoError(t, err)
	require.Equal(t, "newer", string(encrypted[0].GetMetadata()["encryption-key-id"]), "the first one encrypts")
	twice, err := rotated.Encode(encrypted)
	require.NoError(t, err)
	require.Equal(t, encrypted, twice)
	opened, err := rotated.Decode(plain("x"))
	require.NoError(t, err)
	require.Equal(t, plain("x"), opened, "what is not encrypted stays readable")
}

func TestWhatAKeyDoesNotOpenIsRefused(t *testing.T) {
	t.Parallel()
	encrypted, err := read(t, "newer").Encode(plain("x"))
	require.NoError(t, err)
	change := func(edit func(*commonpb.Payload)) []*commonpb.Payload {
		payload, ok := proto.Clone(encrypted[0]).(*commonpb.Payload)
		require.True(t, ok)
		edit(payload)
		return []*commonpb.Payload{payload}
	}
	flipped := change(func(p *commonpb.Payload) { p.Data[len(p.Data)-1] ^= 1 })
	renamed := change(func(p *commonpb.Payload) { p.Metadata["encryption-key-id"] = []byte("older") })
	short := change(func(p *commonpb.Payload) { p.Data = p.Data[:5] })
	for _, it := range []struct {
		keys     payloadcodec.Keys
		payloads []*commonpb.Payload
		says     string
	}{
		{payloadcodec.Keys{}, encrypted, `the key "newer" encrypted, and DENDRA_PAYLOAD_KEYS is not set`},
		{read(t, "older"), encrypted, `the key "newer" encrypted, and it is not in `},
		{read(t, "older", "newer"), flipped, "does not open"},
		{read(t, "older", "newer"), renamed, "does not open"},
		{read(t, "newer"), short, "is cut off"},
	} {
		_, err := it.keys.Decode(it.payloads)
		require.ErrorContains(t, err, it.says)
		require.Equal(t, codes.FailedPrecondition, status.Code(err), "the SDK does not try this again")
	}
}

func TestFilesOfKeys(t *testing.T) {
	t.Parallel()
	one := payloadcodectest.Line("one")
	for name, it := range map[string]struct {
		text string
		mode os.FileMode
		says string // "" for a good one
	}{
		"good":        {"\n" + one + "\n" + payloadcodectest.Line("b.2_x-y") + "\r\n", 0o440, ""},
		"empty":       {"\n", 0o600, "has no key"},
		"readable":    {one, 0o644, "has mode 0644, so that every user of the host has a right to it: chmod o= "},
		"no id":       {"c2hvcnQ=", 0o600, "line 1: a line has an id"},
		"another id":  {"a/b " + one, 0o600, "line 1: a line has an id"},
		"short":       {one + "\ntwo c2hvcnQ=", 0o600, "line 2: the key two is not 32 bytes in base64"},
		"there twice": {one + "\n" + one, 0o600, "line 2: the key one is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "keys")
			require.NoError(t, os.WriteFile(path, []byte(it.text), 0o600))
			require.NoError(t, os.Chmod(path, it.mode))
			keys, err := payloadcodec.Read(path)
			if it.says == "" {
				require.NoError(t, err)
				require.Equal(t, []string{"one", "b.2_x-y"}, keys.IDs())
				return
			}
			require.ErrorContains(t, err, "DENDRA_PAYLOAD_KEYS")
			require.ErrorContains(t, err, it.says)
		})
	}
	_, err := payloadcodec.Read(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A call may be repeated with its request, and others may have parts of it in use.
func TestARequestStaysAsItIs(t *testing.T) {
	t.Parallel()
	intercept, err := read(t, "one").Interceptor()
	require.NoError(t, err)
	cause := &failurepb.Failure{Message: "a cause"}
	request := &workflowservice.RespondActivityTaskFailedRequest{
		Failure:              &failurepb.Failure{Message: "a message", StackTrace: "a stack", Cause: cause},
		LastHeartbeatDetails: &commonpb.Payloads{Payloads: plain("a heartbeat")},
	}
	before := proto.Clone(request)
	var sent []byte
	reply := &workflowservice.PollActivityTaskQueueResponse{}
	err = intercept(t.Context(), "", request, reply, nil, func(_ context.Context, _ string, in, out any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		message, ok := in.(*workflowservice.RespondActivityTaskFailedRequest)
		require.True(t, ok)
		var err error
		sent, err = proto.Marshal(message)
		answer, ok := out.(*workflowservice.PollActivityTaskQueueResponse)
		require.True(t, ok)
		answer.HeartbeatDetails = message.GetLastHeartbeatDetails()
		return err
	})
	require.NoError(t, err)
	require.True(t, proto.Equal(before, request))
	for _, text := range []string{"a message", "a stack", "a cause", "a heartbeat"} {
		require.NotContains(t, string(sent), text)
	}
	require.Equal(t, "a heartbeat", string(reply.GetHeartbeatDetails().GetPayloads()[0].GetData()))
}

// BenchmarkPayload encrypts and decrypts one payload.
func BenchmarkPayload(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			keys, payloads := read(b, "one"), plain(string(make([]byte, size)))
			b.SetBytes(int64(size))
			for b.Loop() {
				encrypted, err := keys.Encode(payloads)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := keys.Decode(encrypted); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
