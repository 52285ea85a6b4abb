package clusterregistry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	api             = "../../apis/operator/v1alpha1"
	troubleshooting = "../../docs/how-to/troubleshooting.md"
)

// parsed returns the files of a folder, without tests.
func parsed(t *testing.T, dir string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has no Go files: %v", dir, err)
	}
	var out []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, file)
	}
	return out
}

// text returns what a literal says, false when an expression is none.
func text(expression ast.Expr) (string, bool) {
	literal, is := expression.(*ast.BasicLit)
	if !is || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil
}

// constants returns the API's constants of a type, or, without one, those whose
// names begin with a prefix: the values by their names.
func constants(t *testing.T, kind, prefix string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, file := range parsed(t, api) {
		ast.Inspect(file, func(node ast.Node) bool {
			spec, is := node.(*ast.ValueSpec)
			if !is || len(spec.Values) != 1 {
				return true
			}
			name := spec.Names[0].Name
			named, typed := spec.Type.(*ast.Ident)
			if value, is := text(spec.Values[0]); is && (typed && named.Name == kind || !typed && kind == "" && strings.HasPrefix(name, prefix)) {
				out[name] = value
			}
			return true
		})
	}
	if len(out) == 0 {
		t.Fatalf("there are no constants %s%s", kind, prefix)
	}
	return out
}

// packages returns the folders with the operator's packages.
func packages(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if sources, _ := filepath.Glob(filepath.Join(path, "*.go")); err == nil && entry.IsDir() && len(sources) > 0 {
			out = append(out, path)
		}
		return err
	})
	if err != nil || !slices.Contains(out, "../clusterregistry") {
		t.Fatal(out, err)
	}
	return out
}

// said returns the reasons that the operator gives in words of its own, and the
// names of the API's constants that it uses.
func said(t *testing.T) (literals []string, used map[string]bool) {
	t.Helper()
	used = map[string]bool{}
	var files []*ast.File
	for _, dir := range packages(t) {
		files = append(files, parsed(t, dir)...)
	}
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.SelectorExpr:
				if from, is := n.X.(*ast.Ident); is && from.Name == "operatorv1alpha1" {
					used[n.Sel.Name] = true
				}
			case *ast.KeyValueExpr:
				key, is := n.Key.(*ast.Ident)
				if value, literal := text(n.Value); is && literal && strings.EqualFold(key.Name, "reason") {
					literals = append(literals, value)
				}
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					if i >= len(n.Rhs) || !strings.EqualFold(named(left), "reason") {
						continue
					}
					if value, literal := text(n.Rhs[i]); literal && value != "" {
						literals = append(literals, value)
					}
				}
			case *ast.CallExpr:
				at := map[string]int{"event": 2, "Event": 1}
				if i, is := at[named(n.Fun)]; is && i < len(n.Args) {
					if value, literal := text(n.Args[i]); literal {
						literals = append(literals, value)
					}
				}
			}
			return true
		})
	}
	return literals, used
}

// named returns the name of a variable, a field or a function.
func named(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.SelectorExpr:
		return of.Sel.Name
	}
	return ""
}

// TestTroubleshooting compares the guide with the code: every reason that a
// condition or an event can have is an entry there, and every entry is such a
// reason.
func TestTroubleshooting(t *testing.T) {
	literals, used := said(t)
	reasons := map[string]bool{}
	for name, value := range constants(t, "", "Reason") {
		if !used[name] {
			t.Errorf("nothing sets %s: remove the constant", name)
		}
		reasons[value] = true
	}
	for _, kind := range []string{"OperationPhase", "TransitionState"} {
		for _, value := range constants(t, kind, "") {
			reasons[value] = true
		}
	}
	for _, value := range literals {
		reasons[value] = true
	}
	if !reasons["MemberReplaced"] || !reasons["BackendDown"] || !reasons["StorageMigration"] || !reasons["MembersChanged"] {
		t.Fatalf("the reasons are not found any more, only %v", slices.Sorted(maps.Keys(reasons)))
	}

	guide, err := os.ReadFile(troubleshooting)
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^(?:### (\\w+)$|\\| ((?:`\\w+`,? )+)\\|)").FindAllStringSubmatch(string(guide), -1) {
		for _, entry := range regexp.MustCompile(`\w+`).FindAllString(match[1]+match[2], -1) {
			entries[entry] = true
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		if !entries[reason] {
			t.Errorf("%s has no entry for the reason %s", troubleshooting, reason)
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(entries)) {
		if !reasons[entry] {
			t.Errorf("%s has an entry for %s, which is no reason", troubleshooting, entry)
		}
	}
	for _, condition := range constants(t, "", "Condition") {
		if !strings.Contains(string(guide), "\n## "+condition+"\n") {
			t.Errorf("%s has no section about the condition %s", troubleshooting, condition)
		}
	}
}
