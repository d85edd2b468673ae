package process

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// MakeWithin is Make with a limit of memory that the file does not tell.
func (p *Pool) MakeWithin(ctx context.Context, data []byte, limits imaging.Limits, task imaging.Task, mib int64) ([]imaging.Made, error) {
	return p.try(ctx, request{Task: task, Limits: limits, Memory: mib << 20, Seconds: p.settings.Seconds}, data)
}

// Racing says that the race detector is at work.
const Racing = racing

const escapeArgument = "image-process-escape"

// A process of this argument confines itself as a child does, and tries what a decoder that
// was taken over would try.
func init() { //nolint:gochecknoinits // Before the flags of the test binary.
	if len(os.Args) != 2 || os.Args[1] != escapeArgument {
		return
	}
	if err := confine(); err != nil {
		fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	tell := func(way string, err error) {
		for {
			inner, ok := err.(interface{ Unwrap() error })
			if !ok {
				break
			}
			err = inner.Unwrap()
		}
		fmt.Fprintf(os.Stdout, "%s: %v\n", way, err)
	}
	_, err := os.ReadFile("/etc/passwd")
	tell("open a file", err)
	tell("write a file", os.WriteFile("/tmp/escaped", nil, 0o600))
	_, err = (&net.Dialer{}).DialContext(context.Background(), "tcp", "127.0.0.1:1")
	tell("connect", err)
	_, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	tell("listen", err)
	tell("start a program", syscall.Exec("/bin/true", []string{"true"}, nil))
	_, err = (&exec.Cmd{Path: "/bin/true"}).Output()
	tell("fork", err)
	tell("trace the worker", syscall.PtraceAttach(os.Getppid()))
	tell("kill the worker", syscall.Kill(os.Getppid(), 0))
	fmt.Fprintf(os.Stdout, "environment: %d variables\n", len(os.Environ()))
	os.Exit(0)
}

// TryToEscape is what a process says that tries to leave its bounds.
func TryToEscape(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, escapeArgument)
	command.Env = []string{}
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return string(said)
}
