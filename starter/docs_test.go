package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// noPaths begin names that look like paths: a package that readers of the tutorials write, and
// the id of a workflow.
var noPaths = []string{"activities/upkeep", "job/extract_hobo_time_frame."}

var (
	fence     = regexp.MustCompile("(?ms)^[ ]*```.*?^[ ]*```")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	span      = regexp.MustCompile("`([^`\n]+)`")
	path      = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.*-]+)+/?$`)
	inCommand = regexp.MustCompile(`(?m)^.*\bgo (?:test|run|build) .*$`)
	argument  = regexp.MustCompile(`\s\./([\w/-]+)`)
	testName  = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w+`)
	testsOf   = regexp.MustCompile("((?:`Test\\w+(?:/\\w+)?`,? )+)in `([\\w/]+)`")
)

// pages are the documents of the project, by their paths from its root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md", "client/typescript/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			texts[filepath.ToSlash(file[len("../"):])] = readFile(t, file)
		}
	}
	return texts
}

// TestLinksHold looks up the file and the heading of each link.
func TestLinksHold(t *testing.T) {
	t.Parallel()
	texts := pages(t)
	for page, text := range texts {
		for _, found := range link.FindAllStringSubmatch(span.ReplaceAllString(fence.ReplaceAllString(text, ""), ""), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.ToSlash(filepath.Join(filepath.Dir(page), target))
			}
			require.FileExists(t, fileOrFolder(filepath.Join("..", file)), "%s: %s", page, found[1])
			if anchor != "" {
				require.Contains(t, anchors(texts[file]), anchor, "%s: %s", page, found[1])
			}
		}
	}
}

// TestPathsInDocsExist looks up paths that stand in backquotes, and packages of go commands.
func TestPathsInDocsExist(t *testing.T) {
	t.Parallel()
	for page, text := range pages(t) {
		var named []string
		for _, found := range span.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			first, _, _ := strings.Cut(found[1], "/")
			if info, err := os.Stat(filepath.Join("..", first)); err == nil && info.IsDir() && !slices.Contains([]string{".", "..", "bin"}, first) && path.MatchString(found[1]) {
				named = append(named, found[1])
			}
		}
		for _, command := range inCommand.FindAllString(text, -1) {
			for _, found := range argument.FindAllStringSubmatch(command, -1) {
				named = append(named, found[1])
			}
		}
		for _, name := range named {
			if slices.ContainsFunc(noPaths, func(begin string) bool { return strings.HasPrefix(name, begin) }) {
				continue
			}
			files, err := filepath.Glob(filepath.Join("..", name))
			require.NoError(t, err)
			if len(files) == 0 {
				t.Errorf("%s names %s", page, name)
			}
		}
	}
}

// TestTestsInDocsExist looks up names of tests, and the packages that they are said to be in.
// A command may have the beginning of a name.
func TestTestsInDocsExist(t *testing.T) {
	t.Parallel()
	folders := tests(t)
	for page, text := range pages(t) {
		commands := strings.Join(inCommand.FindAllString(strings.ReplaceAll(text, "\\\n", ""), -1), "\n")
		for _, name := range testName.FindAllString(text, -1) {
			_, exists := folders[name]
			if !exists && strings.Contains(commands, name) {
				for known := range folders {
					exists = exists || strings.HasPrefix(known, name)
				}
			}
			if !exists {
				t.Errorf("%s names %s", page, name)
			}
		}
		for _, found := range testsOf.FindAllStringSubmatch(text, -1) {
			for _, name := range testName.FindAllString(found[1], -1) {
				require.Contains(t, folders[name], found[2], "%s: %s", page, name)
			}
		}
	}
}

// TestSettingsAreListed compares the variables of the reference with those that the code reads.
func TestSettingsAreListed(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile("[\"`](DENDRA_[A-Z0-9_]*[A-Z0-9])_?[\"`]")
	others := []string{".dev", ".git", "alerttest", "bench", "bin", "deploy", "devstack", "docs", "node_modules", "soak", "tools"}
	read := map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(others, entry.Name()):
			return filepath.SkipDir
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "reference/settings"):
			return nil
		}
		for _, found := range named.FindAllStringSubmatch(readFile(t, file), -1) {
			read[found[1]] = !strings.HasPrefix(found[1], "DENDRA_TEST_")
		}
		return nil
	}))
	listed := map[string]bool{}
	for _, found := range named.FindAllStringSubmatch(readFile(t, tablesFile), -1) {
		listed[found[1]] = true
	}
	for name := range read {
		require.True(t, !read[name] || listed[name] || strings.HasPrefix(name, "DENDRA_SECRET"), "%s is read, and not listed in starter/reference/settings.go", name)
	}
	for name := range listed {
		require.True(t, read[name] || name == "DENDRA_SECRET_NAME", "%s is listed, and not read", name)
	}
}

// TestReadmeFitsATerminal bounds the lines of the page that is read first.
func TestReadmeFitsATerminal(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(readFile(t, "../README.md")) {
		require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 130, line)
	}
}

// fileOrFolder gives a file that is there if the folder is.
func fileOrFolder(name string) string {
	if entries, err := os.ReadDir(name); err == nil {
		for _, entry := range entries {
			if !entry.IsDir() {
				return filepath.Join(name, entry.Name())
			}
		}
	}
	return name
}

// anchors are those that GitHub gives the headings of a page.
func anchors(text string) []string {
	var all []string
	for _, found := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(found[1]) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-', r == '_', '0' <= r && r <= '9', 'a' <= r && r <= 'z':
				b.WriteRune(r)
			}
		}
		all = append(all, b.String())
	}
	return all
}

// tests are the folders of each test function.
func tests(t *testing.T) map[string][]string {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
	folders := map[string][]string{}
	require.NoError(t, filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", ".dev", "bin", "node_modules", "testdata"}, entry.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file) //nolint:gosec // the files of this module
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(file[len("../"):]))
		for _, found := range function.FindAllStringSubmatch(string(text), -1) {
			folders[found[1]] = append(folders[found[1]], folder)
		}
		return nil
	}))
	require.NotEmpty(t, folders)
	return folders
}
