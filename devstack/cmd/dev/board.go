package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/dendrascience/dendra-jobs/devstack/internal/lockfile"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// board shows what is where, what became of the jobs file, and how to go on.
func (t *terminal) board(info stack.Info, o options, processes []process, envFile, jobs string) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	for _, p := range processes {
		if p.name == serveName {
			row("Status page", "http://%s", p.address)
		}
	}
	row("Web UI", "%s/namespaces/%s/workflows", info.WebUI, info.Namespace)
	row("Temporal", "%s, namespace %s", info.Temporal, info.Namespace)
	row("S3 store", "%s, buckets %s", info.S3.Endpoint, strings.Join(info.Buckets, ", "))
	row("", "access key %s, secret key %s", info.S3.AccessKey, info.S3.SecretKey)
	row("InfluxDB", "%s, database %s", info.Influx, strings.Join(info.Databases, ", "))
	row("NATS", "%s, with JetStream", info.NATS)
	row("HOBOlink", "%s, token %s (a development server with made-up weather)", info.HOBOlink.URL, info.HOBOlink.Token)
	row("LoggerNet", "%s, over LDMP (a development server with made-up stations)", info.LDMP)
	row("Platform", "%s, token %s (a reference API, for development)", info.Platform.URL, info.Platform.Token)
	row("Release 2", "%s, the same token", info.Release2.URL)
	for _, p := range processes {
		if name, ok := strings.CutPrefix(p.name, "worker "); ok {
			row("worker", "%s, health on http://%s/readyz", name, p.address)
		}
	}
	row("jobs", "%s", jobs)
	row("logs", "%s, one file for each program; the terminal shows warnings and errors", short(logsDir(o.dir)))
	row("data", "%s, kept for the next time", short(info.Data))
	_ = w.Flush() // into a string builder

	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf(`
Dendra Jobs runs.

%s
In a second terminal:

  . %s
  starter integrations list    # what the organization demo of the Platform API has
  starter jobs list
  starter --help
  dev board                    # this again

Ctrl-C stops everything.

`, b.String(), short(envFile))
	_, _ = io.WriteString(t.w, text)
	if err := os.WriteFile(boardFile(o.dir), []byte(text), 0o600); err != nil {
		_, _ = fmt.Fprintf(t.w, "The lines above cannot be kept for dev board: %v\n", err)
	}
}

// describeJobs says what became of the jobs file, of which the starter was given file.
func describeJobs(o options, file string, applied bool) string {
	what := o.jobs
	if file != o.jobs {
		what = fmt.Sprintf("%s with the ports above (%s)", o.jobs, file)
	}
	if !applied {
		return what + ", NOT applied (see above), tried again until it is"
	}
	return what + ", applied again whenever it changes"
}

// boardFile is the file of what the board shows: it has keys in it, and only its owner may
// read it.
func boardFile(dir string) string { return filepath.Join(dir, "board") }

// showBoard shows the board of the running system again: board [FOLDER].
func showBoard(_ context.Context, args []string, out io.Writer) error {
	if len(args) > 1 {
		return errors.New("usage: dev board [FOLDER]")
	}
	dir := defaultDir
	if len(args) == 1 {
		dir = args[0]
	}
	text, err := os.ReadFile(boardFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no system of %s runs, or it has not started yet: make dev starts one", dir)
	}
	if err != nil {
		return err
	}
	// A system that was killed leaves its board behind, but not its lock.
	lock, err := lockfile.Take(lockPath(dir))
	if err == nil {
		return errors.Join(fmt.Errorf("no system of %s runs any more: make dev starts one", dir), lock.Close())
	}
	if held := (*lockfile.HeldError)(nil); !errors.As(err, &held) {
		return err
	}
	_, err = out.Write(text)
	return err
}

// short is path as one would type it here.
func short(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return path
	}
	return rel
}
