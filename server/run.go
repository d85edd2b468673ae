package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/sdkmetrics"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server/audit"
	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/server/page"
)

// Options says what a server with all its parts serves, and what it keeps in line. Its
// Config has the limits; Open sets API, Audit, Background and Page, and the file of Auth.
type Options struct {
	Config
	// AuditLog is the file of the audit log. SIGHUP has it opened anew. - is Stdout.
	AuditLog string
	// Credentials is the file of tokens and client certificates; "" for none.
	Credentials string
	// File is a jobs file that Temporal is kept in line with; "" for none. With Prune, jobs
	// that came from a jobs file and are not in it are deleted.
	File  string
	Prune bool
	// OIDC is an issuer whose tokens are taken. Without an issuer there is none.
	OIDC auth.OIDC
	// Stdout takes the audit log if its file is -.
	Stdout io.Writer
	// SyncEvery is how often the file is compared, if it does not change. Required.
	SyncEvery time.Duration
	// TemporalUI is the address of Temporal's Web UI; "" for none.
	TemporalUI string
	// Watchdog is the file of limits and receivers of alerts; "" for the log.
	Watchdog string
}

// Open makes a server with all its parts: the Job API, the page, the audit log, the
// watchdog, and what is kept in line. With Audit set, there is no file of the audit log.
func (b *Backend) Open(ctx context.Context, o Options) (*Server, error) {
	if o.Prune && o.File == "" {
		return nil, errors.New("--prune goes with --file")
	}
	o.Logger, o.Auth.Logger = b.Logger, b.Logger
	var err error
	if o.Credentials != "" {
		if o.Auth.File, err = auth.OpenFile(o.Credentials, b.Logger); err != nil {
			return nil, err
		}
	}
	if o.OIDC.Issuer != "" {
		o.Auth.OIDC = &o.OIDC
	}
	switch {
	case o.Audit != nil:
	case o.AuditLog == "-":
		o.Audit = audit.New(o.Stdout, b.Logger)
	default:
		if o.Audit, err = b.openAudit(ctx, o.AuditLog); err != nil {
			return nil, err
		}
	}
	if b.Temporal.Metrics, err = sdkmetrics.Handler(); err != nil {
		return nil, err
	}
	if o.PayloadKeys, err = temporalclient.PayloadKeys(b.Temporal); err != nil {
		return nil, err
	}
	o.Config.API = b.API()
	if err := o.Config.API.Connect(ctx); err != nil {
		return nil, err
	}
	if err := o.Config.API.Pipeline.Dial(ctx); err != nil {
		return nil, err
	}
	var declared func(context.Context) (*jobsv1.JobSet, error)
	if o.File != "" {
		file := b.fileSync(&o)
		if _, err := file.sum(); err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		declared = file.read
		o.Background = append(o.Background, file.run)
	}
	watching, err := b.watching(ctx, o.Watchdog, &o.Config.API)
	if err != nil {
		return nil, err
	}
	var kept page.SampleStore
	if o.Config.API.Pipeline != nil {
		kept = pipeline.NewSamples(o.Config.API.Pipeline)
	}
	var origin string
	if store, err := b.store(); err == nil { // Without one, calls that need it say so.
		origin = store.PublicOrigin()
	}
	var shown *page.Page
	o.Page = func(clients *api.Clients) http.Handler {
		shown = page.New(page.Config{
			API: clients, Declared: declared, Logger: b.Logger, Namespace: o.Config.API.Client.Namespace(), TemporalUI: o.TemporalUI,
			Role: auth.RoleOf, Samples: kept, StoreOrigin: origin,
		})
		return shown
	}
	o.Background = append(append(o.Background, watching...),
		func(ctx context.Context, _ *api.Clients) error { return shown.Run(ctx) })
	return New(o.Config)
}

// fileSync reads the file by the job types that a server in this process knows.
func (b *Backend) fileSync(o *Options) *fileSync {
	clients := api.New(o.Config.API).InProcess()
	types := JobTypes{Own: b.Types, API: clients}
	return &fileSync{o.File, o.Prune, o.SyncEvery, types, b.Logger.With("file", o.File)}
}

// openAudit opens the audit log, which SIGHUP has opened anew.
func (b *Backend) openAudit(ctx context.Context, path string) (*audit.Log, error) {
	log, err := audit.Open(path, b.Logger)
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, func() { _ = log.Close() }) // Each line is on the disk already.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	context.AfterFunc(ctx, func() {
		signal.Stop(hangups)
		close(hangups)
	})
	go reopen(log, hangups, b.Logger)
	return log, nil
}

func reopen(log *audit.Log, hangups <-chan os.Signal, logger *slog.Logger) {
	for range hangups {
		if err := log.Reopen(); err != nil {
			logger.Error("the audit log stays as it is", "error", err)
		} else {
			logger.Info("the audit log was opened anew")
		}
	}
}
