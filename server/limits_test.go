package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/payloadcodec"
	"github.com/dendrascience/dendra-jobs/internal/payloadcodec/payloadcodectest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/server"
	"github.com/dendrascience/dendra-jobs/server/audit"
)

func newAudit() *audit.Log { return audit.New(io.Discard, quiet) }

// otherOrigins lets pages of allowed origins call from a browser, and no others.
func otherOrigins(t *testing.T, w *world) {
	const friend, stranger = "https://dashboard.example.org", "https://evil.example.org"
	s := w.guarded(t, func(c *server.Config) { c.AllowOrigins = []string{friend} })
	preflight := func(origin string) http.Header {
		return s.do(t, http.DefaultClient, s.request(t, http.MethodOptions, jobsv1connect.JobServicePauseJobProcedure, nil,
			"Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,connect-protocol-version,content-type")).header
	}
	allowed := preflight(friend)
	require.Equal(t, friend, allowed.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "authorization,connect-protocol-version,content-type", allowed.Get("Access-Control-Allow-Headers"))
	require.Equal(t, "7200", allowed.Get("Access-Control-Max-Age"))
	require.Empty(t, allowed.Get("Access-Control-Allow-Credentials"), "a cookie is for this server's own page")
	require.Empty(t, preflight(stranger).Get("Access-Control-Allow-Origin"))

	from := func(origin string) answer {
		request := s.request(t, http.MethodPost, jobsv1connect.JobServiceListJobsProcedure, nil,
			"Origin", origin, "Sec-Fetch-Site", "cross-site", "Content-Type", "application/json", "Authorization", "Bearer "+s.tokens["vera"])
		request.Body, request.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
		return s.do(t, http.DefaultClient, request)
	}
	called := from(friend)
	require.Equal(t, http.StatusOK, called.status, called.body)
	require.Equal(t, friend, called.header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, called.header.Get("Access-Control-Expose-Headers"), "Grpc-Status")
	require.Equal(t, http.StatusForbidden, from(stranger).status)

	// A GET of the API costs what a POST does, and a picture of another site sends one.
	get := func(path string, headers ...string) int {
		return s.do(t, http.DefaultClient, s.request(t, http.MethodGet, path, nil, append(headers, "Authorization", "Bearer "+s.tokens["vera"])...)).status
	}
	list := jobsv1connect.JobServiceListJobsProcedure + "?encoding=json&message=%7B%7D"
	for _, path := range []string{list, jobsv1connect.JobSetServicePlanJobSetProcedure + "?encoding=json&message=%7B%7D", "/grpc.health.v1.Health/Check?encoding=json&message=%7B%7D"} {
		require.Equal(t, http.StatusForbidden, get(path, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "image"), path)
		require.Equal(t, http.StatusForbidden, get(path, "Sec-Fetch-Site", "same-site"), path)
		require.Equal(t, http.StatusForbidden, get(path, "Sec-Fetch-Site", "cross-site", "Origin", stranger), path)
		require.Equal(t, http.StatusForbidden, get(path, "Origin", stranger), path)
	}
	require.Equal(t, http.StatusOK, get(list, "Sec-Fetch-Site", "cross-site", "Origin", friend))
	require.Equal(t, http.StatusOK, get(list, "Sec-Fetch-Site", "same-origin"))
	require.Equal(t, http.StatusOK, get(list, "Sec-Fetch-Site", "none"), "typed in")
	require.Equal(t, http.StatusOK, get(list), "no browser")
	require.Equal(t, http.StatusOK, get("/", "Sec-Fetch-Site", "cross-site"), "a link to the page")

	codec(t, w, friend, stranger)

	for _, origin := range []string{"dashboard.example.org", "https://a.example.org/", "*", "https://a.example.org/x", "https://*", "https://*.example.org"} {
		_, err := server.New(server.Config{API: api.Config{Client: w.client}, AllowOrigins: []string{origin}, Audit: newAudit()})
		require.ErrorContains(t, err, "is not of the form", origin)
	}
}

