package objects_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestCredentialsOfRequests: a session's token is sent, and a file is read again once it has
// changed.
func TestCredentialsOfRequests(t *testing.T) {
	t.Parallel()
	asked := make(chan http.Header, 10)
	endpoint := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header
		w.WriteHeader(http.StatusForbidden)
	}))
	file := filepath.Join(t.TempDir(), "credentials")
	written := time.Now().Add(-time.Hour)
	write := func(text string) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		written = written.Add(time.Minute)
		require.NoError(t, os.Chtimes(file, written, written))
	}
	open := func(env map[string]string) *objects.Store {
		env[objects.EnvEndpoint] = endpoint
		config, err := objects.ConfigFromEnv(func(name string) string { return env[name] })
		require.NoError(t, err)
		store, err := objects.New(config)
		require.NoError(t, err)
		return store
	}
	request := func(store *objects.Store) (key, session string) {
		_, err := store.Stat(t.Context(), "bucket", "key")
		require.Error(t, err)
		header := <-asked
		return header.Get("Authorization"), header.Get("X-Amz-Security-Token")
	}
	key, session := request(open(map[string]string{objects.EnvAccessKey: "first", objects.EnvSecretKey: "s", objects.EnvSessionToken: "for an hour"}))
	require.Contains(t, key, "Credential=first/")
	require.Equal(t, "for an hour", session)

	write("[default]\naws_access_key_id = second\naws_secret_access_key = s\naws_session_token = t\n")
	store := open(map[string]string{objects.EnvCredentialsFile: file})
	key, session = request(store)
	require.Contains(t, key, "Credential=second/")
	require.Equal(t, "t", session)
	write("[default]\naws_access_key_id = third\naws_secret_access_key = s\n")
	key, session = request(store)
	require.Contains(t, key, "Credential=third/")
	require.Empty(t, session)
}

// TestCredentialsThatAreWrong: the variable is named, and no key is told.
func TestCredentialsThatAreWrong(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	half, broken := filepath.Join(folder, "half"), filepath.Join(folder, "broken")
	require.NoError(t, os.WriteFile(half, []byte("[default]\naws_access_key_id = hunter2\n"), 0o600))
	require.NoError(t, os.WriteFile(broken, []byte("[default\nhunter2\n"), 0o600))
	for name, test := range map[string]struct {
		env  map[string]string
		want string
	}{
		"no file":      {map[string]string{objects.EnvCredentialsFile: "/none"}, "DENDRA_S3_CREDENTIALS_FILE: open /none"},
		"no secret":    {map[string]string{objects.EnvCredentialsFile: half}, "has no aws_access_key_id with aws_secret_access_key in the profile default"},
		"no profile":   {map[string]string{objects.EnvCredentialsFile: half, objects.EnvProfile: "jobs"}, "in the profile jobs"},
		"no such form": {map[string]string{objects.EnvCredentialsFile: broken}, "in the profile default"},
		"both":         {map[string]string{objects.EnvCredentialsFile: half, objects.EnvAccessKey: "k"}, "DENDRA_S3_ACCESS_KEY, DENDRA_S3_SECRET_KEY and DENDRA_S3_SESSION_TOKEN are not set beside it"},
	} {
		test.env[objects.EnvEndpoint] = "https://127.0.0.1:1"
		_, err := objects.ConfigFromEnv(func(name string) string { return test.env[name] })
		require.ErrorContains(t, err, test.want, name)
		require.NotContains(t, err.Error(), "hunter2", name)
	}
}
