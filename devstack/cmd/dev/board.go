package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// board shows what is where, whether the jobs file was applied, and how to go on.
func (t *terminal) board(info stack.Info, o options, processes []process, envFile string, applied bool) {
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
	if applied {
		row("jobs", "%s, applied again whenever it changes", o.jobs)
	} else {
		row("jobs", "%s, NOT applied (see above), tried again when it changes", o.jobs)
	}
	row("data", "%s, kept for the next time", short(info.Data))
	_ = w.Flush() // into a string builder

	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintf(t.w, `
Dendra Jobs runs.

%s
In a second terminal:

  . %s
  starter integrations list    # what the organization demo of the Platform API has
  starter jobs list
  starter --help

Ctrl-C stops everything.

`, b.String(), short(envFile))
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
