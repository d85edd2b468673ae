package server_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/server"
	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// specOf is the spec of a method of the contract.
func specOf(method protoreflect.MethodDescriptor) connect.Spec {
	spec := connect.Spec{Schema: method, Procedure: fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())}
	options, _ := method.Options().(*descriptorpb.MethodOptions)
	if options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS {
		spec.IdempotencyLevel = connect.IdempotencyNoSideEffects
	}
	return spec
}

// roles holds every role against every method. Requests are empty, so that those that are
// let in are refused as not valid, or read only.
func roles(t *testing.T, w *world) {
	s := w.guarded(t, nil)
	s.tokens["stranger"] = auth.NewToken()
	calls := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("dendra.jobs.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			if status, _ := s.call(t, "ada", specOf(methods.Get(0)).Procedure, "{}"); status == http.StatusNotFound {
				t.Logf("%s is not served here", file.Services().Get(i).FullName())
				continue
			}
			for m := range methods.Len() {
				if methods.Get(m).IsStreamingServer() {
					continue // Their errors come in a body: see protocolsOfErrors.
				}
				spec := specOf(methods.Get(m))
				for _, name := range []string{"", "stranger", "vera", "otto", "ada"} {
					status, text := s.call(t, name, spec.Procedure, "{}")
					calls++
					switch role, known := holders[name]; {
					case !known:
						require.Equal(t, http.StatusUnauthorized, status, "%s as %q: %s", spec.Procedure, name, text)
						require.Contains(t, text, `"reason":"UNAUTHENTICATED"`)
					case role < auth.Least(spec):
						require.Equal(t, http.StatusForbidden, status, "%s as %q: %s", spec.Procedure, name, text)
						require.Contains(t, text, `"reason":"PERMISSION_DENIED"`)
						require.Contains(t, text, "needs the role "+auth.Least(spec).String())
					default:
						require.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, status, "%s as %q: %s", spec.Procedure, name, text)
					}
				}
			}
		}
		return true
	})
	require.Greater(t, calls, 5*45)
	// A definition in a request that needs none is an admin's: it may name a secret, and a host.
	const stolen = "take_steps.stolen"
	definition := `{"job":{"id":"` + stolen + `","oneShot":{},"spec":{"token":"secret://other-org"}}}`
	for _, name := range []string{"vera", "otto"} {
		for _, body := range []string{definition, `{"job":{}}`} {
			status, text := s.call(t, name, jobsv1connect.JobServiceRunJobProcedure, body)
			require.Equal(t, http.StatusForbidden, status, "%s: %s", name, text)
			require.Contains(t, text, "needs the role")
		}
	}
	line := s.audit.records(t)
	require.Equal(t, "job", line[len(line)-1].Resource)
	require.Equal(t, "permission_denied", line[len(line)-1].Code)
	status, text := s.call(t, "ada", jobsv1connect.JobServiceGetJobProcedure, `{"id":"`+stolen+`"}`)
	require.Equal(t, http.StatusNotFound, status, text)
	status, text = s.call(t, "otto", jobsv1connect.JobServiceRunJobProcedure, `{"id":"`+stolen+`"}`)
	require.Equal(t, http.StatusNotFound, status, text)
	status, text = s.call(t, "ada", jobsv1connect.JobServiceRunJobProcedure, definition)
	require.Equal(t, http.StatusOK, status, text)
	// A method that there is not, health, and reflection.
	status, text = s.call(t, "vera", "/dendra.jobs.v1.JobService/NoSuchMethod", "{}")
	require.Equal(t, http.StatusNotImplemented, status, text)
	status, text = s.call(t, "", "/grpc.health.v1.Health/Check", "{}")
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, "SERVING")
	status, _ = s.call(t, "", "/grpc.health.v1.Health/Watch", "{}")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = s.call(t, "", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "")
	require.Equal(t, http.StatusUnauthorized, status)
}

