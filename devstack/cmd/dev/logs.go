package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// logs are the files of what the programs say, one for each program.
type logs struct {
	dir string
	out *terminal
	// jobsFile is called when the server has compared Temporal with the jobs file.
	jobsFile func(applied bool)
}

// logsDir is the folder of the logs of a setup.
func logsDir(dir string) string { return filepath.Join(dir, "logs") }

// newLogs makes the folder. Files of the time before get names that end with ".1", in place
// of older ones.
func newLogs(dir string, out *terminal) (logs, error) {
	l := logs{dir: logsDir(dir), out: out}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return l, err
	}
	old, err := filepath.Glob(filepath.Join(l.dir, "*.log"))
	if err != nil {
		return l, err
	}
	for _, path := range old {
		if err := os.Rename(path, path+".1"); err != nil {
			return l, err
		}
	}
	return l, nil
}

// open opens the log of a program that is about to run. A program that runs again goes on
// with its file.
func (l logs) open(program string) (*programLog, error) {
	path := filepath.Join(l.dir, strings.ReplaceAll(program, " ", "-")+".log")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the log of %s: %w", program, err)
	}
	return &programLog{out: l.out, source: program, path: path, file: file, jobsFile: l.jobsFile}, nil
}

// lastLines is how many lines of a program that ended are shown.
const lastLines = 10

// programLog keeps what one run of a program says. The terminal gets warnings, errors and
// what became of the jobs file.
type programLog struct {
	out          *terminal
	source, path string
	jobsFile     func(applied bool)

	mu     sync.Mutex
	file   *os.File
	failed bool     // the file could not be written, which was said
	rest   []byte   // what is not a whole line yet
	last   []string // whole lines
	held   bool
	waits  []string // warnings and errors to show after hold
}

// serious are the lines that the terminal gets: warnings and errors, as text or as JSON, and
// what the Go runtime says of a program that crashes.
var serious = regexp.MustCompile(`(?:^|\s)level=(?:WARN|ERROR)|"level":"(?:WARN|ERROR)|^(?:panic|fatal error): `)

// aboutFile is what the server says when it has compared Temporal with the jobs file.
var aboutFile = regexp.MustCompile(`msg="Temporal is (not )?in line with the jobs file`)

// Write takes what the program says. It never fails: the program would end.
func (p *programLog) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.file.Write(b); err != nil && !p.failed {
		p.failed = true
		p.out.say("%s cannot be written: %v", short(p.path), err)
	}
	p.rest = append(p.rest, b...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		p.rest = rest
		p.add(string(line))
	}
}

func (p *programLog) add(line string) {
	line = strings.TrimRight(line, "\r")
	if p.last = append(p.last, line); len(p.last) > lastLines {
		p.last = p.last[1:]
	}
	compared := aboutFile.FindStringSubmatch(line)
	if compared != nil && p.jobsFile != nil {
		p.jobsFile(compared[1] == "")
	}
	switch {
	case compared == nil && !serious.MatchString(line):
	case p.held:
		p.waits = append(p.waits, line)
	default:
		p.out.line(p.source, line)
	}
}

// hold keeps the terminal free of the program's lines until release.
func (p *programLog) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
}

// release shows the warnings and errors that were kept back.
func (p *programLog) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = false
	for _, line := range p.waits {
		p.out.line(p.source, line)
	}
	p.waits = nil
}

// close ends the log of a program that has ended.
func (p *programLog) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rest) > 0 {
		p.add(string(p.rest))
		p.rest = nil
	}
	if err := p.file.Close(); err != nil {
		p.out.say("%s: %v", short(p.path), err)
	}
}

// showEnd shows the last lines of a program that has ended, below a sentence that says so.
func (p *programLog) showEnd(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sentence := fmt.Sprintf(format, args...)
	if len(p.last) == 0 {
		p.out.say("%s; it said nothing", sentence)
		return
	}
	p.out.say("%s; its last lines of %s:", sentence, short(p.path))
	for _, line := range p.last {
		p.out.line(p.source, line)
	}
}
