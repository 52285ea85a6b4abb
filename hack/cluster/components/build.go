// Package components builds the programs that the local cluster consists of,
// from the Go module proxy, each pinned by a module of its own beside this file
// (NAME/VERSION/go.mod and go.sum), into a cache that outlives checkouts. What is
// written for Node.js comes from the npm registry and is pinned by a package-lock.json.
package components

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	"time"

	"golang.org/x/sys/unix"
)

// Builder builds components.
type Builder struct {
	// Source is the folder that holds NAME/VERSION modules.
	Source string
	// Cache is the folder for built programs; see DefaultCache.
	Cache string
	// Arch is what programs are built for, one of Go's names; empty means this
	// machine's architecture.
	Arch string
	// Log receives a line for each build that starts, goes on or ends.
	Log io.Writer
}

// DefaultCache returns the project's folder in the user's cache
// ($XDG_CACHE_HOME, else ~/.cache).
func DefaultCache() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for built programs: %w; set XDG_CACHE_HOME or HOME", err)
	}
	return filepath.Join(base, "clusterregistry-operator"), nil
}

// Ensure returns the folder that holds the named programs of c (all of them
// when none is named), and builds what is missing. Two processes that need the
// same component build it once.
func (b Builder) Ensure(ctx context.Context, c Component, programs ...string) (string, error) {
	if len(programs) == 0 {
		programs = slices.Sorted(maps.Keys(c.programs()))
	}
	module := filepath.Join(b.Source, c.Name, c.Version)
	key, err := fingerprint(module, c.LDFlags+c.Tags, b.arch())
	if err != nil {
		return "", fmt.Errorf("%s is not pinned in this checkout: %w", c, err)
	}
	dir := filepath.Join(b.Cache, c.Name, c.Version+"-"+key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := Lock(filepath.Join(dir, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	missing := slices.DeleteFunc(slices.Clone(programs), func(program string) bool {
		_, err := os.Stat(filepath.Join(dir, program))
		return err == nil
	})
	if len(missing) == 0 {
		return dir, nil
	}
	if c.Scripts != nil {
		return dir, b.install(ctx, c, module, dir, missing)
	}
	return dir, b.build(ctx, c, module, dir, missing)
}

func (b Builder) arch() string { return cmp.Or(b.Arch, runtime.GOARCH) }

// build compiles programs one after the other, so that an interrupted build
// keeps what it finished.
func (b Builder) build(ctx context.Context, c Component, module, dir string, programs []string) error {
	for _, program := range programs {
		pkg, ok := c.Packages[program]
		if !ok {
			return fmt.Errorf("%s has no program %q", c, program)
		}
		stop := b.narrate(fmt.Sprintf("%s: %s", c, program))
		partial := filepath.Join(dir, "."+program+".partial")
		cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false",
			"-ldflags", "-s -w "+c.LDFlags, "-tags", c.Tags, "-o", partial, pkg)
		cmd.Dir = module
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+b.arch(), "GOFLAGS=", "GOWORK=off")
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		err := cmd.Run()
		stop(err)
		if err != nil {
			return fmt.Errorf("building %s of %s failed: %w\n%s\nbuilt in %s; run the command there again to see it whole:\n  %s",
				program, c, err, Tail(output.String(), 20), module, strings.Join(cmd.Args, " "))
		}
		if err := os.Rename(partial, filepath.Join(dir, program)); err != nil {
			return err
		}
	}
	return nil
}

// ModuleDir returns the folder with the source of a module that c depends on.
func (b Builder) ModuleDir(ctx context.Context, c Component, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = filepath.Join(b.Source, c.Name, c.Version)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("download %s for %s: %w: %s", module, c, err, out)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return "", err
	}
	return downloaded.Dir, nil
}

// narrate tells that a build began, every 30 s that it goes on, and when it ended.
func (b Builder) narrate(what string) func(error) {
	start := time.Now()
	elapsed := func() time.Duration { return time.Since(start).Round(time.Second) }
	fmt.Fprintf(b.Log, "  build %s\n", what)
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(30 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintf(b.Log, "  build %s: %s so far\n", what, elapsed())
			case <-done:
				return
			}
		}
	}()
	return func(err error) {
		close(done)
		verb := "built"
		if err != nil {
			verb = "failed"
		}
		fmt.Fprintf(b.Log, "  %s %s in %s\n", verb, what, elapsed())
	}
}

// Tail returns the last n lines of text.
func Tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

// fingerprint hashes what decides a build's outcome: the module's files, the
// flags, the toolchain and the architecture.
func fingerprint(module, flags, arch string) (string, error) {
	if _, err := os.Stat(filepath.Join(module, "go.mod")); err != nil {
		if _, locked := os.Stat(filepath.Join(module, lockFile)); locked != nil {
			return "", err
		}
	}
	h := sha256.New()
	fmt.Fprintln(h, flags, runtime.Version(), arch)
	err := filepath.WalkDir(module, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		rel, relErr := filepath.Rel(module, path)
		fmt.Fprintf(h, "%s %d\n%s", rel, len(content), content)
		return errors.Join(err, relErr)
	})
	return hex.EncodeToString(h.Sum(nil))[:10], err
}

// Lock takes an exclusive lock on the file at path, which it makes, and waits
// for it as long as it takes.
func Lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
