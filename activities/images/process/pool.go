package process

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/job"
)

// Memory that pictures share: each process stands for a share, and a picture takes as many as its
// decoder needs. So all pictures at a time need that much, or else one is made alone.
const shareBytes = 256 << 20

// A child is replaced after so many pictures, and ends when it had none for so long.
const (
	picturesOfChild = 200
	idleTime        = 30 * time.Second
)

// Pool is a set of processes that make pictures. Its zero value is not ready: see [NewPool].
type Pool struct {
	settings Settings
	engine   func() (imaging.EngineName, error)
	shares   *semaphore.Weighted

	mu     sync.Mutex
	idle   []*child
	closed bool
}

// NewPool makes a pool. It starts processes when there are pictures.
func NewPool(settings Settings) *Pool {
	settings = settings.withDefaults()
	return &Pool{
		settings: settings, shares: semaphore.NewWeighted(int64(settings.Processes)),
		engine: sync.OnceValues(settings.findEngine),
	}
}

// Engine is what the processes decode and encode JPEG with. It fails if that of the settings is
// not there.
func (p *Pool) Engine() (imaging.EngineName, error) { return p.engine() }

// findEngine asks a process, since a library is loaded in none but those that may die.
func (s Settings) findEngine() (imaging.EngineName, error) {
	wanted := cmp.Or(s.Engine, imaging.Turbo)
	if wanted == imaging.Standard {
		return wanted, nil
	}
	ask, err := s.command(askArgument, wanted)
	if err != nil {
		return "", err
	}
	said, err := ask.CombinedOutput()
	switch {
	case err == nil:
		return wanted, nil
	case s.Engine == "":
		return imaging.Standard, nil
	}
	return "", fmt.Errorf("the image processes have no %s: %s", wanted, bytes.TrimSpace(said))
}

// command runs the program as a child.
func (s Settings) command(argument string, engine imaging.EngineName) (*exec.Cmd, error) {
	program := s.Program
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		program = self
	}
	c := exec.Command(program, argument, string(engine))
	c.Env, c.Dir = []string{}, string(os.PathSeparator)
	return c, nil
}

// DiedError says that a process ended while it worked on a picture. The same picture would end
// the next one too.
type DiedError struct{ reason string }

// Error implements error.
func (e *DiedError) Error() string { return e.reason }

// errKilled is the end of a process by somebody else: the kernel that is short of memory, or a
// person.
var errKilled = errors.New("the image process was killed")

// Make makes the pictures of a task in a process of the pool, the largest first. It waits for its
// turn. A process that is killed from outside is replaced once. The errors are those of
// [imaging.Make], and a [DiedError].
func (p *Pool) Make(ctx context.Context, data []byte, limits imaging.Limits, task imaging.Task) ([]imaging.Made, error) {
	info, err := imaging.Inspect(data, limits)
	if err != nil {
		return nil, err
	}
	// What is decoded, what it is resampled to, and the program itself.
	memory := 2*info.DecodeBytes + shareBytes
	if most := int64(p.settings.MemoryMiB) << 20; memory > most {
		return nil, imaging.NewLimitError("the picture of %d×%d pixels may need %d MiB, more than the %d MiB of an image process",
			info.Width, info.Height, memory>>20, p.settings.MemoryMiB)
	}
	take := min(int64(p.settings.Processes), 1+info.DecodeBytes/shareBytes)
	if err := p.shares.Acquire(ctx, take); err != nil {
		return nil, err
	}
	defer p.shares.Release(take)
	r := request{Task: task, Limits: limits, Memory: memory, Seconds: p.settings.Seconds}
	made, err := p.try(ctx, r, data)
	if errors.Is(err, errKilled) {
		made, err = p.try(ctx, r, data)
	}
	if errors.Is(err, errKilled) {
		err = &DiedError{"the image process was killed twice while it worked on this picture"}
	}
	return made, err
}

// try has one process make the pictures.
func (p *Pool) try(ctx context.Context, r request, data []byte) ([]imaging.Made, error) {
	c, err := p.take()
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, p.settings.wall())
	defer cancel()
	made, err := c.make(within, r, data)
	if !errors.Is(err, errBroken) {
		p.giveBack(c)
		return made, err
	}
	died := c.died(p.settings)
	switch {
	case ctx.Err() != nil:
		died = ctx.Err()
	case within.Err() != nil:
		died = imaging.NewLimitError("making the pictures takes longer than %s", p.settings.wall())
	}
	return nil, died
}

