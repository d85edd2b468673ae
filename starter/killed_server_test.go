package main_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// envServe makes this test binary a server of the Job API, to be killed.
const envServe = "STARTER_TEST_SERVES"

func TestMain(m *testing.M) {
	if os.Getenv(envServe) == "" {
		os.Exit(m.Run())
	}
	if err := serveAPI(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveAPI serves the Job API until standard input ends, and writes its URL to standard
// output.
func serveAPI() error {
	settings := temporalclient.Settings{Address: os.Getenv("TEMPORAL_ADDRESS"), Namespace: os.Getenv("TEMPORAL_NAMESPACE")}
	temporal, err := temporalclient.Dial(context.Background(), settings)
	if err != nil {
		return err
	}
	defer temporal.Close()
	server := httptest.NewServer(api.New(api.Config{
		Client: client.New(temporal, settings.Namespace), Address: settings.Address, Types: activities.Types(),
	}).Handler())
	defer server.Close()
	_, _ = fmt.Fprintln(os.Stdout, server.URL)        // Its reader would wait in vain, and say so.
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // It ends with the test, at the latest.
	return nil
}

// startServer starts a server of Temporal at an address in a process of its own, and returns its URL and a function
// that kills it.
func (s *site) startServer(temporal string) (url string, kill func()) {
	s.Helper()
	server := exec.CommandContext(s.Context(), os.Args[0])
	server.Env = append(append(os.Environ(), s.stack.Env()...), envServe+"=1", "TEMPORAL_ADDRESS="+temporal, "TEMPORAL_NAMESPACE="+s.stack.Namespace)
	server.Stderr = os.Stderr
	stdin, err := server.StdinPipe()
	require.NoError(s, err)
	stdout, err := server.StdoutPipe()
	require.NoError(s, err)
	require.NoError(s, server.Start())
	kill = func() {
		_ = server.Process.Kill() // It may be dead.
		_ = server.Wait()         // Its exit code is that of a kill.
		_ = stdin.Close()
	}
	s.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(s, err)
	return strings.TrimSpace(line), kill
}

// TestAnApplyWhoseServerIsKilledIsCompletedByTheNext kills the server of a remote apply
// twice (SIGKILL), at a random number of Schedules each time.
func TestAnApplyWhoseServerIsKilledIsCompletedByTheNext(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	s := newSite(t)
	size := stacktest.Size(1, 5)
	declared := declaredJobs{recurring: 24 * size, continuous: 4 * size, oneShot: 8 * size, queued: 4 * size}
	file := declared.file(t)
	all := 40 * size
	left := declared.recurring
	for range 2 {
		made := random.IntN(left/2) + 1
		halted := s.haltAfter(made)
		url, kill := s.startServer(halted.Address)
		remote := s.start("apply", "-f", file, "--yes", "--server", url)
		halted.wait()
		kill()
		require.Equal(t, 1, remote.Wait(), remote.Output())
		require.Contains(t, remote.Output(), "changes were made; apply again to go on")
		require.Contains(t, remote.Output(), "starter: the server "+url+" ")
		_, err := http.Get(url) //nolint:gosec,noctx // The server of this test.
		require.Error(t, err, "it is gone")
		left -= made
	}
	url, _ := s.startServer(s.stack.Temporal)
	s.must(0, "apply", "-f", file, "--yes", "--server", url)
	require.Contains(t, s.must(0, "plan", "-f", file, "--server", url), fmt.Sprintf("%d unchanged", all))
	require.Contains(t, s.must(0, "plan", "-f", file, "--prune"), fmt.Sprintf("0 to create, 0 to update, 0 to delete, 0 blocked, %d unchanged", all))
	once := declared.onces()
	stacktest.WaitFor(s, "a run of each job that runs once", func() (bool, error) { return !slices.Contains(s.runs(once), 0), nil })
	s.must(0, "apply", "-f", file, "--yes", "--server", url)
	require.Equal(t, slices.Repeat([]int{1}, len(once)), s.runs(once))
	stacktest.WaitFor(s, "all schedules in the list", func() (bool, error) { return len(s.schedules()) >= declared.recurring, nil })
	require.Len(t, s.schedules(), declared.recurring)
	s.must(0, "drift", "--server", url)
}
