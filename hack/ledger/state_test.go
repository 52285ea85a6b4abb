package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/hack/jsonl"
)

func at(inputs, result string) row { return row{Part: "p", Inputs: inputs, Result: result} }

// TestFresh has a part be fresh while its last run passed with what it depends on.
func TestFresh(t *testing.T) {
	other := row{Part: "other", Inputs: "b", Result: ok}
	for _, test := range []struct {
		reason string
		rows   []row
		fresh  bool
		now    string
	}{
		{"no row", nil, false, "to be run"},
		{"another part's row", []row{other}, false, "to be run"},
		{"passed", []row{at("b", ok)}, true, "fresh"},
		{"passed with other inputs", []row{at("a", ok)}, false, "what it depends on has changed"},
		{"passed, with other inputs later", []row{at("b", ok), at("a", ok)}, false, "what it depends on has changed"},
		{"failed since", []row{at("b", ok), at("b", "FAILED: x")}, false, "FAILED: x"},
		{"passed since", []row{at("b", "FAILED"), at("b", ok), other}, true, "fresh"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := state{part: part{name: "p"}, inputs: "b", age: never}
			s.read(test.rows)
			if s.fresh() != test.fresh || s.now() != test.now {
				t.Errorf("fresh: %v, %q", s.fresh(), s.now())
			}
		})
	}
}

