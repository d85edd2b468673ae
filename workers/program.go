package workers

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/runlogs"
	"github.com/dendrascience/dendra-jobs/internal/tracing"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// Program is a worker binary.
type Program struct {
	// Worker is the worker type.
	Worker job.WorkerType
	// Types makes the job types with what they need. Called once, at start.
	Types func(Environment) ([]job.Type, error)
	// MaxConcurrentRuns as in Config.
	MaxConcurrentRuns int

	workflows func(workflows.Registry) // as in Config
}

// Environment is what a program makes its job types from.
type Environment struct {
	// Context ends when the process is asked to stop.
	Context context.Context //nolint:containedctx // The life of the process.
	// Getenv reads an environment variable.
	Getenv func(string) string
	Logger *slog.Logger
	// Defer has closer called once the worker has drained.
	Defer func(closer func())
	// Tag announces a tag besides those that people gave.
	Tag func(name, value string)
	// KeepLogs has the lines that handlers log kept by logs, besides the process's log.
	// Defaults to those in NATS, if the environment has the address in DENDRA_NATS_URL.
	KeepLogs func(logs RunLogs)
	// Alive has /livez fail as long as check gives an error: only a restart of the
	// process helps then.
	Alive func(check func() error)
	// Needs has /readyz name a server as long as ask gives an error.
	Needs func(server string, ask func(context.Context) error)
}

// Main runs the program until SIGTERM or SIGINT and exits: with 0 after a clean
// drain, with 1 after an error, with 2 when its flags are wrong.
func Main(p Program) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code) //nolint:forbidigo // The main of every worker binary.
}

func (p Program) run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet(string(p.Worker), flag.ContinueOnError)
	config := Config{
		workflows: p.workflows, Worker: p.Worker, Service: os.Getenv(variableService),
		Deployment: os.Getenv(variableDeployment), BuildID: os.Getenv(variableBuildID),
	}
	tags, err := ParseTags(os.Getenv(variableTags))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s: %s\n", p.Worker, variableTags, err)
		return 2
	}
	config.Tags = tags
	var logLevel slog.Level
	format := logFormat(cmp.Or(os.Getenv(variableLogFormat), string(logText)))
	if err := format.Set(string(format)); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s: %s\n", p.Worker, variableLogFormat, err)
		return 2
	}
	p.register(flags, &config, &logLevel, &format)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s: unexpected argument %q\n", p.Worker, flags.Arg(0))
		return 2
	}
	config.Logger = slog.New(format.handler(os.Stderr, logLevel))
	stopTraces, err := tracing.Start(ctx, "dendra-jobs-"+string(p.Worker))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", p.Worker, err)
		return 2
	}
	defer stopTraces()
	if err := p.host(ctx, config); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", p.Worker, err)
		return 1
	}
	return 0
}

// Flags are the flags of a worker, with their defaults: for its documents.
func Flags() *flag.FlagSet {
	flags, level, format := flag.NewFlagSet("worker", flag.ContinueOnError), slog.LevelInfo, logText
	Program{}.register(flags, &Config{}, &level, &format)
	return flags
}

// register declares the flags of a worker. Values that config has are their defaults.
func (p Program) register(flags *flag.FlagSet, config *Config, logLevel *slog.Level, format *logFormat) {
	flags.StringVar(&config.Temporal.Address, "address", "", "address of Temporal (default: as the Temporal CLI finds it, else 127.0.0.1:7233)")
	flags.StringVar(&config.Temporal.Namespace, "namespace", "", "Temporal namespace (default: as the Temporal CLI finds it, else default)")
	flags.StringVar(&config.Temporal.Profile, "profile", "", "profile of the Temporal CLI's configuration file")
	flags.StringVar(&config.HealthAddress, "health-address", "", "serve /livez, /readyz and /metrics on this host:port (default: not served)")
	flags.StringVar(&config.BuildID, "build-id", config.BuildID, "version of this program in its deployment (default: "+variableBuildID+", else its commit)")
	flags.StringVar(&config.Deployment, "deployment-name", config.Deployment, "name of the Worker Deployment, for Worker Versioning (default: "+variableDeployment+", else not versioned)")
	flags.BoolVar(&config.NoQueues, "no-queues", false, "leave the workflows of queues to workers of another deployment")
	flags.DurationVar(&config.DrainTimeout, "drain-timeout", 30*time.Second, "how long a stop may take")
	flags.IntVar(&config.MaxConcurrentRuns, "max-concurrent-runs", p.MaxConcurrentRuns, "handlers that may run at once (0: 50)")
	flags.StringVar(&config.Service, "service", config.Service, "name of this process, for jobs to be bound to (default: "+variableService+", else the name of its container in Docker, else the host's)")
	flags.Var(tagFlag{config.Tags}, "tag", "`NAME=VALUE` that jobs may be bound by; several, or separated by commas (default: "+variableTags+")")
	flags.DurationVar(&config.ServiceTimeout, "service-timeout", defaultServiceTimeout, "how long this process may be silent before it counts as dead")
	flags.TextVar(logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
	flags.Var(format, "log-format", "text or json (default: "+variableLogFormat+", else text)")
}

func (p Program) host(ctx context.Context, config Config) error {
	var closers []func()
	defer func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}()
	var checks []func() error
	config.Needs = map[string]func(context.Context) error{}
	types, err := p.Types(Environment{
		Context: ctx,
		Getenv:  os.Getenv,
		Logger:  config.Logger,
		Defer:   func(f func()) { closers = append(closers, f) },

		Tag:      func(name, value string) { config.Tags[name] = value },
		KeepLogs: func(logs RunLogs) { config.RunLogs = logs },
		Alive:    func(check func() error) { checks = append(checks, check) },
		Needs:    func(server string, ask func(context.Context) error) { config.Needs[server] = ask },
	})
	if ctx.Err() != nil {
		return nil // Stopped while it connected to what its types need.
	}
	if err != nil {
		return err
	}
	config.Types = types
	if config.RunLogs == nil && os.Getenv(pipeline.EnvURL) != "" {
		logs, closer, err := keepLogs(ctx, config.Logger)
		if err != nil {
			return err
		}
		closers = append(closers, closer)
		config.RunLogs = logs
	}
	config.Alive = func() error {
		for _, check := range checks {
			if err := check(); err != nil {
				return err
			}
		}
		return nil
	}
	return Run(ctx, config)
}

// keepLogs keeps the logs of runs in the NATS server that the environment names. The closer
// sends what is left.
func keepLogs(ctx context.Context, logger *slog.Logger) (logs RunLogs, closer func(), err error) {
	client, err := pipeline.Connect(ctx, pipeline.URLFromEnv(os.Getenv), pipeline.FromEnv(os.Getenv))
	if err != nil {
		return nil, nil, err
	}
	keeper := runlogs.Keep(context.WithoutCancel(ctx), client, logger)
	return keeper, func() { keeper.Close(); client.Close() }, nil
}
