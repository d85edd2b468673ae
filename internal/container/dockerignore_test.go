// Package container_test holds what the image is built of against what the programs import.
package container_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// TestDockerignore: the build of the image gets every file that its programs are made of.
func TestDockerignore(t *testing.T) {
	t.Parallel()
	ignored := dockerignore(t)
	require.True(t, ignored("docs/architecture.md"), "what the programs are not made of stays outside")
	missing := map[string]string{} // An example of each folder.
	for _, file := range append(sources(t), "go.mod", "go.sum", "devstack/go.mod", "devstack/go.sum", "devstack/sqlite/go.mod") {
		if ignored(file) {
			missing[filepath.Dir(file)] = file
		}
	}
	require.Empty(t, missing, ".dockerignore keeps these from the image's programs")
}

// dockerignore reports whether the build of the image lacks a file: the last line that matches
// it, or a folder of it, decides.
func dockerignore(t *testing.T) func(file string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	require.NoError(t, err)
	type line struct {
		pattern *regexp.Regexp
		ignores bool
	}
	var list []line
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		pattern, allowed := strings.CutPrefix(strings.TrimSpace(lines.Text()), "!")
		if pattern == "" || strings.HasPrefix(pattern, "#") {
			continue
		}
		form := strings.NewReplacer(`\*\*/`, `(.*/)?`, `\*`, `[^/]*`, `\?`, `[^/]`).Replace(regexp.QuoteMeta(strings.Trim(pattern, "/")))
		list = append(list, line{regexp.MustCompile("^" + form + "(/.*)?$"), !allowed})
	}
	return func(file string) bool {
		ignored := false
		for _, l := range list {
			if l.pattern.MatchString(file) {
				ignored = l.ignores
			}
		}
		return ignored
	}
}

// buildLine is what the Dockerfile builds programs with, in a folder with a module.
var buildLine = regexp.MustCompile(`(?:cd ([a-z]+) && )?go build .* -o /out/((?: \./[a-z/-]+)+)\n`)

// sources are the files of this repository that the image's programs are made of.
func sources(t *testing.T) (files []string) {
	t.Helper()
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	builds := buildLine.FindAllSubmatch(dockerfile, -1)
	require.Len(t, builds, 2, "programs of two modules in the Dockerfile")
	for _, build := range builds {
		files = append(files, sourcesOf(t, string(build[1]), strings.Fields(string(build[2])))...)
	}
	return files
}

// sourcesOf are the files of this repository that programs of a module of it are made of.
func sourcesOf(t *testing.T, module string, programs []string) (files []string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-json=Dir,GoFiles,EmbedFiles"}, programs...)...)
	list.Dir = filepath.Join(root, module)
	out, err := list.Output()
	require.NoError(t, err)
	folder, err := filepath.Abs(root)
	require.NoError(t, err)
	for packages := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir                 string
			GoFiles, EmbedFiles []string
		}
		err := packages.Decode(&p)
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		dir, err := filepath.Rel(folder, p.Dir)
		if err != nil || strings.HasPrefix(dir, "..") {
			continue // Of another module.
		}
		for _, name := range append(p.GoFiles, p.EmbedFiles...) {
			files = append(files, filepath.ToSlash(filepath.Join(dir, name)))
		}
	}
}
