package api

import (
	"context"
	"log/slog"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"
	"connectrpc.com/validate"

	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/changes"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// Config says what a server works with.
type Config struct {
	// Client is that of Temporal.
	Client *client.Client
	// Connect connects the client. It is called before each call that asks Temporal, and its
	// error is that of the call. Defaults to a client that is connected.
	Connect func(context.Context) error
	// Pipeline is that of NATS, which loads, the quarantine, bookmarks and logs of runs need.
	// Without it they are unavailable.
	Pipeline *pipeline.Client
	// Store gives the S3 store, which archives and uploads need. Without it they are
	// unavailable.
	Store func() (*objects.Store, error)
	// Places says where uploads are. Defaults to the defaults of DENDRA_PLACES.
	Places func() (places.Places, error)
	// Platform is that of the Platform API, which integrations and teardowns need. Without it
	// they are unavailable.
	Platform *platform.Client
	// Overview reads for the overview. Its Run has to be running. If it is nil, the server
	// makes one when it is asked for the overview first: see Server.Close.
	Overview *readmodel.Reader
	// Reads is what that one reads, besides Pipeline.
	Reads readmodel.Config
	// Address is that of Temporal, for the texts of errors. Without it they do not name one.
	Address string
	// Types are the job types that are known besides those that workers announce.
	Types []job.Type
	// Logger gets what errors do not tell callers. Defaults to slog.Default().
	Logger *slog.Logger
	// Interceptors see every call before it is read, and the errors that callers see. The
	// first is the outermost.
	Interceptors []connect.ServerInterceptor
	// Timeout bounds a call that is no stream. Defaults to two minutes.
	Timeout time.Duration
}

// Server serves the Job API.
type Server struct {
	Config
	connect *connect.Server
	syncer  *schedules.Syncer
	types   *types
	lists   *jobLists
	watches *watches
	reader  ownReader
	bucket  *alerts.Bucket  // nil without NATS
	changes *changes.Keeper // nil without NATS
	audits  chan struct{}   // has one for each audit of an archive that is under way
}

// New makes a server.
func New(config Config) *Server {
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.Timeout == 0 {
		config.Timeout = 2 * time.Minute
	}
	if config.Places == nil {
		config.Places = func() (places.Places, error) { return places.FromEnv(func(string) string { return "" }) }
	}
	s := &Server{Config: config, syncer: schedules.New(config.Client), types: newTypes(config), lists: &jobLists{}, watches: newWatches(config.Client), audits: make(chan struct{}, MaxAudits)}
	if config.Pipeline != nil {
		s.bucket, s.changes = alerts.NewBucket(config.Pipeline), changes.NewKeeper(config.Pipeline, config.Logger)
	}
	interceptors := append([]connect.ServerInterceptor{traced(config.Logger), observe}, config.Interceptors...)
	interceptors = append(interceptors, s.limitTime, s.explainErrors, validate.NewServerInterceptor(validate.WithValidator(validator{})), s.connected, s.keepChanges)
	s.connect = connect.NewServer(interceptors...)
	s.connect.SetUnknownHandler(unknownMethod)
	jobsv1connect.RegisterAlertServiceHandler(s.connect, &alertService{s})
	jobsv1connect.RegisterArchiveServiceHandler(s.connect, &archiveService{s})
	jobsv1connect.RegisterBookmarkServiceHandler(s.connect, &bookmarkService{s})
	jobsv1connect.RegisterChangeServiceHandler(s.connect, &changeService{s})
	jobsv1connect.RegisterDeploymentServiceHandler(s.connect, &deploymentService{s})
	jobsv1connect.RegisterIntegrationServiceHandler(s.connect, &integrationService{s})
	jobsv1connect.RegisterJobServiceHandler(s.connect, &jobService{s})
	jobsv1connect.RegisterJobSetServiceHandler(s.connect, &jobSetService{s})
	jobsv1connect.RegisterLoadServiceHandler(s.connect, &loadService{s})
	jobsv1connect.RegisterOverviewServiceHandler(s.connect, &overviewService{s})
	jobsv1connect.RegisterQuarantineServiceHandler(s.connect, &quarantineService{s})
	jobsv1connect.RegisterQueueServiceHandler(s.connect, &queueService{s})
	jobsv1connect.RegisterReverseSyncServiceHandler(s.connect, &reverseSyncService{s})
	jobsv1connect.RegisterRunServiceHandler(s.connect, &runService{s})
	jobsv1connect.RegisterTeardownServiceHandler(s.connect, &teardownService{s})
	jobsv1connect.RegisterUploadServiceHandler(s.connect, &uploadService{s})
	jobsv1connect.RegisterWorkerServiceHandler(s.connect, &workerService{s})
	return s
}

// Close ends what the server has begun on its own: the reader of the overview, and the keeper of
// changes.
func (s *Server) Close() {
	s.reader.close()
	if s.changes != nil {
		s.changes.Close()
	}
}

// Clients are clients of all services of the Job API.
type Clients struct {
	Alerts       jobsv1connect.AlertServiceClient
	Archive      jobsv1connect.ArchiveServiceClient
	Bookmarks    jobsv1connect.BookmarkServiceClient
	Changes      jobsv1connect.ChangeServiceClient
	Deployments  jobsv1connect.DeploymentServiceClient
	Integrations jobsv1connect.IntegrationServiceClient
	JobSets      jobsv1connect.JobSetServiceClient
	Jobs         jobsv1connect.JobServiceClient
	Loads        jobsv1connect.LoadServiceClient
	Overview     jobsv1connect.OverviewServiceClient
	Quarantine   jobsv1connect.QuarantineServiceClient
	Queues       jobsv1connect.QueueServiceClient
	ReverseSync  jobsv1connect.ReverseSyncServiceClient
	Runs         jobsv1connect.RunServiceClient
	Teardowns    jobsv1connect.TeardownServiceClient
	Uploads      jobsv1connect.UploadServiceClient
	Workers      jobsv1connect.WorkerServiceClient
	// Calls makes calls of any procedure, for those who choose it from a table.
	Calls *connect.Client
}

// NewClients makes clients that call through a transport, such as that of
// connecthttp.NewTransport.
func NewClients(transport connect.Transport, interceptors ...connect.ClientInterceptor) *Clients {
	c := connect.NewClient(transport, interceptors...)
	return &Clients{
		Alerts:       jobsv1connect.NewAlertServiceClient(c),
		Archive:      jobsv1connect.NewArchiveServiceClient(c),
		Bookmarks:    jobsv1connect.NewBookmarkServiceClient(c),
		Changes:      jobsv1connect.NewChangeServiceClient(c),
		Deployments:  jobsv1connect.NewDeploymentServiceClient(c),
		Integrations: jobsv1connect.NewIntegrationServiceClient(c),
		JobSets:      jobsv1connect.NewJobSetServiceClient(c),
		Jobs:         jobsv1connect.NewJobServiceClient(c),
		Loads:        jobsv1connect.NewLoadServiceClient(c),
		Overview:     jobsv1connect.NewOverviewServiceClient(c),
		Quarantine:   jobsv1connect.NewQuarantineServiceClient(c),
		Queues:       jobsv1connect.NewQueueServiceClient(c),
		ReverseSync:  jobsv1connect.NewReverseSyncServiceClient(c),
		Runs:         jobsv1connect.NewRunServiceClient(c),
		Teardowns:    jobsv1connect.NewTeardownServiceClient(c),
		Uploads:      jobsv1connect.NewUploadServiceClient(c),
		Workers:      jobsv1connect.NewWorkerServiceClient(c),
		Calls:        c,
	}
}

// InProcess gives clients that call the server without a network.
func (s *Server) InProcess(interceptors ...connect.ClientInterceptor) *Clients {
	return NewClients(connectinprocess.New(s.connect), interceptors...)
}

// NewInProcess makes a server and gives clients that call it without a network.
func NewInProcess(config Config) *Clients { return New(config).InProcess() }

type callerKey struct{}

// WithCaller says in a context who makes the calls, for the reasons that histories keep.
func WithCaller(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, callerKey{}, name)
}

// callerOf is who makes a call.
func callerOf(ctx context.Context) string {
	if name, ok := ctx.Value(callerKey{}).(string); ok && name != "" {
		return name
	}
	return "a client of the Job API"
}

// reasonOr is the reason that a request gives, or says who made it.
func reasonOr(ctx context.Context, reason string) string {
	if reason == "" {
		return "requested by " + callerOf(ctx)
	}
	return reason
}
