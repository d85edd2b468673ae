package stack

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// StopGrace is how long a stack gets to stop before it is killed.
const StopGrace = 30 * time.Second

// StartError is a stack that ended before its servers answered.
type StartError struct {
	State string // how it ended, as in "exit status 1"
	Said  string // the last lines of its log
}

func (e *StartError) Error() string {
	return fmt.Sprintf("the stack did not start (%s): %s", e.State, e.Said)
}

// Launch runs the devstack binary with the given flags and returns when every
// server answers. The stack's log goes to log; the last lines of it are in the
// error, a *StartError, when the start fails. Its environment is that of this process, with
// env, each NAME=value.
func Launch(ctx context.Context, binary string, flags []string, log io.Writer, env ...string) (Info, *Process, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return Info{}, nil, err
	}
	defer func() { _ = out.Close() }()
	tail := &tail{}
	p, err := Command{
		Path: binary, Args: flags, Env: append(os.Environ(), env...), Stdout: in, Stderr: io.MultiWriter(log, tail),
		Orphaned: syscall.SIGTERM, // it still removes an ephemeral data folder
	}.Start()
	_ = in.Close()
	if err != nil {
		return Info{}, nil, err
	}
	type answer struct {
		info Info
		err  error
	}
	ready := make(chan answer, 1)
	go func() {
		var a answer
		line, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &a.info)
		}
		a.err = err
		ready <- a
	}()
	select {
	case a := <-ready:
		if a.err != nil {
			p.Stop(StopGrace)
			return Info{}, nil, &StartError{State: p.State(), Said: tail.String()}
		}
		return a.info, p, nil
	case <-ctx.Done():
		p.Stop(StopGrace)
		return Info{}, nil, fmt.Errorf("the stack was not ready in time: %w %s", ctx.Err(), tail.String())
	}
}

// tail keeps the end of what is written to it. Its one writer is done when the
// process is.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	const most = 4096
	t.text = append(t.text, b...)
	if len(t.text) > most {
		t.text = t.text[len(t.text)-most:]
	}
	return len(b), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.text)) }
