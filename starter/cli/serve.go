package cli

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/sdkmetrics"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/overview"
	"github.com/dendrascience/dendra-jobs/page"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/serve"
	"github.com/dendrascience/dendra-jobs/serve/audit"
	"github.com/dendrascience/dendra-jobs/serve/auth"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	listen         string
	tls            serve.TLS
	credentials    string
	oidc           auth.OIDC
	origins        []string
	auditLog       string
	watchdog       string
	maxCalls       int
	maxConnections int
	stopTimeout    job.Duration
	logFormat      logFormat
	temporalUI     string
	sync           syncOptions
}

func (i *invocation) serveCommand() *cobra.Command {
	o := &serveOptions{listen: "127.0.0.1:8080", auditLog: "-", stopTimeout: defaultStopTimeout}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the Job API and the status page, and reconcile",
		Long: `serve is the HTTP server of the Job API and the status page. With --file it also
keeps Temporal in line with a jobs file, and with --integrations with the
platform's integrations. Any number of replicas may run: Temporal holds all state.
A watchdog in it tells about alerts, once among all replicas.

Without --credentials and --oidc-issuer everybody who can connect is an admin, and
serve listens on loopback addresses only. "serve token new" makes a token.

The audit log has a line of JSON for each call that changes something. SIGHUP has
its file opened anew. SIGTERM and Ctrl-C stop the server: streams end at once, other
calls have --stop-timeout.`,
		Args:              arguments(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return i.serve(cmd, o) },
	}
	o.register(cmd)
	i.natsFlag(cmd)
	cmd.AddCommand(group("token", "Make tokens for callers of the Job API", i.serveTokenCommand()))
	return cmd
}

func (o *serveOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(textValue{&o.listen, "HOST:PORT"}, "listen", "address to serve on")
	flags.Var(textValue{&o.credentials, argumentFile}, "credentials", "file of tokens and client certificates with their roles; read again when it changes")
	flags.Var(textValue{&o.oidc.Issuer, "URL"}, "oidc-issuer", "take tokens of this OIDC issuer")
	flags.Var(textValue{&o.oidc.Audience, "NAME"}, "oidc-audience", "what its tokens must be made for")
	o.oidc.RoleClaim = "role"
	flags.Var(textValue{&o.oidc.RoleClaim, "NAME"}, "oidc-role-claim", "claim of its tokens that has viewer, operator or admin")
	flags.Var(textValue{&o.tls.Cert, argumentFile}, "tls-cert", "certificate in PEM; read again when it changes")
	flags.Var(textValue{&o.tls.Key, argumentFile}, "tls-key", "its key")
	flags.Var(textValue{&o.tls.ClientCA, argumentFile}, "client-ca", "authorities of client certificates, in PEM")
	flags.Var(textValue{&o.temporalUI, "URL"}, "temporal-ui", "address of Temporal's Web UI, which the page links to")
	flags.StringSliceVar(&o.origins, "allow-origin", nil, "`ORIGIN` of a web page that may call the API, such as https://dashboard.example.org; several, or separated by commas")
	flags.Var(textValue{&o.auditLog, argumentFile}, "audit-log", "file of the audit log, - for standard output")
	flags.Var(textValue{&o.watchdog, argumentFile}, "watchdog", "file of limits and receivers of alerts, such as watchdog.toml; by default they go to the log")
	flags.IntVar(&o.maxCalls, "max-calls", 2000, "calls that one caller may have under way")
	flags.IntVar(&o.maxConnections, "max-connections", 4096, "connections of all callers")
	o.logFormat = logText
	flags.Var(choose(&o.logFormat, logText, logJSON), "log-format", "text or json")
	flags.Var(durationOf(&o.stopTimeout), "stop-timeout", "how long calls may take to end when the server stops")
	o.sync.register(cmd)
}

