package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// curl sends each request by the program curl.
type curl struct{ path string }

// newCurl skips the test where there is no curl.
func newCurl(t *testing.T) curl {
	t.Helper()
	path, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl on this machine")
	}
	return curl{path}
}

// RoundTrip implements http.RoundTripper.
func (c curl) RoundTrip(r *http.Request) (*http.Response, error) {
	args := []string{"--silent", "--show-error", "--no-buffer", "--include", "--raw", "--request", r.Method}
	for name, values := range r.Header {
		for _, value := range values {
			args = append(args, "--header", name+": "+value)
		}
	}
	ctx, stop := context.WithCancel(r.Context())
	if r.Body != nil {
		args = append(args, "--data-binary", "@-", "--header", "Expect:")
	}
	cmd := exec.CommandContext(ctx, c.path, append(args, r.URL.String())...)
	cmd.Stdin = r.Body
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop()
		return nil, err
	}
	end := func() error {
		stop()
		_ = cmd.Wait() // It was killed, if it had not ended.
		return nil
	}
	response, err := http.ReadResponse(bufio.NewReader(out), r)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("curl: %w: %s", err, said.String()), end())
	}
	response.Body = curled{response.Body, end}
	return response, nil
}

// curled is a body that ends curl when it is closed.
type curled struct {
	io.Reader
	end func() error
}

// Close implements io.Closer.
func (c curled) Close() error { return c.end() }

// bufCurl sends each call by "buf curl", which asks for the contract by reflection.
type bufCurl struct {
	t        *testing.T
	path     string
	url      string
	protocol string
}

// newBufCurl skips the test where there is no buf.
func newBufCurl(t *testing.T, url, protocol string) bufCurl {
	t.Helper()
	path := filepath.Join(stacktest.Root(t), "bin", "tools", "buf")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("there is no %s: make generate builds it", path)
	}
	return bufCurl{t, path, url, protocol}
}

// command runs buf curl.
func (b bufCurl) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.path, append([]string{"curl", "--http2-prior-knowledge", "--protocol", b.protocol}, args...)...)
	cmd.Dir = b.t.TempDir()
	cmd.Env = append(os.Environ(), "BUF_CACHE_DIR="+b.t.TempDir())
	return cmd
}

// NewClientStream implements connect.Transport.
func (b bufCurl) NewClientStream(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
	ctx, stop := context.WithCancel(ctx)
	return &bufStream{bufCurl: b, ctx: ctx, stop: stop, spec: spec}, nil
}

// bufStream is one call.
type bufStream struct {
	bufCurl
	ctx  context.Context //nolint:containedctx // That of the call.
	stop func()
	spec connect.Spec

	cmd  *exec.Cmd
	said bytes.Buffer
	read *json.Decoder
}

// SendHeaders implements connect.ClientStream.
func (*bufStream) SendHeaders() error { return nil }

// CloseSend implements connect.ClientStream.
func (*bufStream) CloseSend() error { return nil }

// Send implements connect.ClientStream.
func (s *bufStream) Send(message any) error {
	text, err := protojson.Marshal(message.(proto.Message))
	if err != nil {
		return err
	}
	s.cmd = s.command(s.ctx, "--data", "@-", s.url+s.spec.Procedure)
	s.cmd.Stdin, s.cmd.Stderr = bytes.NewReader(text), &s.said
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.read = json.NewDecoder(out)
	return s.cmd.Start()
}

// Receive implements connect.ClientStream.
func (s *bufStream) Receive(message any) error {
	var text json.RawMessage
	err := s.read.Decode(&text)
	if errors.Is(err, io.EOF) {
		if s.cmd.Wait() != nil {
			return bufError(s.said.Bytes())
		}
		return io.EOF
	}
	if err != nil {
		return err
	}
	return protojson.Unmarshal(text, message.(proto.Message))
}

// Close implements connect.ClientStream.
func (s *bufStream) Close() error {
	s.stop()
	if s.cmd != nil && s.cmd.ProcessState == nil {
		_ = s.cmd.Wait() // It was killed.
	}
	return nil
}

// bufError reads the error that buf has written.
func bufError(said []byte) error {
	var written struct {
		Code    string
		Message string
		Details []struct{ Type, Value string }
	}
	if err := json.Unmarshal(said, &written); err != nil {
		return fmt.Errorf("buf curl: %s", said)
	}
	var code connect.Code
	if err := code.UnmarshalText([]byte(written.Code)); err != nil {
		return err
	}
	failed := connect.NewError(code, written.Message)
	for _, d := range written.Details {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(d.Type))
		if err != nil {
			return err
		}
		encoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(d.Value, "="))
		if err != nil {
			return err
		}
		m := kind.New().Interface()
		if err := proto.Unmarshal(encoded, m); err != nil {
			return err
		}
		detail, err := connectproto.NewErrorDetail(m)
		if err != nil {
			return err
		}
		failed = failed.WithDetail(detail)
	}
	return failed
}

// methodsByCurl calls every method by curl.
func methodsByCurl(t *testing.T, w *world) {
	c := newCurl(t)
	everyMethod(t, w, "curl-x", w.over(&http.Client{Transport: c}, jsonWithGet()...))
}

// methodsByBuf calls methods by buf curl, which finds each by reflection: in the short form
// those of runs, as Go's client has called all of them over gRPC.
func methodsByBuf(t *testing.T, w *world) {
	b := newBufCurl(t, w.url, "grpc")
	methods, err := b.command(t.Context(), "--list-methods", w.url).CombinedOutput()
	require.NoError(t, err, "%s", methods)
	for _, procedure := range append(w.server.Procedures(), "/grpc.health.v1.Health/Check") {
		require.Contains(t, string(methods), strings.TrimPrefix(procedure, "/"))
	}
	if !stacktest.Long() {
		runs(t, "buf-x", w.through(b))
		return
	}
	everyMethod(t, w, "buf-x", w.through(b))
}
