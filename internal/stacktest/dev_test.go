package stacktest_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

func TestDevRunsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jobs := filepath.Join(dir, "jobs.toml")
	dev := startDev(t, dir, `[jobs.live_load_influx_v1.common1]
continuous = { interval = "PT1S" }
spec = { location = "common1", influx_url = "http://127.0.0.1:8086" }
`)
	dev.WaitOutput("Dendra Jobs runs.")
	env, err := os.ReadFile(filepath.Join(dir, ".dev", "env"))
	require.NoError(t, err)
	require.Regexp(t, `(?m)^export TEMPORAL_ADDRESS='127\.0\.0\.1:\d+'$`, string(env))

	find := exec.CommandContext(t.Context(), "/bin/sh", "-c", ". ./.dev/env && cd / && command -v starter")
	find.Dir = dir
	found, err := find.Output()
	require.NoError(t, err)
	require.Equal(t, stacktest.Binary(t, "starter")+"\n", string(found))

	// The starter plans what was applied: the file with the ports in use.
	plan := exec.CommandContext(t.Context(), "/bin/sh", "-c", ". ./.dev/env && starter plan")
	plan.Dir = dir
	planned, err := plan.CombinedOutput()
	require.NoError(t, err, "%s", planned)

	second := startDev(t, dir, "")
	require.Equal(t, 1, second.Wait())
	require.Equal(t, fmt.Sprintf("dev: the system of .dev runs already (process %d): stop that one or give another --dir\n", dev.PID()), second.Output())

	// A changed file is applied, a dead worker is started again.
	require.NoError(t, os.WriteFile(jobs, []byte("# changed\n"), 0o600))
	dev.WaitOutput(`msg="Temporal is in line with the jobs file" file=.dev/jobs-with-ports.toml jobs=0 changed=0`)
	dev.WaitOutput("worker load started, process ")
	started := regexp.MustCompile(`worker load started, process (\d+)`).FindStringSubmatch(dev.Output())
	pid, err := strconv.Atoi(started[1])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	dev.WaitOutput("worker load ended (signal: killed); its last lines of .dev/logs/load.log:\nload        | ")
	stacktest.WaitFor(t, "another process of the worker", func() (bool, error) {
		return len(regexp.MustCompile(`worker load started`).FindAllString(dev.Output(), -1)) >= 2, nil
	})

	dev.Signal(os.Interrupt)
	require.Equal(t, 0, dev.Wait())
	// The terminal is not filled with what goes into the files.
	require.Regexp(t, `(?m)^  logs +\.dev/logs, one file for each program`, dev.Output())
	require.NotRegexp(t, `(?m)^backend +\| `, dev.Output())
	log, err := os.ReadFile(filepath.Join(dir, ".dev", "logs", "backend.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "msg=serving")
	require.Regexp(t, `(?s)stopping worker load.*stopping worker extract.*stopping worker backend.*stopping the servers.*stopped`, dev.Output())
}

func TestDevEndsWhenItsServersDie(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dev := startDev(t, dir, "")
	dev.WaitOutput("Dendra Jobs runs.")
	lock, err := os.ReadFile(filepath.Join(dir, ".dev", "data", "devstack.lock"))
	require.NoError(t, err)
	servers, err := strconv.Atoi(strings.TrimSpace(string(lock)))
	require.NoError(t, err)

	require.NoError(t, syscall.Kill(servers, syscall.SIGKILL))
	require.Equal(t, 1, dev.Wait())
	const sentence = "the servers ended (signal: killed); "
	require.Equal(t, 1, strings.Count(dev.Output(), sentence))
	require.Regexp(t, `(?s)the servers ended.*dev +\| stopped\n$`, dev.Output())
	for _, worker := range []string{"backend", "extract", "load"} {
		require.Equal(t, 1, strings.Count(dev.Output(), "stopping worker "+worker), "the workers are stopped, not started again")
	}
}

func TestDevSaysWhatBecameOfTheJobsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dev := startDev(t, dir, "no = TOML =")
	dev.WaitOutput("Ctrl-C stops everything.")
	require.Regexp(t, `(?m)^  jobs +jobs\.toml with the ports above \(\.dev/jobs-with-ports\.toml\), NOT applied \(see above\), tried again until it is$`, dev.Output())

	jobs := filepath.Join(dir, "jobs.toml")
	require.NoError(t, os.Remove(jobs))
	dev.WaitOutput("open .dev/jobs-with-ports.toml: no such file or directory")
	require.NoError(t, os.WriteFile(jobs, nil, 0o600))
	dev.WaitOutput(`msg="Temporal is in line with the jobs file"`)
	require.Equal(t, 1, strings.Count(dev.Output(), "no such file or directory"))

	dev.Signal(os.Interrupt)
	require.Equal(t, 0, dev.Wait())
}

func TestDevSaysWhichPortIsTaken(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	port := listener.Addr().(*net.TCPAddr).Port

	dev := startDev(t, t.TempDir(), "", "--", "--influx-port", strconv.Itoa(port))
	require.Equal(t, 1, dev.Wait())
	require.Regexp(t, fmt.Sprintf(
		`(?m)^dev: port %d of InfluxDB is taken on 127\.0\.0\.1: stop what listens there or choose another port, as in make dev DEV='-- --influx-port %d'$`,
		port, port+1), dev.Output())
}

// startDev runs bin/dev in dir on free ports, with the given content of its
// jobs file and further arguments.
func startDev(t *testing.T, dir, jobs string, args ...string) *stacktest.Process {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the embedded stack; skipped with -short")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs.toml"), []byte(jobs), 0o600))
	return stacktest.StartProgram(t, nil, stacktest.Program{
		Name: "dev",
		Dir:  dir,
		Args: append([]string{
			"--free-ports", "--bin", filepath.Dir(stacktest.Binary(t, "devstack")),
		}, args...),
	})
}

func TestDevCommandLine(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs bin/dev; skipped with -short")
	}
	for _, test := range []struct {
		args []string
		code int
		want string // pattern of the whole output
	}{
		{[]string{"frob"}, 1, `^dev: unknown command "frob"; the commands are:\n(?s:.*)dev put FILE BUCKET/KEY`},
		{[]string{"--free-ports", "put"}, 1, `^dev: command "put" takes no flags: it comes first\n$`},
		{[]string{"--nope"}, 1, `^dev: flag provided but not defined: -nope; dev --help lists the flags\n$`},
		{[]string{"--help"}, 0, `^  dev \[flags\](?s:.*)-free-ports`},
	} {
		dev := stacktest.StartProgram(t, nil, stacktest.Program{Name: "dev", Args: test.args})
		require.Equal(t, test.code, dev.Wait(), "dev %v", test.args)
		require.Regexp(t, test.want, dev.Output(), "dev %v", test.args)
	}
}

func TestDevSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs bin/dev; skipped with -short")
	}
	empty := t.TempDir()
	dev := stacktest.StartProgram(t, nil, stacktest.Program{Name: "dev", Args: []string{"--bin", empty}})
	require.Equal(t, 1, dev.Wait())
	require.Contains(t, dev.Output(), filepath.Join(empty, "devstack")+" is missing: run make build")
}
