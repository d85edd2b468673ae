package cli

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/starter/servers"
)

// Program is the starter with its environment.
type Program struct {
	// Getenv reads an environment variable. Defaults to os.Getenv. The settings
	// of Temporal are read from the environment of the process itself.
	Getenv func(string) string
	// IsTerminal reports whether one of the streams is a terminal. Defaults to a call of
	// the operating system.
	IsTerminal func(stream any) bool
	// Location is the time zone of the times in tables. Defaults to time.Local.
	Location *time.Location
	// Now is the clock that relative times are counted from. Defaults to time.Now.
	Now func() time.Time
	// Patience is how long a command waits without a sign. Defaults to four seconds.
	Patience time.Duration
	// Stderr takes progress and errors. Defaults to os.Stderr.
	Stderr io.Writer
	// Stdin is read for "-" and for confirmations. Defaults to os.Stdin.
	Stdin io.Reader
	// Stdout takes data. Defaults to os.Stdout.
	Stdout io.Writer
	// Trace makes a span of a command, and gives what ends it. Defaults to none.
	Trace func(ctx context.Context, command string) (context.Context, func(error))
	// Types are the built-in job types.
	Types []job.Type
	// Width is how many columns the terminal has that a stream is, 0 if it is none. Defaults
	// to a call of the operating system.
	Width func(stream any) int
}

func (p Program) withDefaults() Program {
	if p.Getenv == nil {
		p.Getenv = os.Getenv
	}
	if p.IsTerminal == nil {
		p.IsTerminal = isTerminal
	}
	if p.Location == nil {
		p.Location = time.Local
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	if p.Patience == 0 {
		p.Patience = defaultPatience
	}
	if p.Stderr == nil {
		p.Stderr = os.Stderr
	}
	if p.Stdin == nil {
		p.Stdin = os.Stdin
	}
	if p.Stdout == nil {
		p.Stdout = os.Stdout
	}
	if p.Trace == nil {
		p.Trace = func(ctx context.Context, _ string) (context.Context, func(error)) { return ctx, func(error) {} }
	}
	if p.Width == nil {
		p.Width = terminalWidth
	}
	return p
}

func terminalWidth(stream any) int {
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Execute runs one command line, without the name of the program, and returns
// its exit code: 0 for success, 1 for failure, and 2 for wrong usage, or for a plan that
// has changes.
func (p Program) Execute(ctx context.Context, args []string) int {
	p = p.withDefaults()
	i := &invocation{Program: p, ctx: ctx}
	defer i.close()
	root := i.root()
	root.SetArgs(args)
	name := "starter"
	if cmd, _, err := root.Find(args); err == nil {
		name = cmd.CommandPath()
	}
	ctx, end := p.Trace(ctx, name)
	err := root.ExecuteContext(ctx)
	end(err)
	return i.exit(err)
}

// invocation is one command line being carried out.
type invocation struct {
	Program

	format       format
	noColor      bool
	wide         bool
	site         servers.Site // of the flags and the environment
	remoteServer servers.Remote
	api          *api.Clients // set before a command runs, but for those of withoutServer
	timeout      job.Duration
	waits        waits
	// fullScreen says that top has the terminal: nothing else is shown on it.
	fullScreen bool

	// ctx is that of the command, limited by --timeout.
	ctx     context.Context //nolint:containedctx // Its cause explains a failure.
	closers []func()
}

func (i *invocation) close() {
	for n := len(i.closers) - 1; n >= 0; n-- {
		i.closers[n]()
	}
}
