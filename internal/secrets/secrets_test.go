package secrets_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/secrets"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const folderVariable = "DENDRA_SECRETS_DIR"

func TestMain(m *testing.M) {
	if os.Getenv(asOther) == "" {
		os.Exit(m.Run())
	}
	_, err := secrets.New(os.Getenv).Resolve("secret://vendor", "http://127.0.0.1", job.Owner{})
	_ = json.NewEncoder(os.Stdout).Encode(said(err))
}

// asOther makes the test binary a worker of another user: root may read everything.
const asOther = "DENDRA_TEST_AS_OTHER"

type failure struct {
	Text, Class string
	Final       bool
}

func said(err error) failure {
	f, ok := errors.AsType[*job.Failure](err)
	return failure{err.Error(), f.Class, ok && f.Kind.Final()}
}

// A secret that this user cannot read is told once and for all, with who may read it.
func TestSecretOfAnotherUser(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "vendor")
	require.NoError(t, os.WriteFile(path, []byte("value"), 0o600))
	require.NoError(t, os.Chmod(path, 0))
	resolve := func() failure {
		_, err := secrets.New(func(name string) string {
			return map[string]string{folderVariable: folder}[name]
		}).Resolve("secret://vendor", "http://127.0.0.1", job.Owner{})
		return said(err)
	}
	uid := os.Geteuid()
	if uid == 0 {
		uid = 65532
		resolve = func() failure { return resolveAs(t, folder, uid) }
	}
	f := resolve()
	require.Equal(t, fmt.Sprintf("secret secret://vendor cannot be read: %s has mode 0000 and belongs to uid %d; this worker runs as uid %d", path, os.Geteuid(), uid), f.Text)
	require.Equal(t, errclass.Secret, f.Class)
	require.True(t, f.Final)
}

// resolveAs resolves in a process of another user. The folders above are opened for it.
func resolveAs(t *testing.T, folder string, uid int) (f failure) {
	t.Helper()
	for _, dir := range []string{folder, filepath.Dir(folder)} {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	program := filepath.Join(folder, "program")
	text, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, text, 0o755))
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir, cmd.Env = "/", []string{asOther + "=1", folderVariable + "=" + folder}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &f))
	return f
}
