// Command sharedstack runs a command, which is go test, beside a Temporal server that
// all packages under test share:
//
//	go run ./internal/stacktest/sharedstack go test ./workers ./schedules
//
// It exits with the exit code of the command. The server needs bin/devstack.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

const (
	startTimeout = 90 * time.Second // of the server
	// memoryLimit is for more namespaces and workflows than devstack's own limit is.
	memoryLimit = "2GiB"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "sharedstack: %v\n", err)
	}
	os.Exit(code)
}

// run returns the exit code of the command. The command gets Ctrl-C from the
// terminal itself, and the server ends after it.
func run(command []string) (int, error) {
	if len(command) == 0 {
		return 2, errors.New("name a command to run")
	}
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM) // Not ignored: the command would inherit that.
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := os.Setenv("GOMEMLIMIT", memoryLimit); err != nil {
		return 1, err
	}
	log := &bytes.Buffer{}
	flags := []string{"--ephemeral", "--free-ports", "--only", "temporal,ui"}
	info, server, err := stack.Launch(ctx, filepath.Join("bin", "devstack"), flags, log)
	if err := errors.Join(err, os.Unsetenv("GOMEMLIMIT")); err != nil {
		return 1, err
	}
	defer server.Stop(stack.StopGrace)
	code, err := runBeside(info, command)
	if code != 0 {
		server.Stop(stack.StopGrace)
		_, _ = io.Copy(os.Stderr, log)
	}
	return code, err
}

func runBeside(info stack.Info, command []string) (int, error) {
	line, err := json.Marshal(info)
	if err != nil {
		return 1, err
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // To run it is what it was called for.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), stacktest.SharedVariable+"="+string(line))
	err = cmd.Run()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return failed.ExitCode(), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
