// Package secrets resolves references of the form secret://NAME on a worker, so
// that secrets stay out of jobs.toml, histories and logs.
package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const (
	scheme         = "secret://"
	variablePrefix = "DENDRA_SECRET_"
	folderVariable = "DENDRA_SECRETS_DIR"
)

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// Resolver finds secrets: in the variable DENDRA_SECRET_<NAME> (the name in upper
// case, '-' and '.' as '_'), else in the file <NAME> of the folder that
// DENDRA_SECRETS_DIR names.
type Resolver struct {
	getenv func(string) string
}

// New makes a resolver that reads variables with getenv, such as os.Getenv.
func New(getenv func(string) string) Resolver { return Resolver{getenv: getenv} }

// Resolve gives the secret's value. Its errors are final, name the reference and
// never hold a value.
func (r Resolver) Resolve(ref job.SecretRef) (string, error) {
	name, found := strings.CutPrefix(string(ref), scheme)
	if !found || !namePattern.MatchString(name) {
		return "", job.Fail(errclass.Secret, "a secret is named as secret://NAME, with NAME in a-z, 0-9, '.', '_' and '-'")
	}
	variable := variablePrefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
	if value := r.getenv(variable); value != "" {
		return value, nil
	}
	folder := r.getenv(folderVariable)
	if folder == "" {
		return "", job.Fail(errclass.Secret, "secret %s is not set on this worker: set %s or %s", ref, variable, folderVariable)
	}
	path := filepath.Join(folder, name) //nolint:gosec // The name has no separators.
	value, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", job.Fail(errclass.Secret, "secret %s is neither in %s nor a file in %s", ref, variable, folderVariable)
	case errors.Is(err, fs.ErrPermission):
		return "", job.Fail(errclass.Secret, "secret %s cannot be read: %s; this worker runs as uid %d", ref, owner(path), os.Geteuid())
	case err != nil:
		return "", fmt.Errorf("read secret %s: %w", ref, err)
	}
	return strings.TrimRight(string(value), "\r\n"), nil
}

// owner says who may read a file, or the folder of it that keeps even that from being known.
func owner(path string) string {
	info, err := os.Stat(path)
	for err != nil && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%s has mode %04o", path, info.Mode().Perm())
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		text += fmt.Sprintf(" and belongs to uid %d", stat.Uid)
	}
	return text
}
