// Package secrets resolves references of the form secret://NAME on a worker, so
// that secrets stay out of jobs.toml, histories and logs. A secret says where it may go:
// see [Resolver.Resolve].
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
	variablePrefix = "DENDRA_SECRET_"
	folderVariable = "DENDRA_SECRETS_DIR"
)

// variableName fits names that have a variable. With others, two names could have one.
var variableName = regexp.MustCompile(`^[a-z0-9-]+$`)

// Resolver finds secrets: in the file <NAME> of the folder that DENDRA_SECRETS_DIR
// names, else in the variable DENDRA_SECRET_<NAME> (the name in upper case, '-' as
// '_'). A name with '.' or '_' has no variable.
type Resolver struct {
	getenv func(string) string
}

// New makes a resolver that reads variables with getenv, such as os.Getenv.
func New(getenv func(string) string) Resolver { return Resolver{getenv: getenv} }

// Resolve gives the secret's value, if it may be sent to the destination, a URL or
// [Itself], for a job of the owner. What a secret allows stands before it:
//
//	hosts: api.example.org, http://influx.internal:8086
//	owners: organization:demo
//
//	VALUE
//
// A host without a port allows all ports. It is reached by TLS, unless it is a loopback
// address, or is written with http:// and has only private addresses. Without owners,
// only jobs without an owner get the secret; a star allows all owners. Without hosts, it
// goes to loopback addresses alone.
//
// Errors are final, name the reference and never hold a value.
func (r Resolver) Resolve(ref job.SecretRef, destination string, owner job.Owner) (string, error) {
	name, err := ref.Name()
	if err != nil {
		return "", job.Fail(errclass.Secret, "a secret is named as secret://NAME, with NAME in a-z, 0-9, '.', '_' and '-'")
	}
	text, where, err := r.read(ref, name)
	if err != nil {
		return "", err
	}
	value, rule, err := parse(text)
	if err != nil {
		return "", job.Fail(errclass.Secret, "secret %s, in %s: %w", ref, where, err)
	}
	if value == "" {
		return "", job.Fail(errclass.Secret, "secret %s, in %s, is empty", ref, where)
	}
	if err := rule.allows(value, destination, owner); err != nil {
		return "", job.Fail(errclass.SecretRefused, "secret %s, in %s, %w", ref, where, err)
	}
	return value, nil
}

// read gives the text of a secret, and where it was.
func (r Resolver) read(ref job.SecretRef, name string) (text, where string, err error) {
	folder := r.getenv(folderVariable)
	if folder != "" {
		path := filepath.Join(folder, name) //nolint:gosec // The name has no separators.
		content, err := os.ReadFile(path)
		switch {
		case err == nil:
			return string(content), "the file " + path, nil
		case errors.Is(err, fs.ErrPermission):
			return "", "", job.Fail(errclass.Secret, "secret %s cannot be read: %s; this worker runs as uid %d", ref, mayRead(path), os.Geteuid())
		case !errors.Is(err, fs.ErrNotExist):
			return "", "", fmt.Errorf("read secret %s: %w", ref, err)
		}
	}
	variable := ""
	if variableName.MatchString(name) {
		variable = variablePrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if text := r.getenv(variable); text != "" {
			return text, "the variable " + variable, nil
		}
	}
	switch {
	case folder == "" && variable == "":
		return "", "", job.Fail(errclass.Secret, "secret %s is not set on this worker: set %s", ref, folderVariable)
	case folder == "":
		return "", "", job.Fail(errclass.Secret, "secret %s is not set on this worker: set %s or %s", ref, variable, folderVariable)
	case variable == "":
		return "", "", job.Fail(errclass.Secret, "secret %s is not a file in %s", ref, folderVariable)
	}
	return "", "", job.Fail(errclass.Secret, "secret %s is neither in %s nor a file in %s", ref, variable, folderVariable)
}

// mayRead says who may read a file, or the folder of it that keeps even that from being known.
func mayRead(path string) string {
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
