package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/hack/git"
	"github.com/clusterregistry/operator/hack/product"
)

// always are files and directories that each part depends on, beside Go packages: what is
// installed, what it is installed on, and how tests are run.
var always = []string{
	"Makefile", "manifests", "go.mod", "go.sum", "apis", "client", "provider",
	"hack/go.mod", "hack/go.sum", "hack/build", "hack/cluster", "hack/images", "hack/install", "hack/product", "hack/run",
}

// tree knows the files of a commit, and which packages need which.
type tree struct {
	// blobs are the hashes that git has of files, by path.
	blobs map[string]string
	// needs are the directories that a package's program or tests are made of, by directory.
	needs map[string][]string
}

// readTree reads the commit that is checked out.
func readTree(ctx context.Context, dir string) (*tree, error) {
	listed, err := git.Run(ctx, dir, "ls-tree", "-r", "-z", "HEAD")
	if err != nil {
		return nil, err
	}
	t := &tree{blobs: map[string]string{}, needs: map[string][]string{}}
	for entry := range strings.SplitSeq(strings.Trim(listed, "\x00"), "\x00") {
		head, name, found := strings.Cut(entry, "\t")
		if fields := strings.Fields(head); found && len(fields) == 3 {
			t.blobs[name] = fields[2]
		}
	}
	return t, t.readNeeds(ctx, dir)
}

// readNeeds asks Go. Variants of a package for tests count as the package.
func (t *tree) readNeeds(ctx context.Context, dir string) error {
	root, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	format := `{{if not .Standard}}{{.Dir}}{{"\t"}}{{.ImportPath}}{{range .Deps}}{{"\t"}}{{.}}{{end}}{{end}}`
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "-f", format, "./e2e/...", "./operator", "./apiserver", "./helper/...", "./controller", "./cli/kubectl-registry")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args[:4], " "), err)
	}
	dirs := map[string]string{} // by import path, of this repository alone
	deps := map[string]map[string]bool{}
	for scanner := bufio.NewScanner(strings.NewReader(string(out))); scanner.Scan(); {
		fields := strings.Split(scanner.Text(), "\t")
		own, err := filepath.Rel(root, fields[0])
		if err != nil || strings.HasPrefix(own, "..") {
			continue
		}
		for _, name := range fields[1:] {
			name, _, _ = strings.Cut(name, " ")
			if deps[own] == nil {
				deps[own] = map[string]bool{}
			}
			deps[own][name] = true
		}
		name, _, _ := strings.Cut(fields[1], " ")
		dirs[name] = own
	}
	for own, names := range deps {
		for name := range names {
			if d, is := dirs[name]; is {
				t.needs[own] = append(t.needs[own], d)
			}
		}
	}
	return nil
}

// inputs returns the hash of what a part depends on: of its tests and the programs, all
// files in the directories of their packages and below testdata there; what is in always;
// and how it is run.
func (t *tree) inputs(p part) (string, error) {
	chosen := map[string]bool{}
	for _, name := range p.tests {
		dir := "e2e/" + name
		if len(t.needs[dir]) == 0 {
			return "", fmt.Errorf("part %s: there is no Go package in %s", p.name, dir)
		}
		for _, d := range t.needs[dir] {
			chosen[d] = true
		}
	}
	for _, program := range product.Programs {
		for _, d := range t.needs[path.Clean(program.Package)] {
			chosen[d] = true
		}
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %q %+v %v\n", p.command, p.env, p.cluster, p.busy)
	for _, name := range slices.Sorted(maps.Keys(t.blobs)) {
		if len(p.tests) == 0 && name != ledgerFile || within(name, chosen) {
			fmt.Fprintf(hash, "%s %s\n", t.blobs[name], name)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:12]), nil
}

// within reports whether a file is in one of the directories, below testdata in one, or is
// among what always matters.
func within(name string, dirs map[string]bool) bool {
	dir, _, _ := strings.Cut(path.Dir(name)+"/", "/testdata/")
	return dirs[strings.TrimSuffix(dir, "/")] || slices.ContainsFunc(always, func(a string) bool {
		return name == a || strings.HasPrefix(name, a+"/")
	})
}
