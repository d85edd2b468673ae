package page

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// Config says what the page shows.
type Config struct {
	// API are clients of the Job API. Required.
	API *api.Clients
	// Declared gives the jobs that a plan compares with Temporal. Without it the page shows
	// drift alone.
	Declared func(context.Context) (*jobsv1.JobSet, error)
	// Logger gets what the page could not show. Defaults to slog.Default().
	Logger *slog.Logger
	// MissedSince is how far back starts without a run are looked for. Defaults to a day.
	MissedSince time.Duration
	// Namespace is that of Temporal. Defaults to default.
	Namespace string
	// Role is that of whoever made a request: the page shows the actions that it may do. The
	// API decides all the same. Without it all actions are shown.
	Role func(*http.Request) verbs.Role
	// SampleEvery is how often Run notes how loads, queues and workers are. Defaults to ten
	// seconds.
	SampleEvery time.Duration
	// Samples keeps the samples of charts. Without it they are in memory alone.
	Samples SampleStore
	// StoreOrigin is that of the S3 store, to which browsers send files. Without it they do not.
	StoreOrigin string
	// TemporalUI is the address of Temporal's Web UI. Without it there are no links to it.
	TemporalUI string
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.MissedSince == 0 {
		c.MissedSince = 24 * time.Hour
	}
	if c.Namespace == "" {
		c.Namespace = "default"
	}
	if c.SampleEvery == 0 {
		c.SampleEvery = 10 * time.Second
	}
	return c
}

// Page serves the status page.
type Page struct {
	Config
	handler http.Handler
	samples samples
	// epoch names this process in the ids of events: another one counts otherwise.
	epoch string
}

// New makes a page. Its Run keeps the samples of charts.
func New(config Config) *Page {
	p := &Page{Config: config.withDefaults(), epoch: rand.Text()[:8]}
	p.handler = p.routes()
	return p
}

// ServeHTTP implements [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// contentPolicy lets browsers load from the page alone, and run no scripts of its HTML. They send
// files to the S3 store.
func (c *Config) contentPolicy() string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " + strings.TrimSpace("connect-src 'self' "+c.StoreOrigin) + "; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// routes are all addresses of the page.
func (p *Page) routes() http.Handler {
	views := http.NewServeMux()
	for path, view := range map[string]view{
		"/{$}": p.home, "/jobs/{id}": p.job, "/runs/{name...}": p.run, "/queues": p.queues, "/queues/{name}": p.queue,
		"/loads": p.loads, "/quarantine": p.quarantine, "/quarantine/{id}": p.quarantineItem, "/workers": p.workers,
		"/integrations": p.integrations, "/integrations/{id}": p.integration, "/plan": p.plan, "/alerts": p.alerts, "/failures": p.failures, "/new": p.newJob,
	} {
		views.Handle("GET "+path, p.show(view))
	}
	views.HandleFunc("GET /jobs/{id}/outcomes/{back}", p.outcome)
	views.HandleFunc("GET /runs/{name}/log", p.logFile)
	views.HandleFunc("GET /runs/{name}/tail", p.tail)
	views.HandleFunc("GET /jobs/{id}/outcomes/{back}/card", p.card)
	views.HandleFunc("GET /timeline", p.timeline)
	views.HandleFunc("GET /samples", p.samplesJSON)
	views.HandleFunc("POST /do/{verb}", p.do)
	views.HandleFunc("POST /new", p.createJob)
	views.Handle("GET /static/", p.static())
	views.Handle("/", p.show(func(*http.Request) (*document, error) { return nil, errNoView }))

	policy := p.contentPolicy()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+EventsPath, p.events) // Streams are not gathered to be made smaller.
	mux.HandleFunc("POST /bulk", p.bulk)
	mux.Handle("/", gzhttp.GzipHandler(views))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}