// protocolsOfErrors refuses in the protocol of the caller, streams too.
func protocolsOfErrors(t *testing.T, w *world) {
	s := w.guarded(t, nil)
	h2 := func(token string, options ...connecthttp.Option) *api.Clients {
		return api.NewClients(connecthttp.NewTransport(&http.Client{Transport: bearer{token, http2()}}, s.url, options...))
	}
	for name, clients := range map[string]func(token string) *api.Clients{
		"protobuf": func(token string) *api.Clients { return s.with(token) },
		"json":     func(token string) *api.Clients { return s.with(token, connecthttp.WithProtoJSON()) },
		"get":      func(token string) *api.Clients { return s.with(token, connecthttp.WithHTTPGet()) },
		"grpc":     func(token string) *api.Clients { return h2(token, connecthttp.WithGRPC()) },
		"grpc web": func(token string) *api.Clients { return s.with(token, connecthttp.WithGRPCWeb()) },
	} {
		_, err := clients("").Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{})
		requireError(t, err, connect.CodeUnauthenticated, unauthenticated)
		_, err = clients(s.tokens["vera"]).Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: "take_steps.x"})
		requireError(t, err, connect.CodePermissionDenied, denied)
		for token, code := range map[string]connect.Code{"": connect.CodeUnauthenticated, s.tokens["otto"]: connect.CodePermissionDenied} {
			stream, err := clients(token).JobSets.ApplyJobSet(t.Context(), &jobsv1.ApplyJobSetRequest{JobSet: &jobsv1.JobSet{}})
			if err == nil {
				_, err = stream.Receive()
				_ = stream.Close()
			}
			require.Equal(t, code, connect.CodeOf(err), "%s: %v", name, err)
			reason, _ := api.InfoOf(err)
			require.Contains(t, []jobsv1.ErrorReason{unauthenticated, denied}, reason)
		}
		_, err = clients(s.tokens["vera"]).Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{})
		require.NoError(t, err, name)
	}
}

// changingCredentials has the file take effect on the next call, and on streams.
func changingCredentials(t *testing.T, w *world) {
	s := w.guarded(t, nil)
	list := func(name string) error {
		_, err := s.as(name).Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{PageSize: 1})
		return err
	}
	pause := func(name string) error {
		_, err := s.as(name).Queues.SetQueueFailurePolicy(t.Context(), &jobsv1.SetQueueFailurePolicyRequest{Queue: "changing", OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_HALT})
		return err
	}
	require.NoError(t, list("vera"))
	requireError(t, pause("vera"), connect.CodePermissionDenied, denied)
	s.write(t, append(s.lines(), auth.Line("extra", verbs.RoleAdmin, auth.Hash(auth.NewToken()), time.Time{}))...)
	require.NoError(t, list("vera"))

	vera := func(role verbs.Role, expires time.Time) []string {
		return []string{
			auth.Line("vera", role, auth.Hash(s.tokens["vera"]), expires), auth.Line("ada", verbs.RoleAdmin, auth.Hash(s.tokens["ada"]), time.Time{}),
		}
	}
	s.write(t, vera(verbs.RoleOperator, time.Time{})...)
	require.NoError(t, pause("vera"), "her role has changed")
	requireError(t, list("otto"), connect.CodeUnauthenticated, unauthenticated) // He was removed.

	// A stream ends when its token does.
	run, _ := s.waiting(t, s.as("ada"), "take_steps.changing")
	stream, err := s.as("vera").Runs.WatchRun(t.Context(), &jobsv1.WatchRunRequest{Name: run})
	require.NoError(t, err)
	_, err = stream.Receive()
	require.NoError(t, err)
	s.write(t, vera(verbs.RoleOperator, time.Now().Add(-time.Second))...)
	requireError(t, list("vera"), connect.CodeUnauthenticated, unauthenticated)
	for err == nil {
		_, err = stream.Receive()
	}
	requireError(t, err, connect.CodeUnauthenticated, unauthenticated)
	require.NoError(t, stream.Close())

	s.write(t, "this is no TOML")
	require.NoError(t, list("ada"), "what was read last stays in force")
	requireError(t, list("vera"), connect.CodeUnauthenticated, unauthenticated)
}

// inProcess holds calls of the page against the same table.
func inProcess(t *testing.T, w *world) {
	s := w.guarded(t, nil)
	_, err := s.Clients().Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{})
	requireError(t, err, connect.CodeUnauthenticated, unauthenticated)
	as := func(role verbs.Role) context.Context {
		return auth.WithCaller(t.Context(), auth.Caller{Name: "page of vera", Role: role, Address: "192.0.2.7"})
	}
	_, err = s.Clients().Jobs.ListJobs(as(verbs.RoleViewer), &jobsv1.ListJobsRequest{})
	require.NoError(t, err)
	set := &jobsv1.SetQueueFailurePolicyRequest{Queue: "page", OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_HALT}
	_, err = s.Clients().Queues.SetQueueFailurePolicy(as(verbs.RoleViewer), set)
	requireError(t, err, connect.CodePermissionDenied, denied)
	_, err = s.Clients().Queues.SetQueueFailurePolicy(as(verbs.RoleOperator), set)
	require.NoError(t, err)
	records := s.audit.records(t)
	require.Len(t, records, 2)
	require.Equal(t, []string{"permission_denied", "ok"}, []string{records[0].Code, records[1].Code})
	require.Equal(t, "192.0.2.7", records[1].Address)
}

