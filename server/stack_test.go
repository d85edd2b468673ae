package server_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server"
	"github.com/dendrascience/dendra-jobs/server/audit"
	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/verbs"
)

var quiet = slog.New(slog.DiscardHandler)

// world is a Temporal with a worker, which all tests of TestStack share.
type world struct {
	client *client.Client
}

// TestStack works with servers on a real Temporal and worker.
func TestStack(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	for name, test := range map[string]func(*testing.T, *world){
		"roles": roles, "credentials that change": changingCredentials, "protocols of errors": protocolsOfErrors, "calls in process": inProcess,
		"OIDC": overOIDC, "mutual TLS": mutualTLS, "login": login, "other origins": otherOrigins, "loopback": loopback,
		"limits": limits, "slow requests": slowRequests, "stop": stop, "probes": probes, "aliveness": aliveness, "audit": auditLog, "many streams": manyStreams,
		"background": backgroundWork, "large calls": largeCallsInTurn,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, w) })
	}
}

// stepSpec is the spec of the test's job type.
type stepSpec struct {
	// Gate is a file that a run waits for.
	Gate     string        `json:"gate,omitempty" help:"a file to wait for"`
	Password string        `json:"password,omitempty" help:"what nobody should write into a spec"`
	Token    job.SecretRef `json:"token,omitempty" help:"a secret"`
}

func takeSteps(ctx context.Context, run job.Run, spec stepSpec) (job.Result, error) {
	if err := workertest.Pass(ctx, run, spec.Gate); err != nil {
		return job.Result{}, err
	}
	return job.Result{Message: "all steps taken"}, nil
}

func types() []job.Type {
	return []job.Type{job.NewType("TakeSteps", "servetest", "Takes steps.", takeSteps)}
}

func startWorld(t *testing.T) *world {
	t.Helper()
	st := stacktest.StartNamespace(t)
	w := &world{client: client.New(st.Dial(t), st.Namespace)}
	workertest.Start(t, st, types()...)
	return w
}

// auditText is an audit log in memory.
type auditText struct{ stacktest.Output }

// records are the lines with an outcome. Each call that was carried out began with another
// line, which says the same.
func (l *auditText) records(t *testing.T) []audit.Record {
	t.Helper()
	var all []audit.Record
	begun := map[string]audit.Record{}
	for line := range strings.Lines(l.String()) {
		var record audit.Record
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		if record.Code == "started" {
			begun[record.Call] = record
			continue
		}
		if record.Call != "" {
			first := begun[record.Call]
			require.Equal(t, []string{record.Caller, record.Procedure, record.Resource}, []string{first.Caller, first.Procedure, first.Resource})
			require.Empty(t, first.Before)
		}
		record.Call = ""
		all = append(all, record)
	}
	return all
}

// site is a server under test.
type site struct {
	*server.Server
	url   string
	audit *auditText
	log   *audit.Log // writes to it
	stop  func() error

	credentials string // the file
	tokens      map[string]string
}

// holders are the tokens of a site by the name of their holder.
var holders = map[string]verbs.Role{"vera": verbs.RoleViewer, "otto": verbs.RoleOperator, "ada": verbs.RoleAdmin}

// open starts a server without authentication.
func (w *world) open(t *testing.T, change func(*server.Config)) *site {
	t.Helper()
	text := &auditText{}
	s := &site{audit: text, log: audit.New(text, quiet)}
	config := server.Config{
		API: api.Config{Client: w.client, Types: types(), Logger: quiet}, Audit: s.log, Listen: "127.0.0.1:0", Logger: quiet,
	}
	if change != nil {
		change(&config)
	}
	var err error
	s.Server, err = server.New(config)
	require.NoError(t, err)
	s.url = s.URL()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	s.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { require.NoError(t, s.stop()) })
	return s
}

// guarded starts a server with tokens.
func (w *world) guarded(t *testing.T, change func(*server.Config)) *site {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credentials.toml")
	tokens := map[string]string{}
	for name := range holders {
		tokens[name] = auth.NewToken()
	}
	s := &site{credentials: path, tokens: tokens}
	s.write(t, s.lines()...)
	file, err := auth.OpenFile(path, quiet)
	require.NoError(t, err)
	opened := w.open(t, func(config *server.Config) {
		config.Auth.File = file
		if change != nil {
			change(config)
		}
	})
	opened.credentials, opened.tokens = path, tokens
	return opened
}