// codec decrypts payloads for viewers, and for the Web UI of an allowed origin.
func codec(t *testing.T, w *world, friend, stranger string) {
	t.Helper()
	keys, err := payloadcodec.Read(payloadcodectest.File(t, "one"))
	require.NoError(t, err)
	s := w.guarded(t, func(c *server.Config) { c.AllowOrigins, c.PayloadKeys = []string{friend}, keys })
	post := func(to *site, path, body string, headers ...string) answer {
		request := to.request(t, http.MethodPost, path, nil, append(headers, "Content-Type", "application/json", "X-Namespace", "default")...)
		request.Body, request.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		return to.do(t, http.DefaultClient, request)
	}
	asVera := []string{"Authorization", "Bearer " + s.tokens["vera"], "Origin", friend, "Sec-Fetch-Site", "cross-site"}
	const plain = `{"payloads":[{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"InNwZWMi"}]}`
	encrypted := post(s, "/encode", plain, asVera...)
	require.Equal(t, http.StatusOK, encrypted.status, encrypted.body)
	require.NotContains(t, encrypted.body, "InNwZWMi")
	decrypted := post(s, "/decode", encrypted.body, asVera...)
	require.Equal(t, http.StatusOK, decrypted.status, decrypted.body)
	require.JSONEq(t, plain, decrypted.body)
	require.Equal(t, friend, decrypted.header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "no-store", decrypted.header.Get("Cache-Control"))
	preflight := s.do(t, http.DefaultClient, s.request(t, http.MethodOptions, "/decode", nil,
		"Origin", friend, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,x-namespace"))
	require.Equal(t, "authorization,content-type,x-namespace", preflight.header.Get("Access-Control-Allow-Headers"))

	require.Equal(t, http.StatusForbidden, post(s, "/decode", encrypted.body, "Authorization", "Bearer "+s.tokens["vera"], "Origin", stranger).status)
	require.Equal(t, http.StatusUnauthorized, post(s, "/decode", encrypted.body, "Origin", friend).status)
	require.Equal(t, http.StatusBadRequest, post(s, "/decode", `{"payloads":[{"data":"`+strings.Repeat("A", 9<<20)+`"}]}`, asVera...).status)
	other, err := payloadcodec.Read(payloadcodectest.File(t, "two"))
	require.NoError(t, err)
	without := w.open(t, func(c *server.Config) { c.PayloadKeys = other })
	missing := post(without, "/decode", encrypted.body)
	require.Equal(t, http.StatusBadRequest, missing.status)
	require.Contains(t, missing.body, `"one" encrypted, and it is not in`)
	require.NotEqual(t, http.StatusOK, post(w.open(t, nil), "/decode", encrypted.body).status, "without keys there is none")
}

// limits bounds what one caller sends and has under way.
func limits(t *testing.T, w *world) {
	s := w.guarded(t, func(c *server.Config) { c.MaxCalls = 3 })
	for _, size := range []int{2 << 20, 70 << 20} {
		body := `{"id":"` + strings.Repeat("x", size) + `"}`
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+jobsv1connect.JobServiceGetJobProcedure, io.NopCloser(strings.NewReader(body)))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+s.tokens["vera"])
		response, err := http.DefaultClient.Do(request)
		if err != nil { // The server ends the connection before all was sent.
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			continue
		}
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusTooManyRequests, response.StatusCode, "%s", text)
		require.Contains(t, string(text), `"TOO_LARGE"`)
	}
	_, err := s.as("vera", connecthttp.WithGRPCWeb()).Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: strings.Repeat("x", 2<<20)})
	requireError(t, err, connect.CodeResourceExhausted, tooLarge)
	response, err := http.DefaultClient.Do(s.request(t, http.MethodGet, "/livez", nil, "X-Long", strings.Repeat("x", 80<<10)))
	if err == nil { // Else the server has ended the connection before all was sent.
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
		require.NoError(t, response.Body.Close())
	}

	// A caller with as many calls as allowed; others have their own.
	run, _ := s.waiting(t, s.as("ada"), "take_steps.limits")
	var streams []jobsv1connect.RunServiceWatchRunClientStream
	for range 3 {
		stream, err := s.as("vera").Runs.WatchRun(t.Context(), &jobsv1.WatchRunRequest{Name: run})
		require.NoError(t, err)
		_, err = stream.Receive()
		require.NoError(t, err)
		streams = append(streams, stream)
	}
	list := func(name string) error {
		_, err := s.as(name).Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{PageSize: 1})
		return err
	}
	requireError(t, list("vera"), connect.CodeResourceExhausted, tooManyCalls)
	require.NoError(t, list("otto"))
	for _, stream := range streams {
		require.NoError(t, stream.Close())
	}
	stacktest.WaitFor(t, "the calls of vera to end", func() (bool, error) { err := list("vera"); return err == nil, err })
}

