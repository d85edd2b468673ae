package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// curl sends HTTP requests by the program curl: JSON, in the URL where a method has no side
// effects.
type curl struct{}

func (curl) RoundTrip(r *http.Request) (*http.Response, error) {
	args := []string{"--silent", "--show-error", "--include", "--raw", "--http1.1", "--request", r.Method, "--header", "Expect:"}
	for name, values := range r.Header {
		args = append(args, "--header", name+": "+strings.Join(values, ", "))
	}
	cmd := exec.CommandContext(r.Context(), "curl")
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		cmd.Stdin = bytes.NewReader(body)
		args = append(args, "--data-binary", "@-")
	}
	cmd.Args = append(append(cmd.Args, args...), r.URL.String())
	answer, err := cmd.Output()
	if err != nil {
		return nil, told(err)
	}
	return http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), r)
}

// told is the error of a program with what it wrote.
func told(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return errors.Join(err, errors.New(string(exit.Stderr)))
	}
	return err
}

// bufCurl sends the JSON requests of Connect by `buf curl`: as gRPC, by reflection.
type bufCurl struct{ program, folder string }

// newBufCurl gives nil if buf is not built.
func newBufCurl(t *testing.T) *bufCurl {
	t.Helper()
	program := filepath.Join(stacktest.Root(t), "bin", "tools", "buf")
	if _, err := os.Stat(program); err != nil {
		return nil
	}
	return &bufCurl{program, t.TempDir()}
}

func (b *bufCurl) command(ctx context.Context, in []byte, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.program, append([]string{"curl", "--http2-prior-knowledge"}, args...)...)
	cmd.Dir, cmd.Stdin = b.folder, bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "BUF_CACHE_DIR="+b.folder)
	return cmd
}

// Frames of a stream of Connect begin with flags and a length.
const (
	frameHead = 5
	endFlag   = 2
)

func (b *bufCurl) RoundTrip(r *http.Request) (*http.Response, error) {
	in, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	kind := r.Header.Get("Content-Type")
	stream := kind == "application/connect+json"
	if stream {
		in = in[frameHead:]
	}
	out, err := b.command(r.Context(), in, "--protocol", "grpc", "--data", "@-", r.URL.String()).Output()
	var failure []byte
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && json.Valid(exit.Stderr) {
		failure, err = exit.Stderr, nil
	} else if err != nil {
		return nil, told(err)
	}
	response := &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {kind}},
	}
	body := out
	switch {
	case stream:
		body, err = framed(out, failure)
	case failure != nil:
		response.StatusCode, body = http.StatusInternalServerError, failure
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, err
}

// framed is a stream of Connect of the messages that buf has printed.
func framed(printed, failure []byte) ([]byte, error) {
	var body []byte
	frame := func(flags byte, content []byte) {
		body = binary.BigEndian.AppendUint32(append(body, flags), uint32(len(content)))
		body = append(body, content...)
	}
	for messages := json.NewDecoder(bytes.NewReader(printed)); ; {
		var message json.RawMessage
		err := messages.Decode(&message)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		frame(0, message)
	}
	end := []byte("{}")
	if failure != nil {
		end = append(append([]byte(`{"error":`), failure...), '}')
	}
	frame(endFlag, end)
	return body, nil
}

// bufCurls calls the API as people do with `buf curl`, by all protocols.
func bufCurls(t *testing.T, w *world) {
	buf := newBufCurl(t)
	if buf == nil {
		t.Skip("there is no bin/tools/buf: make generate builds it")
	}
	run := func(args ...string) string {
		text, err := buf.command(t.Context(), nil, args...).CombinedOutput()
		require.NoError(t, err, "%s", text)
		return string(text)
	}
	methods := run("--list-methods", w.url)
	for _, procedure := range append(w.server.Procedures(), "/grpc.health.v1.Health/Check") {
		require.Contains(t, methods, strings.TrimPrefix(procedure, "/"))
	}
	for _, protocol := range []string{"connect", "grpc", "grpcweb"} {
		text := run("--protocol", protocol, "-d", "{}", w.url+"/dendra.jobs.v1.WorkerService/ListWorkers")
		require.Contains(t, text, "WORKER_STATUS_SERVING")
	}
}
