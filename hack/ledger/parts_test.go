package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
