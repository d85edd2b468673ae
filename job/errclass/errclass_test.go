package errclass_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job/errclass"
)

func TestFind(t *testing.T) {
	t.Parallel()
	c, ok := errclass.Find(errclass.InfluxUnreachable)
	require.True(t, ok)
	require.Equal(t, errclass.Unavailable, c.Kind)
	require.Equal(t, "errors.md#influxunreachable", c.Anchor())
	_, ok = errclass.Find("NoFolder")
	require.False(t, ok)
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for kind, want := range map[errclass.Kind][]bool{ // final, keeps the input
		errclass.Transient: {false, false}, errclass.Unavailable: {false, true},
		errclass.Permanent: {true, false}, errclass.Misconfigured: {true, true},
	} {
		require.Equal(t, want, []bool{kind.Final(), kind.KeepsInput()}, kind)
	}
	require.Len(t, errclass.Kinds(), 4)
}

var (
	className = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	sentences = regexp.MustCompile(`^[A-Z].*\.$`)
)

func TestTheList(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range errclass.All() {
		require.Regexp(t, className, c.Name)
		require.False(t, seen[c.Name], "%s is there twice", c.Name)
		seen[c.Name] = true
		require.Contains(t, errclass.Kinds(), c.Kind, c.Name)
		require.Regexp(t, sentences, c.Cause, c.Name)
		require.Regexp(t, sentences, c.Cure, c.Name)
	}
}

// outside are folders whose programs are no part of the product, and an example of a
// handler with a class of its own.
var outside = []string{"alerttest", "bench", "devstack", "docs", "proto", "soak", "tools", "internal/stacktest", "job/errclass"}

// TestEveryClassIsListedAndUsed reads the code of the product. Its classes come from the
// list, and none of the list is without use.
func TestEveryClassIsListedAndUsed(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	uses := usage{t: t, used: map[string]bool{}}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains(outside, filepath.ToSlash(name)) || strings.HasPrefix(entry.Name(), ".") && name != "." || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		return uses.read(path)
	}))
	for constant, class := range constants(t) {
		_, listed := errclass.Find(class)
		require.True(t, listed, "%s has no entry in the list", constant)
		if !strings.HasSuffix(class, "Timeout") || class == errclass.RunTimeout { // Temporal's: contract.ErrorClass makes their names.
			require.True(t, uses.used[constant], "nothing fails with %s", constant)
		}
	}
}

// constants are the names of this package's constants that are classes.
func constants(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "classes.go", nil, 0)
	require.NoError(t, err)
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			found[spec.Names[0].Name] = text(spec.Values[0])
		}
		return true
	})
	require.Len(t, found, len(errclass.All()))
	return found
}

type usage struct {
	t    *testing.T
	used map[string]bool // names of constants
}

func (u *usage) read(path string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if is(n.X, "errclass") {
				u.used[n.Sel.Name] = true
			}
		case *ast.BasicLit:
			if c, ok := errclass.Find(text(n)); ok && !ordinary[c.Name] {
				u.t.Errorf("%s: write errclass.%s", files.Position(n.Pos()), c.Name)
			}
		case *ast.CallExpr:
			u.call(files, n)
		case *ast.KeyValueExpr:
			if is(n.Key, "Class") && text(n.Value) != "" {
				u.t.Errorf("%s: class %s is not of the list", files.Position(n.Pos()), text(n.Value))
			}
		}
		return true
	})
	return nil
}

// ordinary are classes whose names are words of other things too, such as the reason of a
// condition.
var ordinary = map[string]bool{errclass.Unclassified: true, errclass.NotApplied: true}

// makers are functions that give an error a class, by the place of the class among their
// arguments.
var makers = map[string]int{
	"Final": 0, "Retryable": 0, "Fail": 0, "FailAfter": 0, "NewFailure": 0,
	"NewApplicationError": 1, "NewNonRetryableApplicationError": 1, "NewApplicationErrorWithOptions": 1,
}

// call checks that the class of an error is none of its own, and that nothing is decided by
// a part of its name.
func (u *usage) call(files *token.FileSet, call *ast.CallExpr) {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if at, ok := makers[function.Sel.Name]; ok && len(call.Args) > at && text(call.Args[at]) != "" {
		u.t.Errorf("%s: class %s is not of the list", files.Position(call.Pos()), text(call.Args[at]))
	}
	if is(function.X, "strings") && len(call.Args) > 0 {
		if of, ok := call.Args[0].(*ast.SelectorExpr); ok && of.Sel.Name == "Class" {
			u.t.Errorf("%s: a kind decides, and no part of a class's name", files.Position(call.Pos()))
		}
	}
}

func is(n ast.Node, name string) bool {
	id, ok := n.(*ast.Ident)
	return ok && id.Name == name
}

// text is the value of a literal, empty if it is none.
func text(n ast.Node) string {
	literal, ok := n.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	value, _ := strconv.Unquote(literal.Value)
	return value
}
