package release2_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func TestConfigFromEnv(t *testing.T) {
	t.Parallel()
	env := map[string]string{release2.EnvURL: "https://api.example.org/v2", release2.EnvToken: "t"}
	c, err := release2.ConfigFromEnv(func(name string) string { return env[name] })
	require.NoError(t, err)
	require.Equal(t, release2.Config{URL: "https://api.example.org/v2", Token: "t"}, c)
	for _, wrong := range []string{"api.example.org", "ftp://host", "https://user:secret@host", "https://host?x=1"} {
		_, err = release2.New(release2.Config{URL: wrong, Token: "t"})
		require.EqualError(t, err, "DENDRA_RELEASE2_URL is not a URL such as https://api.example.org/v2")
	}
}

// TestDocuments creates, patches and lists documents.
func TestDocuments(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "platform")
	open := func(token string) *release2.Client {
		c, err := release2.New(release2.Config{URL: st.Release2.URL, Token: token})
		require.NoError(t, err)
		return c
	}
	c := open(st.Release2.Token)
	const id = "5a8f00000000000000000001"
	created, err := c.Create(t.Context(), "organizations", release2.Document{"_id": id, "name": "Erica", "slug": "erica"})
	require.NoError(t, err)
	require.Equal(t, id, created.ID())
	require.NotEmpty(t, created.VersionID())
	require.NotEmpty(t, created.UpdatedBy())
	require.NotEmpty(t, created.UpdatedAt())
	_, err = c.Create(t.Context(), "organizations", created)
	require.ErrorIs(t, err, release2.ErrExists)

	patched, err := c.Patch(t.Context(), "organizations", id, created.VersionID(), release2.Patch{
		Set: map[string]any{"name": "Renamed"}, Unset: []string{"slug"},
	})
	require.NoError(t, err)
	require.Equal(t, "Renamed", patched["name"])
	require.NotContains(t, patched, "slug")
	require.NotEqual(t, created.VersionID(), patched.VersionID())
	_, err = c.Patch(t.Context(), "organizations", id, created.VersionID(), release2.Patch{Set: map[string]any{"name": "Late"}})
	require.ErrorIs(t, err, release2.ErrNotFound, "it has another version by now")
	require.ErrorContains(t, err, "PATCH organizations/"+id+": not found")

	read, err := c.Get(t.Context(), "organizations", id)
	require.NoError(t, err)
	require.Equal(t, "Renamed", read["name"])
	_, err = c.Get(t.Context(), "organizations", "5a8f00000000000000000002")
	require.ErrorIs(t, err, release2.ErrNotFound)
	var listed []string
	for d, err := range c.List(t.Context(), "organizations") {
		require.NoError(t, err)
		listed = append(listed, d.ID())
	}
	require.Equal(t, []string{id}, listed)

	var failure *job.Failure
	_, err = c.Create(t.Context(), "organizations", release2.Document{"name": "Erica", "other": 1})
	require.ErrorAs(t, err, &failure)
	require.Equal(t, []any{errclass.Release2Refused, true}, []any{failure.Class, failure.Kind.Final()})
	require.ErrorContains(t, err, "POST organizations: 400 Bad Request: Data does not match schema; ")
	_, err = open("another").Get(t.Context(), "organizations", id)
	require.ErrorAs(t, err, &failure)
	require.Equal(t, []any{errclass.Release2Token, true}, []any{failure.Class, failure.Kind.Final()})
}

// TestTroubleOfTheServer: what may pass is worth a retry, and no error holds the token.
func TestTroubleOfTheServer(t *testing.T) {
	t.Parallel()
	answer := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"message":"busy\nwith s3cret"}`))
	}
	server := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	c, err := release2.New(release2.Config{URL: server, Token: "s3cret", Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	var failure *job.Failure
	get := func() string {
		_, err := c.Get(t.Context(), "stations", "a/b")
		require.ErrorAs(t, err, &failure)
		require.Equal(t, []any{errclass.Release2Unreachable, false}, []any{failure.Class, failure.Kind.Final()})
		return err.Error()
	}
	require.Equal(t, "release 2 at "+server+": GET stations/a/b: 503 Service Unavailable: busy with [redacted]", get())
	answer = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"message":"busy","errors":{"name":"too long"}}`))
	}
	require.Contains(t, get(), `503 Service Unavailable: busy; {"name":"too long"}`)
	answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
	require.Contains(t, get(), "the answer cannot be read")
	answer = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	require.Contains(t, get(), "no answer within 50ms")
}

// TestNotFoundIsWhatRelease2Says: the 404 of a proxy, or of a wrong URL, is no missing
// document.
func TestNotFoundIsWhatRelease2Says(t *testing.T) {
	t.Parallel()
	body := `{"name":"NotFound","message":"No record found for id '1'","code":404,"className":"not-found","errors":{}}`
	server := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(body))
	}))
	c, err := release2.New(release2.Config{URL: server, Token: "s3cret"})
	require.NoError(t, err)
	get := func() error {
		_, err := c.Get(t.Context(), "stations", "1")
		return err
	}
	unreachable := func(err error) {
		failure := jobtest.FailureOf(t, err)
		require.Equal(t, []any{errclass.Release2Unreachable, false}, []any{failure.Class, failure.Kind.Final()})
		require.NotErrorIs(t, err, release2.ErrNotFound)
		require.ErrorContains(t, err, "404 Not Found: ")
		require.ErrorContains(t, err, "; check DENDRA_RELEASE2_URL")
	}
	require.ErrorIs(t, get(), release2.ErrNotFound)
	_, err = c.Patch(t.Context(), "stations", "1", "2", release2.Patch{})
	require.ErrorIs(t, err, release2.ErrNotFound)
	_, err = c.Create(t.Context(), "stations", release2.Document{})
	unreachable(err)
	for _, err := range c.List(t.Context(), "stations") {
		unreachable(err)
	}
	unreachable(c.Check(t.Context(), "stations"))
	body = "default backend - 404"
	unreachable(get())
}
