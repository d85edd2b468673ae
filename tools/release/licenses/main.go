// Command licenses writes the licences of all modules that programs are built of, for the file
// NOTICE of a release:
//
//	licenses [-without MODULE,...] PACKAGE...
//
// It ends with 1 if a module has no licence that is known, and is not named by -without.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// fileName is what licences and notices are named.
var fileName = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice)([-._].*)?$`)

// known is how much of a file has to be the text of licences, in percent.
const known = 75

// line stands before each module.
var line = strings.Repeat("=", 80)

// module is what go list tells of one.
type module struct {
	Path, Version, Dir string
	Main               bool
}

func main() {
	without := flag.String("without", "", "modules that have no file with their licence, separated by commas")
	flag.Parse()
	if err := write(context.Background(), os.Stdout, flag.Args(), strings.Split(*without, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// write writes the modules, in order, each with the names and texts of its licences.
func write(ctx context.Context, out io.Writer, packages, without []string) error {
	modules, err := modulesOf(ctx, packages)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	text.WriteString("The programs contain the work of others, under these licences.\n")
	var problems []error
	for _, m := range modules {
		if slices.Contains(without, m.Path) {
			fmt.Fprintf(&text, "\n%s\n%s %s: its module has no file with its licence\n", line, m.Path, m.Version)
		} else if err := m.write(&text); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	_, err = out.Write(text.Bytes())
	return err
}

// modulesOf are the modules of packages and of all that these import, Go's own library included.
func modulesOf(ctx context.Context, packages []string) ([]module, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-json=Module"}, packages...)...) //nolint:gosec // The packages are those of the Makefile.
	list.Stderr = os.Stderr
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	dir, version, _ := strings.Cut(strings.TrimSpace(string(root)), "\n")
	found := map[string]module{"std": {Path: "the Go standard library", Version: version, Dir: dir}}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var one struct{ Module *module }
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if one.Module != nil && !one.Module.Main {
			found[one.Module.Path] = *one.Module
		}
	}
	var modules []module
	for _, m := range found {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return modules, nil
}

// write writes the licences of a module.
func (m module) write(out *bytes.Buffer) error {
	// Modules that hold C code, in WebAssembly or translated to Go, have its licences in lib.
	paths, err := filepath.Glob(filepath.Join(m.Dir, "lib", "LICENSE.*"))
	if err != nil {
		return fmt.Errorf("module %s: %w", m.Path, err)
	}
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("module %s: %w", m.Path, err)
	}
	for _, entry := range entries {
		if !entry.IsDir() && fileName.MatchString(entry.Name()) && filepath.Ext(entry.Name()) != ".go" {
			paths = append(paths, filepath.Join(m.Dir, entry.Name()))
		}
	}
	names := map[string]bool{}
	var texts bytes.Buffer
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("module %s: %w", m.Path, err)
		}
		if cover := licensecheck.Scan(text); cover.Percent >= known {
			for _, match := range cover.Match {
				names[match.ID] = true
			}
		}
		fmt.Fprintf(&texts, "\n%s:\n\n%s\n", filepath.Base(path), bytes.TrimSpace(text))
	}
	if len(names) == 0 {
		return fmt.Errorf("module %s %s has no file with a licence that is known", m.Path, m.Version)
	}
	var sorted []string
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	fmt.Fprintf(out, "\n%s\n%s %s: %s\n%s", line, m.Path, m.Version, strings.Join(sorted, ", "), texts.Bytes())
	return nil
}