// TestFitting chooses what failed, what never passed, and then what passed longest ago, and
// fills the time with shorter ones.
func TestFitting(t *testing.T) {
	passed := func(name string, age, seconds int) state {
		return state{part: part{name: name, minutes: 70}, inputs: "b", age: age, passed: &row{Inputs: "a", Seconds: seconds, Result: ok}}
	}
	failed := passed("failed", 1, 600)
	failed.last = &row{Result: "FAILED"}
	fresh := passed("fresh", 500, 60)
	fresh.passed.Inputs, fresh.last = "b", fresh.passed
	states := []state{
		fresh, passed("recent", 2, 60), passed("long ago", 200, 3000), passed("before that", 300, 600),
		{part: part{name: "never", minutes: 30}, age: never}, failed,
	}
	for minutes, want := range map[int][]string{
		5:    {"recent"},
		50:   {"failed", "never", "recent"},
		60:   {"failed", "never", "before that", "recent"},
		1000: {"failed", "never", "before that", "long ago", "recent"},
	} {
		var got []string
		for _, s := range fitting(states, minutes) {
			got = append(got, s.part.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d minutes: %q, want %q", minutes, got, want)
		}
	}
}

func TestOld(t *testing.T) {
	states := []state{{part: part{name: "recent"}, age: 100}, {part: part{name: "long ago"}, age: 101}, {part: part{name: "never"}, age: never}}
	var out bytes.Buffer
	if err := old(&out, states, 100); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasSuffix(got, "): long ago, never\n") {
		t.Errorf("it prints %q", got)
	}
	out.Reset()
	for range 5 {
		states = append(states, states[2])
	}
	if err := old(&out, states, 100); err != nil || !strings.HasSuffix(out.String(), ": long ago, never, never, never, never, and 2 more\n") {
		t.Errorf("of many it prints %q, %v", out.String(), err)
	}
	out.Reset()
	if err := old(&out, states[:1], 100); err != nil || out.Len() > 0 {
		t.Errorf("of none it prints %q, %v", out.String(), err)
	}
}

// TestInputs changes the hash by all that a part depends on, and by nothing else.
func TestInputs(t *testing.T) {
	fresh := func() *tree {
		return &tree{
			blobs: map[string]string{
				"e2e/faults/a_test.go": "1", "e2e/faults/testdata/x/y": "1", "e2e/install/a_test.go": "1",
				"operator/main.go": "1", "operator/plan/plan.go": "1", "operator/unused/u.go": "1",
				"manifests/a.yaml": "1", "docs/a.md": "1", ledgerFile: "1", "hack/cluster/local/l.go": "1",
			},
			needs: map[string][]string{"e2e/faults": {"e2e/faults"}, "operator": {"operator", "operator/plan"}},
		}
	}
	p := part{name: "p", tests: []string{"faults"}, command: []string{"make"}, cluster: &cluster{version: "v1"}}
	hash := func(tree *tree, p part) string {
		t.Helper()
		got, err := tree.inputs(p)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	before := hash(fresh(), p)
	for file, changes := range map[string]bool{
		"e2e/faults/a_test.go": true, "e2e/faults/testdata/x/y": true, "operator/main.go": true, "operator/plan/plan.go": true,
		"manifests/a.yaml": true, "hack/cluster/local/l.go": true,
		"e2e/install/a_test.go": false, "operator/unused/u.go": false, "docs/a.md": false, ledgerFile: false,
	} {
		changed := fresh()
		changed.blobs[file] = "2"
		if got := hash(changed, p) != before; got != changes {
			t.Errorf("a change of %s changes the hash: %v", file, got)
		}
		if file != ledgerFile && hash(changed, part{}) == hash(fresh(), part{}) {
			t.Errorf("a part that depends on all files does not depend on %s", file)
		}
	}
	otherHost, otherFlag, busy := p, p, p
	otherHost.cluster, otherFlag.env, busy.busy = &cluster{version: "v2"}, []string{"A=b"}, true
	for _, other := range []part{otherHost, otherFlag, busy} {
		if hash(fresh(), other) == before {
			t.Errorf("%+v has the hash of another way to run it", other)
		}
	}
	if _, err := fresh().inputs(part{name: "q", tests: []string{"gone"}}); err == nil || !strings.Contains(err.Error(), "e2e/gone") {
		t.Errorf("a part of no package: %v", err)
	}
}

// TestTreeOfThisRepository has parts depend on what they run.
func TestTreeOfThisRepository(t *testing.T) {
	tree, err := readTree(t.Context(), filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for dir, wants := range map[string][]string{
		"operator":   {"operator", "operator/clusterregistry", "apis/operator/v1alpha1"},
		"apiserver":  {"apiserver/storage/cluster", "apis/clusterregistry/v1beta1"},
		"e2e/faults": {"e2e/faults", "e2e/framework"},
	} {
		for _, want := range wants {
			if !slices.Contains(tree.needs[dir], want) {
				t.Errorf("%s does not need %s; it needs %q", dir, want, tree.needs[dir])
			}
		}
	}
	for _, p := range parts() {
		if _, err := tree.inputs(p); err != nil {
			t.Error(err)
		}
	}
}

// TestRun runs parts in a repository of its own.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\n" + `shift; name=$1; shift; "$@" && r=ok || r=FAILED; echo "{\"name\":\"$name\",\"pressure\":\"7%\",\"result\":\"$r\",\"retries\":2}" >>"$PARTS_ROWS"; [ $r = ok ]` + "\n"
	for name, content := range map[string]string{"bin/hack/parts": script, ".gitignore": "bin\n.test\n", "file": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil { //nolint:gosec // one of them is run
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	good := state{part: part{name: "good", command: []string{"true"}, env: []string{"A=b"}}, inputs: "i"}
	bad := state{part: part{name: "bad", command: []string{"false"}, busy: true}, inputs: "i"}
	var out bytes.Buffer
	err := runAll(t.Context(), dir, []state{good, bad}, &out)
	if err == nil || !strings.Contains(err.Error(), "1 of 2 parts failed: bad") {
		t.Errorf("%v\n%s", err, &out)
	}
	rows, err := jsonl.Read[row](filepath.Join(dir, ledgerFile))
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v: %v", rows, err)
	}
	if r := rows[0]; r.Part != "good" || !r.passed() || r.Inputs != "i" || len(r.Commit) != 40 || r.Load != "7%" || r.Retries != 2 {
		t.Errorf("the row is %+v", r)
	}
	if r := rows[1]; r.Part != "bad" || r.Result != "FAILED" {
		t.Errorf("the row is %+v", r)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runAll(cancelled, dir, []state{good}, &out); err == nil {
		t.Error("an interrupted part has passed")
	}
	editing := state{part: part{name: "editing", command: []string{"sh", "-c", "echo more >file"}}}
	if err := runAll(t.Context(), dir, []state{editing}, &out); err == nil || !strings.Contains(err.Error(), "part editing has no row: what it ran was changed meanwhile") {
		t.Errorf("a tree that was changed while a part ran: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := runAll(t.Context(), dir, []state{good}, &out); err == nil || !strings.Contains(err.Error(), "commit first") {
		t.Errorf("a part of a changed tree: %v", err)
	}
	if rows, err := jsonl.Read[row](filepath.Join(dir, ledgerFile)); err != nil || len(rows) != 2 {
		t.Errorf("it has a row: %v, %v", rows, err)
	}
}

// TestAccount has a step that failed fail the part, and counts the retries of a script's steps.
func TestAccount(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	none, whole := filepath.Join(dir, "none"), `{"name":"p","pressure":"9%","result":"ok"}`+"\n"
	for _, test := range []struct{ reason, own, script, want string }{
		{"no row", "", "", "FAILED: it did not run"},
		{"its row", whole, "", ok},
		{"a cluster that failed", `{"name":"cluster","result":"FAILED"}` + "\n", "", "FAILED in cluster"},
		{"a script's part", whole, `{"name":"e2e","result":"ok","retries":3}` + "\n", ok},
	} {
		t.Run(test.reason, func(t *testing.T) {
			script := none
			if test.script != "" {
				script = write("script", test.script)
			}
			r, err := account(write("own", test.own), script, row{Part: "p"})
			if err != nil || r.Result != test.want || (test.script != "") != (r.Retries == 3) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	if _, err := account(write("own", "{"), none, row{}); err == nil || !strings.Contains(err.Error(), "own:1") {
		t.Errorf("a broken file: %v", err)
	}
}
