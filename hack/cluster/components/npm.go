package components

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// lockFile pins the npm packages of a component.
const lockFile = "package-lock.json"

// programs returns the component's programs, by name.
func (c Component) programs() map[string]string {
	if c.Scripts != nil {
		return c.Scripts
	}
	return c.Packages
}

// install installs the packages that a component pins, with npm, and writes a launcher for
// each program. No script of a package is run, and the Node.js that runs the programs is
// pinned as well: the computer's own, which may be too old for them, installs it.
func (b Builder) install(ctx context.Context, c Component, module, dir string, programs []string) (err error) {
	stop := b.narrate(c.String() + ": npm packages")
	defer func() { stop(err) }()
	if err := b.ensureNpm(ctx); err != nil {
		return fmt.Errorf("installing %s failed: %w", c, err)
	}
	for _, name := range []string{"package.json", lockFile} {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
		if err != nil {
			return err
		}
	}
	// It begins with removing what an interrupted one has left.
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("installing %s failed: %w\n%s\nrun the command there again to see it whole: cd %s && %s", c, err, Tail(output.String(), 20), dir, strings.Join(cmd.Args, " "))
	}
	node, err := pinnedNode(dir)
	if err != nil {
		return fmt.Errorf("installing %s failed: %w", c, err)
	}
	for _, program := range programs {
		script, ok := c.Scripts[program]
		if !ok {
			return fmt.Errorf("%s has no program %q", c, program)
		}
		if err := launcher(filepath.Join(dir, program), node, filepath.Join(dir, "node_modules", script)); err != nil {
			return err
		}
	}
	return nil
}

// pinnedNode returns the Node.js that was installed beside a component.
func pinnedNode(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "node_modules", "node-linux-*", "bin", "node"))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("its package.json pins no Node.js for this computer's processor; found are %q", found)
	}
	return found[0], nil
}

// launcher writes a program that becomes the script, and has its name only when it is whole.
func launcher(path, node, script string) error {
	if _, err := os.Stat(script); err != nil {
		return err
	}
	partial := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".partial")
	content := fmt.Sprintf("#!/bin/sh\nexec '%s' '%s' \"$@\"\n", node, script)
	if err := os.WriteFile(partial, []byte(content), 0o755); err != nil { //nolint:gosec // it is run
		return err
	}
	return os.Rename(partial, path)
}

// ensureNpm installs npm, where that can be done and there is none.
func (b Builder) ensureNpm(ctx context.Context) error {
	_, err := exec.LookPath("npm")
	if err == nil {
		return nil
	}
	if _, noApt := exec.LookPath("apt-get"); noApt != nil || os.Getuid() != 0 {
		return fmt.Errorf("%w; install Node.js with npm", err)
	}
	fmt.Fprintln(b.Log, "  install Debian packages: nodejs npm")
	for _, args := range [][]string{{"update"}, {"install", "--yes", "--no-install-recommends", "--no-remove", "nodejs", "npm"}} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if output, err := cmd.CombinedOutput(); err != nil {
			return errors.Join(fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, Tail(string(output), 20)), errors.New("install Node.js with npm by hand"))
		}
	}
	return nil
}
