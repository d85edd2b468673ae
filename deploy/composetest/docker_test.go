package composetest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// root is the folder of the repository.
var root = func() string {
	path, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return path
}()

// kept is what is built once: make clean removes it.
func kept(elements ...string) string {
	return filepath.Join(append([]string{root, "bin", "compose"}, elements...)...)
}

// composeVersion is the release of Compose that is built: the last one with BuildKit in it.
const composeVersion = "v2.40.3"

// engine is a Docker daemon of the test's own.
type engine struct {
	socket string
	// old is a daemon that does not know start_interval.
	old bool
}

// needs skips the test where Docker cannot be had.
func needs(t *testing.T) {
	t.Helper()
	if os.Getenv("DENDRA_TEST_COMPOSE") == "" {
		t.Skip("it takes a quarter of an hour: make test-compose")
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root can start a Docker daemon")
	}
	for _, program := range []string{"dockerd", "docker", "debootstrap"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("skipped: %s is missing; on Debian: apt-get install docker.io debootstrap", program)
		}
	}
}

// startEngine starts a daemon that ends with the test. Its images are kept, in a folder that the go
// command passes over for its dot: they have Go's own sources.
func startEngine(t *testing.T) *engine {
	t.Helper()
	folder := t.TempDir()
	e := &engine{socket: filepath.Join(folder, "docker.sock")}
	log, err := os.Create(filepath.Join(folder, "dockerd.log"))
	require.NoError(t, err)
	// It outlives the test's context: what the test began is taken down at its end.
	daemon := exec.CommandContext(context.WithoutCancel(t.Context()), "dockerd", "--host", "unix://"+e.socket, "--data-root", kept(".docker"),
		"--exec-root", filepath.Join(folder, "exec"), "--pidfile", filepath.Join(folder, "docker.pid"))
	daemon.Stdout, daemon.Stderr = log, log
	require.NoError(t, daemon.Start())
	ended := make(chan struct{})
	go func() {
		_ = daemon.Wait() // Its log says more.
		close(ended)
	}()
	t.Cleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	for deadline := time.Now().Add(time.Minute); ; {
		version, err := e.command(t.Context(), "docker", "version", "--format", "{{.Server.APIVersion}}").Output()
		if err == nil {
			e.old = apiBefore(strings.TrimSpace(string(version)), "1.44")
			return e
		}
		select {
		case <-ended:
			t.Skipf("skipped: Docker cannot be started here: %s", lastLine(log.Name()))
		case <-time.After(200 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Skipf("skipped: Docker does not answer: %s", lastLine(log.Name()))
		}
	}
}

func apiBefore(version, other string) bool {
	var major, minor, otherMajor, otherMinor int
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	_, _ = fmt.Sscanf(other, "%d.%d", &otherMajor, &otherMinor)
	return slices.Compare([]int{major, minor}, []int{otherMajor, otherMinor}) < 0
}

func lastLine(path string) string {
	text, _ := os.ReadFile(path)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// command is a program that talks with the daemon.
func (e *engine) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+e.socket, "BUILDKIT_PROGRESS=plain")
	return cmd
}

func (e *engine) docker(t *testing.T, args ...string) string {
	t.Helper()
	return output(t, e.command(t.Context(), "docker", args...))
}

// output runs a command that has to succeed, and returns its standard output.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s%s", strings.Join(cmd.Args, " "), out, tail(stderr.Bytes()))
	return string(out)
}

// tail is the end of a long output.
func tail(text []byte) []byte {
	const most = 8000
	return text[max(0, len(text)-most):]
}

// buildCompose builds Compose from its module, once.
func buildCompose(t *testing.T) string {
	t.Helper()
	program := kept("docker-compose-" + composeVersion)
	if _, err := os.Stat(program); err == nil {
		return program
	}
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module compose\n\ngo 1.26\n"), 0o600))
	for _, args := range [][]string{
		{"get", "github.com/docker/compose/v2@" + composeVersion},
		{"build", "-mod=mod", "-trimpath", "-ldflags", "-s -w", "-o", program, "github.com/docker/compose/v2/cmd"},
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		output(t, cmd)
	}
	return program
}

// copyFile copies a file with its mode.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	source, err := os.Open(from)
	require.NoError(t, err)
	defer func() { _ = source.Close() }()
	info, err := source.Stat()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, info.Mode().Perm())
	require.NoError(t, err)
	_, err = io.Copy(target, source)
	require.NoError(t, err)
	require.NoError(t, target.Close())
}
