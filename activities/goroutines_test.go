package activities_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// workers are the packages whose code runs in handlers.
var workers = []string{
	".", "../internal/hobolink", "../internal/influx", "../internal/ldmp", "../internal/lines", "../internal/objects",
	"../internal/pipeline", "../internal/platform", "../internal/release2",
}

// ownWork are the files with goroutines of a process and of no run. They call no code of a handler.
var ownWork = map[string]bool{
	"../internal/pipeline/sender.go": true, // It sends logs of all runs.
	"../internal/influx/writer.go":   true, // It only counts who still reads a buffer.
}

// A goroutine that panics ends the process, and with it the runs of others.
func TestHandlersHaveNoGoroutinesOutsideOfAGroup(t *testing.T) {
	t.Parallel()
	files, found := token.NewFileSet(), 0
	for _, root := range workers {
		require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && strings.HasSuffix(path, "test"): // a server for tests
				return filepath.SkipDir
			case entry.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"), ownWork[path]:
				return nil
			}
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			found++
			ast.Inspect(file, func(node ast.Node) bool {
				switch n := node.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: this goroutine is in no job.Group", files.Position(n.Pos()))
				case *ast.SelectorExpr:
					if of, ok := n.X.(*ast.Ident); ok && (of.Name == "errgroup" || of.Name == "sync" && n.Sel.Name == "WaitGroup") {
						t.Errorf("%s: use job.Group instead of %s.%s", files.Position(n.Pos()), of.Name, n.Sel.Name)
					}
				}
				return true
			})
			return nil
		}))
	}
	require.NotZero(t, found)
}
