package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// elsewhere are packages of e2e that no part runs by their name: they are no tests of a
// cluster, they measure, or a script runs them.
var elsewhere = []string{"bench", "framework", "history", "integration", "measure", "olm", "session", "skew"}

// apart are tests that "make e2e-run" leaves out: a target of the Makefile runs each.
var apart = regexp.MustCompile(`^Test(Main|Cells|Bench|SecondCluster(Save|Restore))$`)

// TestEveryTestIsInOnePart has no test be left out, nor be run twice.
func TestEveryTestIsInOnePart(t *testing.T) {
	root := filepath.Join("..", "..", "e2e")
	dirs, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		name := dir.Name()
		var homes int
		for _, list := range [][]string{elsewhere, whole, slices.Collect(maps.Keys(split))} {
			if slices.Contains(list, name) {
				homes++
			}
		}
		if homes != 1 {
			t.Errorf("e2e/%s is in %d of whole, split and elsewhere", name, homes)
		}
		for _, test := range tests(t, filepath.Join(root, name)) {
			var matched []string
			for _, s := range split[name] {
				if regexp.MustCompile(s.tests).MatchString(test) {
					matched = append(matched, s.tests)
				}
			}
			if len(split[name]) > 0 && len(matched) != 1 {
				t.Errorf("e2e/%s: %s is matched by %q", name, test, matched)
			}
		}
		for _, s := range split[name] {
			if !slices.ContainsFunc(tests(t, filepath.Join(root, name)), regexp.MustCompile(s.tests).MatchString) {
				t.Errorf("e2e/%s has no test that %s matches", name, s.tests)
			}
		}
	}
}

// tests returns the names of the tests in a directory.
func tests(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(content, -1) {
			if name := string(match[1]); !apart.MatchString(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// TestPartsFit has parts differ in name, none be longer than longest, and no pattern have what
// make would take for a variable.
func TestPartsFit(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range parts() {
		if seen[p.name] {
			t.Errorf("there are two parts %s", p.name)
		}
		seen[p.name] = true
		if p.minutes <= 0 || p.minutes > longest {
			t.Errorf("%s is to take %d minutes", p.name, p.minutes)
		}
		if text := strings.Join(append(p.env, p.command...), " "); strings.Contains(text, "$") {
			t.Errorf("%s: %s has a $", p.name, text)
		}
	}
}

// TestEveryUndertakingIsInOnePart has no undertaking of the simulation be left out of what else
// fails at each of its steps, nor be lived twice.
func TestEveryUndertakingIsInOnePart(t *testing.T) {
	names, matched := namesOfUndertakings(t), map[string][]string{}
	for _, p := range parts() {
		if !slices.Equal(p.command, words("make second-failures")) {
			continue
		}
		for _, assignment := range p.env {
			for pattern := range strings.SplitSeq(strings.TrimPrefix(assignment, "RUN="), "|") {
				before := len(matched)
				for _, name := range names {
					if regexp.MustCompile(pattern).MatchString(name) {
						matched[name] = append(matched[name], p.name)
					}
				}
				if len(matched) == before {
					t.Errorf("%s: %q matches no undertaking that nothing else does", p.name, pattern)
				}
			}
		}
	}
	for _, name := range names {
		if len(matched[name]) != 1 {
			t.Errorf("%s is matched by %q", name, matched[name])
		}
	}
}

// namesOfUndertakings returns the names that the undertakings of the simulation have as tests.
func namesOfUndertakings(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "operator", "simulation", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			list, _ := node.(*ast.CompositeLit)
			if list == nil {
				return true
			}
			if kind, _ := list.Type.(*ast.ArrayType); kind != nil {
				if of, _ := kind.Elt.(*ast.Ident); of != nil && of.Name == "undertaking" {
					for _, element := range list.Elts {
						names = append(names, nameOfUndertaking(t, element))
					}
				}
			}
			return true
		})
	}
	if len(names) == 0 {
		t.Fatal("the simulation has no undertakings")
	}
	return names
}

// nameOfUndertaking returns the name in a literal of an undertaking.
func nameOfUndertaking(t *testing.T, literal ast.Expr) string {
	t.Helper()
	for _, field := range literal.(*ast.CompositeLit).Elts {
		pair := field.(*ast.KeyValueExpr)
		if pair.Key.(*ast.Ident).Name == "name" {
			name, err := strconv.Unquote(pair.Value.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			return strings.ReplaceAll(name, " ", "_")
		}
	}
	t.Fatal("an undertaking of the simulation has no name")
	return ""
}