// overOIDC lets in by tokens of an issuer, beside those of the file.
func overOIDC(t *testing.T, w *world) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			_ = json.NewEncoder(rw).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "one", Algorithm: "RS256", Use: "sig"}}})
			return
		}
		_ = json.NewEncoder(rw).Encode(map[string]any{"issuer": issuer.URL, "jwks_uri": issuer.URL + "/keys"})
	}))
	t.Cleanup(issuer.Close)
	token := func(role string, expires time.Duration) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "one"))
		require.NoError(t, err)
		text, err := jwt.Signed(signer).Claims(map[string]any{
			"iss": issuer.URL, "aud": []string{"dendra-jobs"}, "sub": "alice", "role": role, "exp": time.Now().Add(expires).Unix(),
		}).Serialize()
		require.NoError(t, err)
		return text
	}
	s := w.guarded(t, func(c *server.Config) { c.Auth.OIDC = &auth.OIDC{Issuer: issuer.URL, Audience: "dendra-jobs"} })
	list := func(token string) error {
		_, err := s.with(token).Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{PageSize: 1})
		return err
	}
	require.NoError(t, list(token("viewer", time.Hour)))
	require.NoError(t, list(s.tokens["vera"]))
	requireError(t, list(token("nothing", time.Hour)), connect.CodePermissionDenied, denied)
	requireError(t, list(token("viewer", -time.Hour)), connect.CodeUnauthenticated, unauthenticated)
	requireError(t, list(auth.NewToken()), connect.CodeUnauthenticated, unauthenticated)
	_, err = s.with(token("operator", time.Hour)).Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: "take_steps.no-such-job"})
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	record := s.audit.records(t)[0]
	require.Equal(t, []string{"alice", "oidc"}, []string{record.Caller, record.KnownBy})

	// A stream ends when its token expires.
	run, _ := s.waiting(t, s.as("ada"), "take_steps.oidc")
	stream, err := s.with(token("viewer", 3*time.Second)).Runs.WatchRun(t.Context(), &jobsv1.WatchRunRequest{Name: run})
	require.NoError(t, err)
	for err == nil {
		_, err = stream.Receive()
	}
	requireError(t, err, connect.CodeUnauthenticated, unauthenticated)
	require.NoError(t, stream.Close())
}

// login turns a token into a cookie for the page.
func login(t *testing.T, w *world) {
	s := w.guarded(t, func(c *server.Config) {
		c.Page = func(*api.Clients) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				caller, _ := auth.CallerOf(r.Context())
				_, _ = io.WriteString(rw, "page of "+caller.Name)
			})
		}
	})
	get := func(path string, headers ...string) answer {
		return s.do(t, http.DefaultClient, s.request(t, http.MethodGet, path, nil, headers...))
	}
	post := func(path string, form url.Values, headers ...string) answer {
		return s.do(t, http.DefaultClient, s.request(t, http.MethodPost, path, form, headers...))
	}
	sent := get("/jobs?q=a%26b", "Accept", "text/html")
	require.Equal(t, http.StatusSeeOther, sent.status)
	require.Equal(t, "/login?next=%2Fjobs%3Fq%3Da%2526b", sent.header.Get("Location"))
	require.Equal(t, http.StatusUnauthorized, get("/jobs").status, "a program is told")
	require.Equal(t, "Bearer", get("/jobs").header.Get("WWW-Authenticate"))
	form := get("/login?next=/jobs")
	require.Equal(t, http.StatusOK, form.status)
	require.Contains(t, form.body, `value="/jobs"`)
	require.Contains(t, form.header.Get("Content-Security-Policy"), "frame-ancestors 'none'")

	refused := post("/login", url.Values{"token": {auth.NewToken()}, "next": {"/jobs"}})
	require.Equal(t, http.StatusUnauthorized, refused.status)
	require.Contains(t, refused.body, "not valid")
	require.Empty(t, refused.header.Values("Set-Cookie"))

	in := post("/login", url.Values{"token": {" " + s.tokens["vera"] + "\n"}, "next": {"/jobs?q=1"}})
	require.Equal(t, http.StatusSeeOther, in.status, in.body)
	require.Equal(t, "/jobs?q=1", in.header.Get("Location"))
	cookie := in.header.Get("Set-Cookie")
	require.Contains(t, cookie, "; HttpOnly; SameSite=Strict")
	require.NotContains(t, cookie, "Secure")
	require.NotContains(t, cookie, s.tokens["vera"], "a session has a name of its own")
	proxied := post("/login", url.Values{"token": {s.tokens["vera"]}}, "X-Forwarded-Proto", "https")
	require.Contains(t, proxied.header.Get("Set-Cookie"), "; Secure")
	value, _, _ := strings.Cut(cookie, ";")
	require.Equal(t, "page of vera", get("/", "Cookie", value).body)
	require.Equal(t, http.StatusUnauthorized, get("/", "Cookie", auth.Cookie+"="+s.tokens["vera"]).status, "a token is no session")
	_, name, _ := strings.Cut(value, "=")
	require.Equal(t, http.StatusUnauthorized, get("/", "Authorization", "Bearer "+name).status, "a session is no token")
	for _, next := range []string{"https://evil.example.org/", "//evil.example.org", `/\evil.example.org`, "javascript:alert(1)", "/\t/evil.example.org"} {
		require.Equal(t, "/", post("/login", url.Values{"token": {s.tokens["vera"]}, "next": {next}}).header.Get("Location"), next)
	}
	require.Equal(t, http.StatusUnauthorized, post("/login", url.Values{"token": {strings.Repeat("x", 1<<20)}}).status)

	// Requests of other sites are refused, with the cookie too.
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example.org"}, {"Sec-Fetch-Site", "same-site"}} {
		require.Equal(t, http.StatusForbidden, post("/login", url.Values{"token": {s.tokens["vera"]}}, headers...).status)
		require.Equal(t, http.StatusForbidden, post("/logout", nil, append(headers, "Cookie", value)...).status)
		require.Equal(t, http.StatusForbidden, post("/dendra.jobs.v1.JobService/ListJobs", nil, append(headers, "Cookie", value)...).status)
	}
	own := s.request(t, http.MethodPost, "/dendra.jobs.v1.JobService/GetJob", nil, "Cookie", value, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/json")
	own.Body = io.NopCloser(strings.NewReader("{}"))
	own.ContentLength = 2
	require.Equal(t, http.StatusBadRequest, s.do(t, http.DefaultClient, own).status, "it is let in")

	out := post("/logout", nil, "Cookie", value)
	require.Contains(t, out.header.Get("Set-Cookie"), "Max-Age=0")
	require.Equal(t, "/login", out.header.Get("Location"))
	require.Equal(t, http.StatusUnauthorized, get("/", "Cookie", value).status, "the session has ended")

	// Log-ins that were refused are counted in the audit log.
	s.log.Flush()
	records := s.audit.records(t)
	require.Equal(t, "127.0.0.1", records[0].Address)
	require.Equal(t, map[string]int{"/login": 2}, records[0].Refused)
}