// slowRequests ends connections whose header does not come.
func slowRequests(t *testing.T, w *world) {
	s := w.guarded(t, nil)
	u, err := url.Parse(s.url)
	require.NoError(t, err)
	var dialer net.Dialer
	c, err := dialer.DialContext(t.Context(), "tcp", u.Host)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
	require.NoError(t, err)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	_, err = io.ReadAll(c)
	require.NoError(t, err, "the server ends the connection")
	// One that comes byte by byte is no better, and others are served meanwhile.
	status, _ := s.call(t, "vera", jobsv1connect.JobServiceListJobsProcedure, "{}")
	require.Equal(t, http.StatusOK, status)
}

// stop ends streams at once, and lets other calls end.
func stop(t *testing.T, w *world) {
	began, proceed := make(chan struct{}), make(chan struct{})
	s := w.guarded(t, func(c *server.Config) {
		c.Page = func(*api.Clients) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/events" {
					rw.WriteHeader(http.StatusOK)
					_ = http.NewResponseController(rw).Flush()
					<-r.Context().Done()
					return
				}
				close(began)
				<-proceed
				_, _ = io.WriteString(rw, "all of it")
			})
		}
	})
	run, _ := s.waiting(t, s.as("ada"), "take_steps.stop")
	streams := map[string]jobsv1connect.RunServiceWatchRunClientStream{}
	for name, options := range map[string][]connecthttp.Option{"connect": nil, "grpc": {connecthttp.WithGRPC()}} {
		clients := api.NewClients(connecthttp.NewTransport(&http.Client{Transport: bearer{s.tokens["vera"], http2()}}, s.url, options...))
		stream, err := clients.Runs.WatchRun(t.Context(), &jobsv1.WatchRunRequest{Name: run})
		require.NoError(t, err)
		_, err = stream.Receive()
		require.NoError(t, err)
		streams[name] = stream
	}
	events := make(chan error, 1)
	opened := make(chan struct{})
	go func() {
		response, err := http.DefaultClient.Do(s.request(t, http.MethodGet, "/events", nil, "Authorization", "Bearer "+s.tokens["vera"]))
		if err == nil {
			close(opened)
			_, err = bufio.NewReader(response.Body).ReadString('\n')
			_ = response.Body.Close()
		}
		events <- err
	}()
	<-opened
	slow := make(chan string, 1)
	go func() {
		slow <- s.do(t, http.DefaultClient, s.request(t, http.MethodGet, "/slow", nil, "Authorization", "Bearer "+s.tokens["vera"])).body
	}()
	<-began
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	for name, stream := range streams {
		var err error
		for err == nil {
			_, err = stream.Receive()
		}
		t.Log(name)
		requireError(t, err, connect.CodeUnavailable, backendDown)
		require.NoError(t, stream.Close())
	}
	require.ErrorIs(t, <-events, io.EOF)
	select {
	case err := <-stopped:
		t.Fatalf("the server has ended before a call did: %v", err)
	default:
	}
	close(proceed)
	require.Equal(t, "all of it", <-slow)
	require.NoError(t, <-stopped)
	_, err := http.DefaultClient.Do(s.request(t, http.MethodGet, "/livez", nil))
	require.Error(t, err)

	// A call that does not end is cut off.
	late := make(chan struct{})
	defer close(late)
	begun := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	server, err := server.New(server.Config{
		API: api.Config{Client: w.client, Logger: quiet}, Listen: "127.0.0.1:0", Audit: newAudit(), Logger: quiet, StopTimeout: 50 * time.Millisecond,
		Page: func(*api.Clients) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(begun); <-late })
		},
	})
	require.NoError(t, err)
	go func() { stopped <- server.Run(ctx) }()
	cut := make(chan error, 1)
	go func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL(), nil)
		if err == nil {
			_, err = http.DefaultClient.Do(request) //nolint:bodyclose // There is none.
		}
		cut <- err
	}()
	<-begun
	cancel()
	require.ErrorContains(t, <-stopped, "were cut off")
	require.Error(t, <-cut)
}

