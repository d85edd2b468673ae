package deploy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// command is a program as a manifest or a unit starts it.
type command struct {
	where string
	line  []string
}

// name is the worker type, or the command of starter.
func (c command) name() string {
	if name := filepath.Base(c.line[0]); name != "starter" {
		return name
	}
	return "starter " + c.line[1]
}

// isWorker reports whether it is a worker.
func (c command) isWorker() bool { return !strings.HasPrefix(c.name(), "starter ") }

// flag is the value of a flag, "" if it is not given.
func (c command) flag(name string) string {
	for _, argument := range c.line {
		if value, found := strings.CutPrefix(argument, "--"+name+"="); found {
			return value
		}
	}
	return ""
}

// stopsWithin is how long the program may take to stop.
func (c command) stopsWithin(t *testing.T) time.Duration {
	t.Helper()
	text := c.flag("drain-timeout")
	if !c.isWorker() {
		text = strings.ToLower(strings.TrimPrefix(c.flag("stop-timeout"), "PT"))
	}
	within, err := time.ParseDuration(text)
	require.NoError(t, err, "%s says how long a stop may take", c.where)
	return within
}

// check holds the flags against those of the program.
func (c command) check(t *testing.T) {
	t.Helper()
	known := flags(t, c.name())
	arguments := c.line[1:]
	if !c.isWorker() {
		arguments = c.line[2:]
	}
	for _, argument := range arguments {
		name, _, valued := strings.Cut(argument, "=")
		require.Contains(t, known, name, "%s: a flag of %s", c.where, c.name())
		require.True(t, valued, "%s: write %s=VALUE", c.where, name)
	}
}

const root = ".."

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(text)
}

// flags of a program are those of its table in the documents, which are generated.
func flags(t *testing.T, program string) []string {
	t.Helper()
	begin, end, text := "\n## Workers\n", "\n## ", read(t, root, "docs", "reference.md")
	if strings.HasPrefix(program, "starter ") {
		begin, end = "\n### "+program+"\n", "\n### "
	}
	_, text, found := strings.Cut(text, begin)
	require.True(t, found, "%s is in the documents", program)
	text, _, _ = strings.Cut(text, end)
	var names []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(text, -1) {
		names = append(names, regexp.MustCompile(`--[a-z-]+`).FindAllString(row[1], -1)...)
	}
	require.NotEmpty(t, names, program)
	return names
}

var variableName = regexp.MustCompile(`"((?:DENDRA|TEMPORAL)_[A-Z0-9_]+)"`)

// variables are those that the code of the programs reads, and the library that finds Temporal
// for them.
var variables = sync.OnceValues(func() (map[string]bool, error) {
	library := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "go.temporal.io/sdk/contrib/envconfig") //nolint:noctx // It calls nobody.
	library.Dir = root
	folder, err := library.Output()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, folder := range []string{root, strings.TrimSpace(string(folder))} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range variableName.FindAllStringSubmatch(string(text), -1) {
				known[found[1]] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return known, nil
})

// checkVariable holds the name of a variable against what programs read.
func checkVariable(t *testing.T, where, name string) {
	t.Helper()
	known, err := variables()
	require.NoError(t, err)
	require.True(t, known[name], "%s: %s is a variable that the programs read", where, name)
}
