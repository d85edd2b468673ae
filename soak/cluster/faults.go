package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// Signals that stop PostgreSQL.
const (
	fast      = syscall.SIGINT
	immediate = syscall.SIGQUIT
)

// Begin starts the program of a host whose process is gone. One that ends by itself is
// started again, as a supervisor would.
func (c *Cluster) Begin(host string) error {
	m := c.member(host)
	m.mu.Lock()
	defer m.mu.Unlock()
	return c.begin(m)
}

func (c *Cluster) begin(m *Member) error {
	host := m.Name
	if host == PostgreSQL {
		if err := c.initialize(); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(c.path(host+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // The process has it.
	program := m.program
	program.Stdout, program.Stderr = log, log
	p, err := c.network.within(host, program).Start()
	if err != nil {
		return err
	}
	m.process, m.wanted = p, true
	go c.supervise(m, p)
	return nil
}

// rest is how long a supervisor waits.
const rest = time.Second

func (c *Cluster) supervise(m *Member, p *stack.Process) {
	<-p.Done()
	<-time.After(rest)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.wanted || m.process != p {
		return
	}
	c.Say("%s ended by itself (%s) and is started again", m.Name, p.State())
	if err := c.begin(m); err != nil {
		c.Say("%s: %s", m.Name, err)
	}
}

// unwanted gives the process of a host, which is to end.
func (m *Member) unwanted() *stack.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = false
	return m.process
}

// Kill kills all processes of a host.
func (c *Cluster) Kill(host string) {
	p := c.member(host).unwanted()
	children := stack.Children(p.PID())
	p.Kill()
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Freeze stops all processes of a host until Thaw.
func (c *Cluster) Freeze(host string) { c.signal(host, syscall.SIGSTOP) }

// Thaw has them go on.
func (c *Cluster) Thaw(host string) { c.signal(host, syscall.SIGCONT) }

func (c *Cluster) signal(host string, sig syscall.Signal) {
	m := c.member(host)
	m.mu.Lock()
	p := m.process
	m.mu.Unlock()
	if p == nil || p.State() != "running" || p.Signal(sig) != nil {
		return
	}
	for _, pid := range stack.Children(p.PID()) {
		_ = syscall.Kill(pid, sig)
	}
}

// StopPostgreSQL ends PostgreSQL in its own order, or at once.
func (c *Cluster) StopPostgreSQL(atOnce bool) {
	sig := fast
	if atOnce {
		sig = immediate
	}
	c.end(c.member(PostgreSQL), sig)
}

func (c *Cluster) end(m *Member, sig syscall.Signal) {
	p := m.unwanted()
	_ = p.Signal(sig)
	select {
	case <-p.Done():
	case <-time.After(stopGrace):
		c.Kill(m.Name)
	}
}

// Cut takes a host off the network, and gives what brings it back.
func (c *Cluster) Cut(host string) (restore func() error, err error) {
	set := func(state string) error { return command("ip", "-n", c.network.name(hub), "link", "set", host, state) }
	return func() error { return set("up") }, set("down")
}

// CutOneWay has a host hear, and not be heard; or be heard, and not hear.
func (c *Cluster) CutOneWay(host string, deaf bool) (restore func() error, err error) {
	chain := "OUTPUT"
	if deaf {
		chain = "INPUT"
	}
	return func() error { return c.network.filter("-D", host, chain) }, c.network.filter("-A", host, chain)
}

// Lose has a host lose 5 % of its packets, in both ways.
func (c *Cluster) Lose(host string) (restore func() error, err error) {
	both := func(action string) error {
		match := []string{"-m", "statistic", "--mode", "random", "--probability", "0.05"}
		return errors.Join(c.network.filter(action, host, "INPUT", match...), c.network.filter(action, host, "OUTPUT", match...))
	}
	return func() error { return both("-D") }, both("-A")
}

// Delay has the packets of a host take 200 ms longer.
func (c *Cluster) Delay(host string) (restore func() error, err error) {
	change := func(action string, more ...string) error {
		return command("tc", append([]string{"-n", c.network.name(host), "qdisc", action, "dev", inside, "root", "netem"}, more...)...)
	}
	return func() error { return change("delete") }, change("add", "delay", "200ms")
}

// fillName is the file that fills a disk.
const fillName = "full"

// Fill fills the disk of a host, and gives what empties it.
func (c *Cluster) Fill(host string) (restore func() error, err error) {
	path := filepath.Join(c.member(host).disk, fillName)
	restore = func() error {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return restore, err
	}
	defer file.Close() //nolint:errcheck // It is full anyway.
	block := make([]byte, 1<<16)
	for size := len(block); size > 0; {
		if _, err := file.Write(block[:size]); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			return restore, fmt.Errorf("filling the disk of %s: %w", host, err)
		}
	}
	return restore, nil
}
