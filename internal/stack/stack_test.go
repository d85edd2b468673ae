package stack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

func TestPortFlags(t *testing.T) {
	t.Parallel()
	info := stack.Info{
		Temporal: "127.0.0.1:1", WebUI: "http://127.0.0.1:2", NATS: "nats://127.0.0.1:3", Influx: "http://127.0.0.1:4",
		S3: stack.S3{Endpoint: "http://127.0.0.1:5"}, HOBOlink: stack.API{URL: "http://127.0.0.1:6"}, LDMP: "127.0.0.1:7",
		Platform: stack.API{URL: "http://127.0.0.1:8"},
	}
	flags, err := info.PortFlags()
	require.NoError(t, err)
	require.Equal(t, []string{
		"--temporal-port", "1", "--ui-port", "2", "--nats-port", "3", "--influx-port", "4", "--s3-port", "5", "--hobolink-port", "6",
		"--ldmp-port", "7", "--platform-port", "8",
	}, flags)

	info.NATS = "nats"
	_, err = info.PortFlags()
	require.ErrorContains(t, err, "--nats-port")

	flags, err = stack.Info{Influx: "http://127.0.0.1:4"}.PortFlags()
	require.NoError(t, err)
	require.Equal(t, []string{"--influx-port", "4"}, flags, "those of the servers that it has")
}

func TestInfoWithTheServersOfAnother(t *testing.T) {
	t.Parallel()
	nats := stack.Info{PID: 1, Namespace: "default", NATS: "nats://127.0.0.1:3", Influx: "http://127.0.0.1:4", Databases: []string{"a"}}
	rest := stack.Info{PID: 2, Namespace: "jobs", Temporal: "127.0.0.1:1", Influx: "http://127.0.0.1:5", Databases: []string{"b"}}
	require.Equal(t, stack.Info{
		PID: 2, Namespace: "jobs", Temporal: "127.0.0.1:1",
		NATS: "nats://127.0.0.1:3", Influx: "http://127.0.0.1:5", Databases: []string{"b"},
	}, rest.With(nats))
	require.Equal(t, "jobs", nats.With(rest).Namespace, "that of Temporal")
}

func TestProcessStopsWhenAsked(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := startShell(t, &out, `trap 'echo bye; exit 3' TERM; echo ready >&2; while :; do sleep 0.01; done`)
	require.True(t, p.Stop(time.Minute))
	require.Equal(t, 3, p.ExitCode())
	require.Equal(t, "bye\n", out.String())
	require.NoError(t, p.Signal(syscall.SIGTERM), "a process that has ended does not mind")
}

func TestProcessIsKilledWhenItDoesNotStop(t *testing.T) {
	t.Parallel()
	p := startShell(t, io.Discard, `trap '' TERM; echo ready >&2; while :; do sleep 0.01; done`)
	require.False(t, p.Stop(0))
	require.Equal(t, -1, p.ExitCode())
	require.Equal(t, "signal: killed", p.State())
}

func TestCommandThatDoesNotExist(t *testing.T) {
	t.Parallel()
	_, err := stack.Command{Path: filepath.Join(t.TempDir(), "none")}.Start()
	require.ErrorContains(t, err, "none does not start")
}

func TestLaunchTellsWhatTheStackSaid(t *testing.T) {
	t.Parallel()
	binary := script(t, `echo "devstack: port 1 is taken" >&2; exit 1`)
	_, _, err := stack.Launch(t.Context(), binary, nil, io.Discard)
	require.EqualError(t, err, "the stack did not start (exit status 1): devstack: port 1 is taken")
}

func TestLaunchReadsTheReadyLine(t *testing.T) {
	t.Parallel()
	want := stack.Info{PID: 7, Namespace: "default", Temporal: "127.0.0.1:7233"}
	line, err := json.Marshal(want)
	require.NoError(t, err)
	info, p, err := stack.Launch(t.Context(), script(t, `echo '`+string(line)+`'; exec sleep 60`), nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, want, info)
	p.Kill()
}

func TestLaunchGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := stack.Launch(ctx, script(t, `exec sleep 60`), nil, io.Discard)
	require.ErrorIs(t, err, context.Canceled)
}

// startShell returns once the program has written a line to its standard error.
func startShell(t *testing.T, out io.Writer, program string) *stack.Process {
	t.Helper()
	ready, w := io.Pipe()
	p, err := stack.Command{Path: "/bin/sh", Args: []string{"-c", program}, Stdout: out, Stderr: w}.Start()
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	_, err = ready.Read(make([]byte, 16))
	require.NoError(t, err)
	return p
}

func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "devstack")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	return path
}
