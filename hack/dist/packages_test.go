package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
)

// installed are the modes of what a package installs but for its license, by name.
var installed = map[string]string{"/usr/bin/kubectl-registry": "-rwxr-xr-x", "/usr/bin/kubectl_complete-registry": "-rwxr-xr-x"}

// TestDeb has dpkg install the package into a directory of its own, runs what is there, and removes it.
func TestDeb(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("dpkg is on Debian and Ubuntu:", err)
	}
	release := smallFiles(t)
	for _, arch := range architectures {
		file := filepath.Join(t.TempDir(), "package.deb")
		if err := os.WriteFile(file, []byte(release["plugin/kubectl-registry-v0.2.0-linux-"+arch+".deb"]), 0o600); err != nil {
			t.Fatal(err)
		}
		fields := output(t, "dpkg-deb", "--field", file)
		for _, want := range []string{"Package: kubectl-registry\n", "Version: 0.2.0\n", "Architecture: " + arch + "\n", "Maintainer: The Cluster Registry authors <maintainers@clusterregistry.io>\n", "\n list of clusters that"} {
			if !strings.Contains(fields, want) {
				t.Errorf("%s: %q is missing in:\n%s", arch, want, fields)
			}
		}
		const license = "/usr/share/doc/kubectl-registry/copyright"
		want := maps.Clone(installed)
		want[license] = "-rw-r--r--"
		got := map[string]string{}
		for line := range strings.Lines(output(t, "dpkg-deb", "--contents", file)) {
			column := strings.Fields(line)
			if name := strings.TrimPrefix(column[5], "."); !strings.HasSuffix(name, "/") {
				got[name] = column[0]
			} else if column[0] != "drwxr-xr-x" {
				t.Errorf("%s: %s is %s", arch, name, column[0])
			}
			if column[1] != "0/0" && column[1] != "root/root" || column[3] != "2026-11-20" {
				t.Errorf("%s: there is %s", arch, line)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: it has %v, want %v", arch, got, want)
		}
		if arch == runtime.GOARCH {
			tryDeb(t, file, slices.Collect(maps.Keys(want)))
		}
	}
}

// tryDeb installs a package that has files with these names.
func tryDeb(t *testing.T, file string, names []string) {
	t.Helper()
	root := t.TempDir()
	if os.Getuid() != 0 {
		output(t, "dpkg-deb", "--extract", file, root) // only root may install
		checkRuns(t, root)
		return
	}
	admin := filepath.Join(root, "var/lib/dpkg")
	for _, name := range []string{"updates", "info"} {
		if err := os.MkdirAll(filepath.Join(admin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(admin, "status"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dpkg := []string{"--root=" + root, "--log=/dev/null"}
	output(t, "dpkg", append(dpkg, "--install", file)...)
	checkRuns(t, root)
	if changed := output(t, "dpkg", append(dpkg, "--verify", "kubectl-registry")...); changed != "" {
		t.Errorf("dpkg says of what it has just installed: %s", changed)
	}
	output(t, "dpkg", append(dpkg, "--remove", "kubectl-registry")...)
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(root, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("removed, %s is there: %v", name, err)
		}
	}
}

// checkRuns runs the program of a package, and what kubectl runs for completions.
func checkRuns(t *testing.T, root string) {
	t.Helper()
	bin := filepath.Join(root, "usr/bin")
	for name, want := range map[string]string{"kubectl-registry": "[join a b]\n", "kubectl_complete-registry": "[__complete join a b]\n"} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, name), "join", "a b")
		cmd.Env = []string{"PATH=" + bin}
		if got, err := cmd.CombinedOutput(); err != nil || string(got) != want {
			t.Errorf("%s got the arguments %q, want %q (%v)", name, got, want, err)
		}
	}
}

// output runs a command, which must succeed, and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, failure.String())
	}
	return string(out)
}

// rpmHeader reads a header of a package of RPM, its texts by tag, and returns
// what comes after it: https://rpm-software-management.github.io/rpm/manual/format_v4.html.
func rpmHeader(t *testing.T, content []byte) (texts map[uint32]string, rest []byte) {
	t.Helper()
	texts = map[uint32]string{}
	if !bytes.HasPrefix(content, []byte("\x8e\xad\xe8\x01")) {
		t.Fatalf("there is no header, but %q", content[:min(16, len(content))])
	}
	entries, size := binary.BigEndian.Uint32(content[8:]), binary.BigEndian.Uint32(content[12:])
	index, store := content[16:], content[16+16*entries:][:size]
	for ; entries > 0; entries, index = entries-1, index[16:] {
		tag, kind, offset, count := binary.BigEndian.Uint32(index), binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:]), binary.BigEndian.Uint32(index[12:])
		if kind == 6 || kind == 8 || kind == 9 { // texts
			texts[tag] = string(bytes.ReplaceAll(bytes.Join(bytes.SplitN(store[offset:], []byte{0}, int(count)+1)[:count], []byte(" ")), []byte{0}, nil))
		}
	}
	return texts, content[len(content)-len(index)+int(size):]
}

// TestRPM reads the package of each architecture.
func TestRPM(t *testing.T) {
	release := smallFiles(t)
	for arch, theirs := range map[string]string{"amd64": "x86_64", "arm64": "aarch64"} {
		content := []byte(release["plugin/kubectl-registry-v0.2.0-linux-"+arch+".rpm"])
		if len(content) < 96 || !bytes.HasPrefix(content, []byte("\xed\xab\xee\xdb\x03\x00")) {
			t.Fatalf("%s: it is no package of RPM", arch)
		}
		_, rest := rpmHeader(t, content[96:])
		texts, payload := rpmHeader(t, rest[(8-(len(content)-len(rest))%8)%8:])
		for tag, want := range map[uint32]string{1000: "kubectl-registry", 1001: "0.2.0", 1002: "1", 1007: "localhost", 1014: "Apache-2.0", 1021: "linux", 1022: theirs, 5049: "kubectl"} {
			if texts[tag] != want {
				t.Errorf("%s: tag %d is %q, want %q", arch, tag, texts[tag], want)
			}
		}
		want := maps.Clone(installed)
		want["/usr/share/licenses/kubectl-registry/LICENSE"] = "-rw-r--r--"
		want["/usr/share/licenses/kubectl-registry"] = "drwxr-xr-x"
		if got := payloadOf(t, payload); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: it has %v, want %v", arch, got, want)
		}
	}
}

// payloadOf returns the modes of what a package of RPM installs, by name.
func payloadOf(t *testing.T, payload []byte) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	got, archive := map[string]string{}, cpio.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got[strings.TrimPrefix(header.Name, ".")] = header.FileInfo().Mode().String()
		if header.Uid != 0 || header.Guid != 0 {
			t.Errorf("%s is of user %d and group %d", header.Name, header.Uid, header.Guid)
		}
	}
}

// TestPackageVersion expects that what precedes a release is sorted before it.
func TestPackageVersion(t *testing.T) {
	for tag, want := range map[string]string{"v0.2.0": "0.2.0", "v0.2.0-rc.1": "0.2.0~rc.1", "v1.0.0-alpha-2": "1.0.0~alpha.2"} {
		if got := packageVersion(tag); got != want {
			t.Errorf("the version of %s is %s, want %s", tag, got, want)
		}
	}
}
