package cli

import (
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/server"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	server.Options
	tls       server.TLS
	stop      job.Duration
	syncEvery job.Duration
	logFormat logFormat
}

func (i *invocation) serveCommand() *cobra.Command {
	o := &serveFlags{stop: defaultStopTimeout, syncEvery: defaultSync}
	o.Listen, o.AuditLog = "127.0.0.1:8080", "-"
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the Job API and the status page, and reconcile",
		Long: `serve is the HTTP server of the Job API and the status page. With --file it also
keeps Temporal in line with a jobs file. Any number of replicas may run: Temporal
holds all state. A watchdog in it tells about alerts, once among all replicas.

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

func (o *serveFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(textValue{&o.Listen, "HOST:PORT"}, "listen", "address to serve on")
	flags.Var(textValue{&o.Credentials, argumentFile}, "credentials", "file of tokens and client certificates with their roles; read again when it changes")
	flags.Var(textValue{&o.OIDC.Issuer, "URL"}, "oidc-issuer", "take tokens of this OIDC issuer")
	flags.Var(textValue{&o.OIDC.Audience, "NAME"}, "oidc-audience", "what its tokens must be made for")
	o.OIDC.RoleClaim = "role"
	flags.Var(textValue{&o.OIDC.RoleClaim, "NAME"}, "oidc-role-claim", "claim of its tokens that has viewer, operator or admin")
	flags.Var(textValue{&o.tls.Cert, argumentFile}, "tls-cert", "certificate in PEM; read again when it changes")
	flags.Var(textValue{&o.tls.Key, argumentFile}, "tls-key", "its key")
	flags.Var(textValue{&o.tls.ClientCA, argumentFile}, "client-ca", "authorities of client certificates, in PEM")
	flags.Var(textValue{&o.TemporalUI, "URL"}, "temporal-ui", "address of Temporal's Web UI, which the page links to")
	flags.StringSliceVar(&o.AllowOrigins, "allow-origin", nil, "`ORIGIN` of a web page that may call the API, such as https://dashboard.example.org; several, or separated by commas")
	flags.Var(textValue{&o.AuditLog, argumentFile}, "audit-log", "file of the audit log, - for standard output")
	flags.Var(textValue{&o.Watchdog, argumentFile}, "watchdog", "file of limits and receivers of alerts, such as watchdog.toml; by default they go to the log")
	flags.IntVar(&o.MaxCalls, "max-calls", 2000, "calls that one caller may have under way")
	flags.IntVar(&o.MaxConnections, "max-connections", 4096, "connections of all callers, of which an address may have a quarter")
	o.logFormat = logText
	flags.Var(choose(&o.logFormat, logText, logJSON), "log-format", "text or json")
	flags.Var(durationOf(&o.stop), "stop-timeout", "how long calls may take to end when the server stops")
	flags.VarP(textValue{&o.File, argumentFile}, "file", "f", "keep Temporal in line with this jobs file, as apply does")
	flags.BoolVar(&o.Prune, "prune", false, "delete the jobs that came from a jobs file and are no longer in --file")
	flags.Var(durationOf(&o.syncEvery), "sync-every", "how often Temporal is compared with --file, if the file does not change")
}

func (i *invocation) serve(cmd *cobra.Command, o *serveFlags) error {
	if o.MaxCalls < 1 || o.MaxConnections < 1 {
		return misuse(cmd, "--max-calls and --max-connections are at least 1")
	}
	if (o.tls.Cert == "") != (o.tls.Key == "") || o.tls.ClientCA != "" && o.tls.Cert == "" {
		return misuse(cmd, "--tls-cert and --tls-key go together, and --client-ca with both")
	}
	o.StopTimeout, o.SyncEvery = o.stop.Std(), o.syncEvery.Std()
	if o.tls.Cert != "" {
		o.TLS = &o.tls
	}
	backend := i.backend()
	backend.Logger = o.logFormat.logger(i.Stderr)
	o.Stdout = i.Stdout
	opened, err := backend.Open(cmd.Context(), o.Options)
	if err != nil {
		return err
	}
	i.note("starter: serving %s", opened.URL())
	return opened.Run(cmd.Context())
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

// defaultSync is how often everything is compared.
const defaultSync = job.Duration(5 * time.Minute)

// defaultStopTimeout is that of package server.
const defaultStopTimeout = job.Duration(10 * time.Second)
