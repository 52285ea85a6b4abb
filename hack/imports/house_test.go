package imports

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mostLines is how many lines of Go, tests aside, the package may have through which each
// reconcile goes. A subject that needs more has a package of its own.
const mostLines = 1842

// TestReconcileStaysSmall bounds the package that is the way through: what is easily added there
// has a home elsewhere.
func TestReconcileStaysSmall(t *testing.T) {
	lines := 0
	for _, file := range files(t) {
		if !strings.HasPrefix(file, "operator/clusterregistry/") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(content, []byte("\n"))
	}
	if lines == 0 || lines > mostLines {
		t.Errorf("operator/clusterregistry has %d lines, more than %d: move a subject to a package of its own, which is given an operator/pass.Pass and returns what it found", lines, mostLines)
	}
}

// writesOperation reports whether an expression is status.operation of a registry.
func writesOperation(e ast.Expr) bool {
	field, is := e.(*ast.SelectorExpr)
	if !is || field.Sel.Name != "Operation" {
		return false
	}
	switch of := field.X.(type) {
	case *ast.Ident:
		return of.Name == "status"
	case *ast.SelectorExpr:
		return of.Sel.Name == "Status"
	}
	return false
}

// TestOneWriterOfOperations has operator/operation alone decide which operation of a registry is
// under way: whoever else did could begin a second one, or lose one.
func TestOneWriterOfOperations(t *testing.T) {
	const writer = "operator/operation/run.go"
	found := 0
	for _, file := range files(t) {
		if !strings.HasPrefix(file, "operator/") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			assigned, is := n.(*ast.AssignStmt)
			if !is {
				return true
			}
			for _, to := range assigned.Lhs {
				switch {
				case !writesOperation(to):
				case file == writer:
					found++
				default:
					t.Errorf("%s writes status.operation: use operation.Begin and operation.End", file)
				}
			}
			return true
		})
	}
	if found != 2 {
		t.Errorf("%s writes status.operation at %d places, want where one begins and where it ends", writer, found)
	}
}