// lines are those of the tokens of all holders.
func (s *site) lines() []string {
	var lines []string
	for name, role := range holders {
		lines = append(lines, auth.Line(name, role, auth.Hash(s.tokens[name]), time.Time{}))
	}
	return lines
}

// write replaces the file of credentials.
func (s *site) write(t *testing.T, lines ...string) {
	t.Helper()
	next := s.credentials + ".next"
	require.NoError(t, os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	require.NoError(t, os.Rename(next, s.credentials))
}

// bearer adds a token to requests.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// as gives clients with the token of a holder, none for "".
func (s *site) as(name string, options ...connecthttp.Option) *api.Clients {
	return s.with(s.tokens[name], options...)
}

func (s *site) with(token string, options ...connecthttp.Option) *api.Clients {
	return api.NewClients(connecthttp.NewTransport(&http.Client{Transport: bearer{token, http.DefaultTransport}}, s.url, options...))
}

// http2 is a transport of HTTP/2 without TLS.
func http2() *http.Transport {
	p := &http.Protocols{}
	p.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: p}
}

// call posts JSON to a method as a holder, and gives the status and the answer.
func (s *site) call(t *testing.T, name, method, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+method, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	if name != "" {
		request.Header.Set("Authorization", "Bearer "+s.tokens[name])
	}
	response := s.do(t, http.DefaultClient, request)
	return response.status, response.body
}

type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request, and follows no redirect.
func (s *site) do(t *testing.T, c *http.Client, request *http.Request) answer {
	t.Helper()
	plain := *c
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := plain.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{response.StatusCode, response.Header, string(text)}
}

func (s *site) request(t *testing.T, method, path string, form url.Values, headers ...string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return request
}

// oneShot is a job that runs at once.
func oneShot(t *testing.T, id string, spec map[string]any) *jobsv1.Job {
	t.Helper()
	encoded, err := structpb.NewStruct(spec)
	require.NoError(t, err)
	return &jobsv1.Job{Id: id, Spec: encoded, Mode: &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}}
}

// daily is a job that starts nothing during a test.
func daily(t *testing.T, id string, spec map[string]any) *jobsv1.Job {
	t.Helper()
	j := oneShot(t, id, spec)
	j.Mode = &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{Cron: "0 6 1 1 *"}}
	return j
}

// waiting starts a run that waits until the gate is there, and gives its name.
func (s *site) waiting(t *testing.T, clients *api.Clients, id string) (name, gate string) {
	t.Helper()
	gate = workertest.NewGate(t)
	_, err := clients.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: oneShot(t, id, map[string]any{"gate": gate})})
	require.NoError(t, err)
	stacktest.WaitFor(t, "the run to be listed", func() (bool, error) {
		found, err := clients.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: id})
		if err != nil || len(found.GetJob().GetState().GetRunNames()) == 0 {
			return false, err
		}
		name = found.GetJob().GetState().GetRunNames()[0]
		return true, nil
	})
	t.Cleanup(func() { _ = os.WriteFile(gate, nil, 0o600) })
	return name, gate
}

// requireError requires an error of the API with a code and a reason.
func requireError(t *testing.T, err error, code connect.Code, reason jobsv1.ErrorReason) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, connect.CodeOf(err), "%v", err)
	got, _ := api.InfoOf(err)
	require.Equal(t, reason, got, "%v", err)
}

// Short names of the reasons.
const (
	unauthenticated = jobsv1.ErrorReason_ERROR_REASON_UNAUTHENTICATED
	denied          = jobsv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED
	backendDown     = jobsv1.ErrorReason_ERROR_REASON_BACKEND_UNAVAILABLE
	tooManyCalls    = jobsv1.ErrorReason_ERROR_REASON_TOO_MANY_CALLS
	tooLarge        = jobsv1.ErrorReason_ERROR_REASON_TOO_LARGE
)