// loopback lets everybody in there, and nowhere else.
func loopback(t *testing.T, w *world) {
	s := w.open(t, nil)
	_, err := s.as("").Queues.SetQueueFailurePolicy(t.Context(), &jobsv1.SetQueueFailurePolicyRequest{Queue: "open", OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_HALT})
	require.NoError(t, err)
	record := s.audit.records(t)[0]
	require.Equal(t, []string{"local", "local"}, []string{record.Caller, record.KnownBy})
	for host, status := range map[string]int{
		"localhost:8090": 200, "127.0.0.1": 200, "[::1]:80": 200, "127.8.9.1": 200,
		"evil.example.org": 403, "evil.example.org:8090": 403, "192.0.2.1": 403, "localhost.evil.example.org": 403,
	} {
		request := s.request(t, http.MethodGet, "/", nil)
		request.Host = host
		require.Equal(t, status, s.do(t, http.DefaultClient, request).status, host)
	}
	for _, address := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		_, err := server.New(server.Config{API: api.Config{Client: w.client, Logger: quiet}, Listen: address, Audit: newAudit(), Logger: quiet})
		require.ErrorContains(t, err, "without authentication the server listens on loopback addresses only", address)
	}
	guarded := w.guarded(t, func(c *server.Config) { c.Listen = "0.0.0.0:0" })
	port := guarded.url[strings.LastIndexByte(guarded.url, ':'):]
	guarded.url = "http://127.0.0.1" + port
	status, _ := guarded.call(t, "vera", "/dendra.jobs.v1.JobService/ListJobs", "{}")
	require.Equal(t, http.StatusOK, status)
}

// backgroundWork is called as an admin, and ends with the server.
func backgroundWork(t *testing.T, w *world) {
	listed := make(chan error, 1)
	s := w.guarded(t, func(c *server.Config) {
		c.Background = append(c.Background, func(ctx context.Context, clients *api.Clients) error {
			_, err := clients.Queues.SetQueueFailurePolicy(ctx, &jobsv1.SetQueueFailurePolicyRequest{Queue: "background", OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_HALT})
			listed <- err
			<-ctx.Done()
			return ctx.Err()
		})
	})
	require.NoError(t, <-listed)
	require.Equal(t, "starter serve", s.audit.records(t)[0].Caller)
	require.NoError(t, s.stop())

	failing, err := server.New(server.Config{
		API: api.Config{Client: w.client, Logger: quiet}, Listen: "127.0.0.1:0", Audit: newAudit(), Logger: quiet,
		Background: []func(context.Context, *api.Clients) error{func(context.Context, *api.Clients) error { return errors.New("it broke") }},
	})
	require.NoError(t, err)
	require.ErrorContains(t, failing.Run(t.Context()), "it broke")
}