func (i *invocation) serve(cmd *cobra.Command, o *serveOptions) error {
	if o.maxCalls < 1 || o.maxConnections < 1 {
		return misuse(cmd, "--max-calls and --max-connections are at least 1")
	}
	if (o.tls.Cert == "") != (o.tls.Key == "") || o.tls.ClientCA != "" && o.tls.Cert == "" {
		return misuse(cmd, "--tls-cert and --tls-key go together, and --client-ca with both")
	}
	ctx, logger := cmd.Context(), o.logFormat.logger(i.Stderr)
	config := serve.Config{
		AllowOrigins: o.origins, Listen: o.listen, Logger: logger, MaxCalls: o.maxCalls, MaxConnections: o.maxConnections,
		StopTimeout: o.stopTimeout.Std(),
	}
	if o.tls.Cert != "" {
		config.TLS = &o.tls
	}
	var err error
	if config.Auth, err = o.auth(logger); err != nil {
		return err
	}
	if config.Audit, err = i.openAudit(ctx, o.auditLog, logger); err != nil {
		return err
	}
	if i.settings.Metrics, err = sdkmetrics.Handler(); err != nil {
		return err
	}
	if config.API, err = i.serveAPI(ctx, logger); err != nil {
		return err
	}
	if config.Background, err = i.syncing(o.sync, config.API.Client, logger); err != nil {
		return err
	}
	watching, err := i.watching(o.watchdog, &config.API, logger)
	if err != nil {
		return err
	}
	var shown *page.Page
	config.Page = func(clients *api.Clients) http.Handler {
		shown = page.New(page.Config{
			API: clients, Declared: i.declaredJobs(o.sync), Logger: logger, Namespace: config.API.Client.Namespace(), TemporalUI: o.temporalUI,
			ReadOnly: auth.ReadOnly,
		})
		return shown
	}
	config.Background = append(append(config.Background, watching...),
		func(ctx context.Context, _ *api.Clients) error { return shown.Run(ctx) })
	server, err := serve.New(config)
	if err != nil {
		return err
	}
	i.note("starter: serving %s", server.URL())
	return server.Run(ctx)
}

// logFormat is the form of the server's log.
type logFormat string

const (
	logText logFormat = "text"
	logJSON logFormat = "json"
)

// logger writes in the form.
func (f logFormat) logger(w io.Writer) *slog.Logger {
	if f == logJSON {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}

// serveAPI is what the API works with. NATS may come later.
func (i *invocation) serveAPI(ctx context.Context, logger *slog.Logger) (api.Config, error) {
	config, err := i.apiConfig(ctx)
	if err != nil {
		return api.Config{}, err
	}
	config.Logger = logger
	config.Pipeline, err = i.connectPipeline(ctx)
	return config, err
}

// declaredJobs gives the jobs of the jobs file for the plan of the page; nil without a file.
func (i *invocation) declaredJobs(o syncOptions) func(context.Context) (*jobsv1.JobSet, error) {
	if o.file == "" {
		return nil
	}
	file := &fileSync{invocation: i, options: o}
	return func(context.Context) (*jobsv1.JobSet, error) { return file.read() }
}

// overviewConfig is what the overview reads. The platform is read if the environment names
// it.
func (i *invocation) overviewConfig(config api.Config, logger *slog.Logger) overview.Config {
	c := overview.Config{Client: config.Client, Pipeline: config.Pipeline, TemporalAddress: config.Address, Logger: logger}
	if settings, err := platform.ConfigFromEnv(i.Getenv); err == nil && settings.URL != "" {
		if c.Platform, err = platform.New(settings); err != nil {
			logger.Error("integrations are not shown", "error", err)
			c.Platform = nil
		}
		c.PlatformURL = settings.URL
	}
	return c
}

func (o *serveOptions) auth(logger *slog.Logger) (auth.Config, error) {
	config := auth.Config{Logger: logger}
	if o.oidc.Issuer != "" {
		config.OIDC = &o.oidc
	}
	if o.credentials == "" {
		return config, nil
	}
	var err error
	config.File, err = auth.OpenFile(o.credentials, logger)
	return config, err
}

// openAudit opens the audit log, which SIGHUP has opened anew.
func (i *invocation) openAudit(ctx context.Context, path string, logger *slog.Logger) (*audit.Log, error) {
	if path == "-" {
		return audit.New(i.Stdout, logger), nil
	}
	log, err := audit.Open(path, logger)
	if err != nil {
		return nil, err
	}
	i.closers = append(i.closers, func() { _ = log.Close() }) // Each line is on the disk already.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	context.AfterFunc(ctx, func() {
		signal.Stop(hangups)
		close(hangups)
	})
	go func() {
		for range hangups {
			if err := log.Reopen(); err != nil {
				logger.Error("the audit log stays as it is", "error", err)
			} else {
				logger.Info("the audit log was opened anew")
			}
		}
	}()
	return log, nil
}

// defaultStopTimeout is that of package serve.
const defaultStopTimeout = job.Duration(10 * time.Second)
