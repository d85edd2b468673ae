package composetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The image is stamped with the first revision, and when it is upgraded with the second.
const (
	revision     = "0123456789abcdef0123456789abcdef01234567"
	nextRevision = "76543210fedcba9876543210fedcba9876543210"
)

// project is docker-compose.yml in a folder of its own, since Docker makes folders there.
type project struct {
	*engine
	compose, folder string
	revision        string
	page            string // URL of the page
	token           string
	services        []string // that run all the time
}

// workerTypes are the services of workers.
var workerTypes = []string{"backend", "extract", "load"}

// oldCheck is a check as an old daemon takes it.
const oldCheck = "    healthcheck:\n      interval: 2s\n      start_interval: !reset null\n"

func newProject(t *testing.T, e *engine) *project {
	t.Helper()
	p := &project{engine: e, compose: buildCompose(t), folder: t.TempDir(), revision: revision}
	files := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard")
	files.Dir = root
	for name := range strings.Lines(output(t, files)) {
		name = strings.TrimSpace(name)
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.IsDir() || strings.HasPrefix(name, "docs/") {
			continue
		}
		copyFile(t, filepath.Join(root, name), filepath.Join(p.folder, name))
	}
	var file struct {
		Services map[string]struct {
			Image       string
			Ports       []string
			Restart     string
			Healthcheck map[string]any
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &file))
	// What differs here: ports that are free, and checks as an old daemon takes them.
	var other strings.Builder
	other.WriteString("services:\n")
	defaults := regexp.MustCompile(`\$\{[A-Z_]+:-([^}]*)\}`)
	var images []string
	for name, s := range file.Services {
		fmt.Fprintf(&other, "  %s:\n    labels: { test: compose }\n", name)
		if s.Image != "dendra-jobs" {
			images = append(images, defaults.ReplaceAllString(s.Image, "$1"))
		}
		if len(s.Ports) > 0 {
			inside := s.Ports[0][strings.LastIndex(s.Ports[0], ":")+1:]
			fmt.Fprintf(&other, "    ports: !override [\"127.0.0.1:%d:%s\"]\n", freePort(t), inside)
		}
		if len(s.Healthcheck) > 0 {
			p.services = append(p.services, name)
			if e.old {
				other.WriteString(oldCheck)
			}
		}
	}
	slices.Sort(p.services)
	require.NoError(t, os.WriteFile(filepath.Join(p.folder, "other.yml"), []byte(other.String()), 0o600))
	next := "services:\n"
	for _, name := range workerTypes {
		next += "  " + name + ":\n    labels: { test: compose }\n"
		if e.old {
			next += oldCheck
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(p.folder, "other-next.yml"), []byte(next), 0o600))
	e.images(t, slices.Compact(slices.Sorted(slices.Values(images))))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if t.Failed() {
			out, _ := p.in(ctx, "ps", "--all").CombinedOutput()
			logs, _ := p.in(ctx, "logs", "--no-color", "--tail", "15").CombinedOutput()
			t.Logf("%s\n%s", out, logs)
		}
		_ = p.next(ctx, "down", "--timeout", "10").Run()
		out, err := p.in(ctx, "down", "--volumes", "--timeout", "10").CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
	return p
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// in is Compose with its arguments.
func (p *project) in(ctx context.Context, args ...string) *exec.Cmd {
	return p.with(ctx, []string{"docker-compose.yml", "other.yml"}, args...)
}

// next is Compose for the workers of the next build.
func (p *project) next(ctx context.Context, args ...string) *exec.Cmd {
	return p.with(ctx, []string{"deploy/compose/next.yml", "other-next.yml"}, args...)
}

func (p *project) with(ctx context.Context, files []string, args ...string) *exec.Cmd {
	all := []string{"--progress", "plain"}
	for _, file := range files {
		all = append(all, "-f", file)
	}
	cmd := p.command(ctx, p.compose, append(all, args...)...)
	cmd.Dir = p.folder
	cmd.Env = append(cmd.Env, "REVISION="+p.revision)
	return cmd
}

func (p *project) run(t *testing.T, args ...string) string {
	t.Helper()
	return output(t, p.in(t.Context(), args...))
}

// up brings everything up, healthy, and says how long that took.
func (p *project) up(t *testing.T, args ...string) {
	t.Helper()
	began := time.Now()
	var stderr bytes.Buffer
	cmd := p.in(t.Context(), append([]string{"up", "--detach"}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s%s", out, tail(stderr.Bytes()))
	p.healthy(t)
	t.Logf("up %s: %s", strings.Join(args, " "), time.Since(began).Round(100*time.Millisecond))
	p.page = "http://" + strings.TrimSpace(p.run(t, "port", "serve", "8080"))
}

// healthy waits until all services are.
func (p *project) healthy(t *testing.T) {
	t.Helper()
	var states string
	p.until(t, 4*time.Minute, func() error {
		states = p.run(t, "ps", "--format", "{{.Service}}={{.Health}}")
		for _, name := range p.services {
			if !strings.Contains(states, name+"=healthy") || strings.Contains(states, name+"=starting") || strings.Contains(states, name+"=unhealthy") {
				return fmt.Errorf("%s is not healthy: %s", name, strings.ReplaceAll(states, "\n", " "))
			}
		}
		return nil
	})
}

// until waits for the condition.
func (p *project) until(t *testing.T, most time.Duration, condition func() error) {
	t.Helper()
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	again := time.NewTicker(300 * time.Millisecond)
	defer again.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-t.Context().Done():
			require.NoError(t, t.Context().Err())
		case <-deadline.C:
			require.NoError(t, err, "after %s", most)
		}
	}
}

// starter is the command line, as a caller of the server with the token.
func (p *project) starter(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "bin/starter"), append(args, "--server", p.page, "--output", "json")...)
	cmd.Env = append(os.Environ(), "DENDRA_TOKEN="+p.token)
	return cmd
}

// ask decodes the answer of a command of the starter.
func ask[T any](t *testing.T, p *project, args ...string) (answer T) {
	t.Helper()
	out := output(t, p.starter(t.Context(), args...))
	require.NoError(t, json.Unmarshal([]byte(out), &answer), out)
	return answer
}