// aliveness is what systemd is told: that the server answers, until it is told to stop.
func aliveness(t *testing.T, w *world) {
	require.True(t, w.guarded(t, nil).Alive())
	idle, err := server.New(server.Config{API: api.Config{Client: w.client, Logger: quiet}, Listen: "127.0.0.1:0", Audit: newAudit(), Logger: quiet})
	require.NoError(t, err)
	require.False(t, idle.Alive(), "it listens, and serves nobody")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, idle.Run(ctx))
	require.True(t, idle.Alive(), "it was told to stop")
}

// probes say whether the server is alive, and whether it should get calls.
func probes(t *testing.T, w *world) {
	s := w.guarded(t, nil)
	for _, path := range []string{"/livez", "/readyz"} {
		got := s.do(t, http.DefaultClient, s.request(t, http.MethodGet, path, nil))
		require.Equal(t, http.StatusOK, got.status)
		require.Equal(t, "ok\n", got.body)
	}
	require.Equal(t, http.StatusUnauthorized, s.do(t, http.DefaultClient, s.request(t, http.MethodGet, "/metrics", nil)).status)
	measured := s.do(t, http.DefaultClient, s.request(t, http.MethodGet, "/metrics", nil, "Authorization", "Bearer "+s.tokens["vera"]))
	require.Equal(t, http.StatusOK, measured.status)
	require.Contains(t, measured.body, "go_goroutines")
	broken := audit.New(brokenWriter{}, quiet)
	s = w.open(t, func(c *server.Config) { c.Audit = broken })
	pause := func() error {
		_, err := s.as("").Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: "take_steps.no-such-job"})
		return err
	}
	for range 2 { // The first one is not carried out either.
		requireError(t, pause(), connect.CodeUnavailable, backendDown)
	}
	got := s.do(t, http.DefaultClient, s.request(t, http.MethodGet, "/readyz", nil))
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	_, err := s.as("").Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{PageSize: 1})
	require.NoError(t, err, "what only reads goes on")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// manyStreams has a thousand streams open at once, each with a token, and a call beside them.
func manyStreams(t *testing.T, w *world) {
	s := w.guarded(t, nil)
	run, gate := s.waiting(t, s.as("ada"), "take_steps.streams")
	// A connection carries up to 250 streams. A client of Go opens another one for each call that
	// finds no room, and an address may have no more than a quarter of all connections.
	const count, perConnection = 1000, 200
	names := []string{"vera", "otto", "ada"}
	connections := make([]map[string]*api.Clients, count/perConnection)
	for i := range connections {
		transport := http2()
		connections[i] = map[string]*api.Clients{}
		for _, name := range names {
			connections[i][name] = api.NewClients(connecthttp.NewTransport(&http.Client{Transport: bearer{s.tokens[name], transport}}, s.url, connecthttp.WithGRPC()))
		}
		_, err := connections[i]["vera"].Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: "take_steps.streams"})
		require.NoError(t, err)
	}
	var all, open sync.WaitGroup
	errs := make([]error, count)
	last := make([]*jobsv1.Run, count)
	began := time.Now()
	open.Add(count)
	for n := range count {
		all.Go(func() {
			stream, err := connections[n/perConnection][names[n%3]].Runs.WatchRun(t.Context(), &jobsv1.WatchRunRequest{Name: run})
			if err == nil {
				_, err = stream.Receive()
			}
			open.Done()
			for err == nil {
				var response *jobsv1.WatchRunResponse
				if response, err = stream.Receive(); err == nil {
					last[n] = response.GetRun()
				}
			}
			if !errors.Is(err, io.EOF) {
				errs[n] = err
			}
		})
	}
	open.Wait()
	t.Logf("%d streams are open after %s", count, time.Since(began).Round(time.Millisecond))
	_, err := connections[0]["vera"].Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: "take_steps.streams"})
	require.NoError(t, err)
	requireStreamRefused(t, s, run)
	workertest.Open(t, gate)
	all.Wait()
	for n := range count {
		require.NoError(t, errs[n])
		require.Equal(t, jobsv1.RunStatus_RUN_STATUS_COMPLETED, last[n].GetStatus())
	}
}

// requireStreamRefused opens a stream without a token.
func requireStreamRefused(t *testing.T, s *site, run string) {
	t.Helper()
	stream, err := s.as("").Runs.WatchRun(t.Context(), &jobsv1.WatchRunRequest{Name: run})
	if err == nil {
		_, err = stream.Receive()
	}
	requireError(t, err, connect.CodeUnauthenticated, unauthenticated)
}