// take gives a process that is idle, or starts one.
func (p *Pool) take() (*child, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errors.New("the pool of image processes is closed")
	}
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.timer.Stop() {
			p.mu.Unlock()
			return c, nil
		}
	}
	p.mu.Unlock()
	engine, err := p.engine()
	if err != nil {
		return nil, err
	}
	return p.settings.start(engine)
}

// giveBack keeps a process for the next picture, for a while.
func (p *Pool) giveBack(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || c.pictures >= picturesOfChild {
		time.AfterFunc(0, c.end) // It waits for the process.
		return
	}
	c.timer = time.AfterFunc(idleTime, c.end)
	p.idle = append(p.idle, c)
}

// Close ends the processes that are idle. Those at work end with their pictures.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		if c.timer.Stop() {
			c.end()
		}
	}
	p.idle = nil
}

// child is a process of a pool.
type child struct {
	command  *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	said     *firstBytes
	pictures int
	used     time.Duration // processor time up to the last picture that ended
	timer    *time.Timer
	ended    sync.Once
}

// start starts a child.
func (s Settings) start(engine imaging.EngineName) (*child, error) {
	run, err := s.command(argument, engine)
	if err != nil {
		return nil, err
	}
	c := &child{command: run, said: &firstBytes{}}
	c.command.Stderr = c.said
	if c.in, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("the image process cannot be started: %w", err)
	}
	c.out = bufio.NewReaderSize(out, 64<<10)
	return c, nil
}

// errBroken says that the pipes of a child are broken, or that it talks nonsense.
var errBroken = errors.New("the image process does not answer")

// make has the child make pictures. The child is killed when the context ends.
func (c *child) make(ctx context.Context, r request, data []byte) (all []imaging.Made, err error) {
	c.pictures++
	stop := context.AfterFunc(ctx, func() { _ = c.command.Process.Kill() })
	sending, _ := job.NewGroup(ctx)
	sending.Go(func() error { return writeFrame(c.in, r, data) })
	for {
		var a answer
		body, err := readFrame(c.out, &a)
		if err != nil {
			return nil, errBroken
		}
		if a.Made != nil {
			a.Made.Data = body
			all = append(all, *a.Made)
			continue
		}
		c.used = a.Used
		// The child has read all before it answers. A context that has ended may have killed it.
		if failed := sending.Wait(); failed != nil || !stop() {
			return nil, errBroken
		}
		switch {
		case a.Invalid != "":
			return nil, imaging.NewInvalidError(a.Invalid)
		case a.Limit != "":
			return nil, imaging.NewLimitError("%s", a.Limit)
		case a.Failed != "":
			return nil, errors.New(a.Failed)
		}
		return all, nil
	}
}

// end ends a child that has nothing to do, or whose work nobody wants.
func (c *child) end() {
	c.ended.Do(func() {
		_ = c.in.Close()
		_ = c.command.Process.Kill()
		_ = c.command.Wait()
	})
}

// died says why a child ended in the middle of a picture.
func (c *child) died(settings Settings) error {
	var err error
	c.ended.Do(func() {
		_ = c.in.Close()
		// It has closed its pipe, and so is at its end, or it talks nonsense.
		timer := time.AfterFunc(time.Second, func() { _ = c.command.Process.Kill() })
		defer timer.Stop()
		_ = c.command.Wait()
		state := c.command.ProcessState
		status, isUnix := state.Sys().(syscall.WaitStatus)
		switch {
		case isUnix && status.Signaled() && status.Signal() == syscall.SIGKILL:
			err = fmt.Errorf("%w: %s", errKilled, state)
		case state.UserTime()+state.SystemTime()-c.used > time.Duration(settings.Seconds)*time.Second:
			err = imaging.NewLimitError("making the pictures takes more than %d s of a processor", settings.Seconds)
		default:
			err = &DiedError{fmt.Sprintf("the image process ended in the middle of this picture (%s): %s", state, c.said.line())}
		}
	})
	return err
}

// firstBytes keeps the beginning of what is written.
type firstBytes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (f *firstBytes) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const most = 8 << 10
	f.text.Write(b[:min(len(b), max(0, most-f.text.Len()))])
	return len(b), nil
}

func (f *firstBytes) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.String()
}

// line is the first line, as far as there is one.
func (f *firstBytes) line() string {
	line, _, _ := strings.Cut(strings.TrimSpace(f.String()), "\n")
	if line == "" {
		return "it said nothing"
	}
	return line
}
