package page_test

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
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/server"
	"github.com/dendrascience/dendra-jobs/server/audit"
	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/server/page"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// serveTo serves a page over clients.
func serveTo(t *testing.T, clients *api.Clients) string {
	t.Helper()
	return stacktest.Serve(t, page.New(page.Config{API: clients}))
}

// auditText is an audit log in memory.
type auditText struct{ stacktest.Output }

// last is the latest line.
func (a *auditText) last(t *testing.T) audit.Record {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(a.String()), "\n")
	var record audit.Record
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &record))
	return record
}

// logIn gives the cookie of a new session.
func logIn(t *testing.T, address, token string) *http.Cookie {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/login", strings.NewReader(url.Values{"token": {token}}.Encode()))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Len(t, response.Cookies(), 1)
	return response.Cookies()[0]
}

// guarded is the page behind the server, with a token for each role.
func guarded(t *testing.T, w *world) (address string, tokens map[string]string, log *auditText) {
	t.Helper()
	tokens = map[string]string{"vera": auth.NewToken(), "otto": auth.NewToken()}
	credentials := filepath.Join(t.TempDir(), "credentials.toml")
	text := auth.Line("vera", verbs.RoleViewer, auth.Hash(tokens["vera"]), time.Time{}) + "\n" +
		auth.Line("otto", verbs.RoleOperator, auth.Hash(tokens["otto"]), time.Time{}) + "\n"
	require.NoError(t, os.WriteFile(credentials, []byte(text), 0o600))
	quiet := slog.New(slog.DiscardHandler)
	file, err := auth.OpenFile(credentials, quiet)
	require.NoError(t, err)
	log = &auditText{}
	address = serve(t, server.Config{
		API: api.Config{Client: w.client, Pipeline: w.pipeline, Reads: w.reads, Types: types()}, Auth: auth.Config{File: file}, Audit: audit.New(log, quiet),
		Page: func(clients *api.Clients) http.Handler {
			return page.New(page.Config{API: clients, Role: auth.RoleOf})
		},
	})
	return address, tokens, log
}

// serve runs a server until the test ends, and gives its address.
func serve(t *testing.T, config server.Config) string {
	t.Helper()
	config.Listen, config.Logger = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	s, err := server.New(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return s.URL()
}

// signIn fills in the form that the server shows in place of a view.
func (b *tab) signIn(address, token string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
	b.until("the form", `document.querySelector("#token")`)
	b.do(chromedp.SendKeys("#token", token+"\n"))
	b.until("the view", `document.querySelector("#job-now") && document.documentElement.classList.contains("js")`)
}

// roles: a viewer sees, an operator acts, and the audit log names who it was. Other sites may
// send nothing.
func roles(t *testing.T, w *world) {
	id := w.daily(t, "roles", map[string]any{})
	address, tokens, log := guarded(t, w)
	status := func() jobsv1.JobStatus {
		answer, err := w.api.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: id})
		require.NoError(t, err)
		return answer.GetJob().GetState().GetStatus()
	}
	pause := `form[action="/do/pause-job"] button`
	formOf := `fetch("/new?type=TakeSteps&mode=one_shot").then((answer) => { document.body.dataset.form = answer.status })`
	sent := `fetch("/new", { method: "POST", body: new URLSearchParams({ type: "TakeSteps", mode: "one_shot", ".key": "roles-form", "spec.steps": "1", step: "create" }) })
		.then((answer) => { document.body.dataset.sent = answer.status })`

	viewer := newTab(t, 1280, 900)
	viewer.signIn(address+"/jobs/"+id, tokens["vera"])
	require.Contains(t, is[string](viewer, `document.querySelector("main").innerText`), id)
	actions := `[...document.querySelectorAll("[data-verb]")].map((form) => form.getAttribute("action")).join(" ")`
	require.Empty(t, is[string](viewer, actions), "a viewer gets no actions")
	viewer.script(`fetch("/do/pause-job", { method: "POST", body: new URLSearchParams({ name: "` + id + `", reason: "" }) })
		.then((answer) => answer.text()).then((text) => { document.body.dataset.answer = text })`)
	viewer.until("the refusal", `document.body.dataset.answer?.includes("Nothing was done: ")`)
	require.Contains(t, is[string](viewer, "document.body.dataset.answer"), "needs the role operator; vera has the role viewer.")
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_SCHEDULED, status())
	line := log.last(t)
	require.Equal(t, []string{"vera", jobsv1connect.JobServicePauseJobProcedure, "permission_denied"}, []string{line.Caller, line.Procedure, line.Code})

	operator := newTab(t, 1280, 900)
	operator.signIn(address+"/jobs/"+id, tokens["otto"])
	operator.until("the stream of events", `document.querySelector("#link-state").textContent === "Live"`)
	require.Contains(t, is[string](operator, actions), "/do/pause-job")
	for _, b := range []*tab{viewer, operator} { // A definition is an admin's.
		require.False(t, is[bool](b, `!!document.querySelector("a[href^='/new']")`))
		b.script(formOf)
		b.script(sent)
		b.until("both refusals", `document.body.dataset.form === "403" && document.body.dataset.sent === "403"`)
	}
	operator.click(pause)
	operator.until("the question", `document.querySelector("#ask").open`)
	operator.script(`document.querySelector("#ask input").value = "maintenance"`)
	operator.click("#confirm")
	operator.until("what was done", `document.querySelector("#message").innerText.includes("Job `+id+`: paused.")`)
	operator.until("the new state", `document.querySelector("#job-now .status").textContent === "paused"`)
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_PAUSED, status())
	line = log.last(t)
	require.Equal(t, []string{"otto", "operator", jobsv1connect.JobServicePauseJobProcedure, "job/" + id, "ok", "maintenance"},
		[]string{line.Caller, line.Role, line.Procedure, line.Resource, line.Code, line.Reason})
	operator.requireCalm()

	// The cookie of the operator is of no use to another site.
	cookie := logIn(t, address, tokens["otto"])
	for header, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example.org"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/do/resume-job", strings.NewReader(url.Values{"name": {id}, "reason": {""}}.Encode()))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set(header, value)
		request.AddCookie(cookie)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusForbidden, response.StatusCode, header)
	}
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_PAUSED, status())
}
