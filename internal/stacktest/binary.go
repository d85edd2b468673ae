package stacktest

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/dendrascience/dendra-jobs"

// Binary returns the path of bin/<name> in the repository and fails the test
// when it was not built.
func Binary(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Root(t), "bin", name)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		t.Fatalf("bin/%s is missing in %s: run make build", name, Root(t))
	}
	return path
}

// Root returns the root folder of the repository: the nearest one above the
// working directory whose go.mod names the root module.
func Root(t testing.TB) string {
	t.Helper()
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// packageFolder is that of the package under test, from before a test changes its
// working directory.
var packageFolder = sync.OnceValues(os.Getwd)

var findRoot = sync.OnceValues(func() (string, error) {
	dir, err := packageFolder()
	if err != nil {
		return "", err
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		if moduleOf(filepath.Join(dir, "go.mod")) == module {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no folder above " + start + " holds the go.mod of " + module)
		}
	}
})

func moduleOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}
