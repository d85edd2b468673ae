package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// wait waits until a time has passed, and reports whether it has.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// between draws a duration.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)+1))
}

// appendTo opens a log.
func (s *soak) appendTo(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(s.folder, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// cliTimeout bounds a command of the starter.
const cliTimeout = 30 * time.Second

// errKilled is the error of a command that was killed on purpose.
var errKilled = errors.New("killed")

// starter runs a command of the starter and gives what it wrote to standard output.
// With killAfter it is killed after that time, unless it has ended.
func (s *soak) starter(ctx context.Context, killAfter time.Duration, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	command := stack.Command{
		Path: filepath.Join(s.bin, "starter"), Args: append(args, "-o", "json", "--timeout", "20s"), Env: s.env(), Stdout: &stdout, Stderr: &stderr,
	}
	if s.cluster != nil {
		command = s.throughServer(command)
	}
	p, err := command.Start()
	if err != nil {
		return nil, err
	}
	limit := cliTimeout
	if killAfter > 0 {
		limit = killAfter
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	began := ledger.Now()
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
		return nil, ctx.Err()
	case <-timer.C:
		p.Kill()
		if killAfter > 0 {
			s.write(s.faults, ledger.Fault{Kind: ledger.FaultKill, Target: ledger.StarterTarget, From: began + limit, To: ledger.Now()})
			return nil, errKilled
		}
		return nil, fmt.Errorf("starter %v did not end within %s", args, cliTimeout)
	}
	if p.ExitCode() != 0 {
		return nil, fmt.Errorf("starter %v: %s: %s", args, p.State(), strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}
