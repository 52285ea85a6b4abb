// Command fixed runs a command in a copy of the checkout that is always at the same place,
// with times of change that follow from what is in the files:
//
//	fixed COMMAND [ARG...]
//
// "go test" knows a result again by the path, size and time of change of each file that a
// test has opened. So a fresh clone repeats such tests, and this copy of it does not.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/clusterregistry/operator/hack/git"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "error: fixed COMMAND [ARG...]: there is no command")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("no directory for the copy: %w; set XDG_CACHE_HOME or HOME", err)
	}
	dir := filepath.Join(cache, "clusterregistry-operator", "checkout")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// Another run has the copy until it has ended.
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if err := copyTo(ctx, ".", dir); err != nil {
		return fmt.Errorf("copy the checkout to %s: %w", dir, err)
	}
	// Tests that ask where temporary files belong get the same answer each time, too.
	temp := "/tmp/clusterregistry-fixed"
	if err := errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o700)); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// git must not write what it learns about the copy into the checkout's index.
	cmd.Env = append(os.Environ(), "PWD="+dir, "TMPDIR="+temp, "GIT_OPTIONAL_LOCKS=0")
	return cmd.Run()
}

// copyTo makes dir hold what git has, or would add, of the work tree in source, and a link
// to its history.
func copyTo(ctx context.Context, source, dir string) error {
	list, err := git.Run(ctx, source, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	if err != nil {
		return err
	}
	history, err := git.Run(ctx, source, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return err
	}
	keep := map[string]bool{".": true, ".git": true}
	for name := range strings.SplitSeq(strings.Trim(list, "\x00"), "\x00") {
		err := copyFile(filepath.Join(source, name), filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is deleted, and that is not committed
		}
		if err != nil {
			return err
		}
		for ; !keep[name]; name = filepath.Dir(name) {
			keep[name] = true
		}
	}
	link := filepath.Join(dir, ".git")
	if err := os.WriteFile(link, []byte("gitdir: "+history+"\n"), 0o644); err != nil {
		return err
	}
	return errors.Join(os.Chtimes(link, epoch, epoch), removeOthers(dir, keep))
}

// removeOthers removes what is not to be kept, and gives the directories that are one time
// of change.
func removeOthers(dir string, keep map[string]bool) error {
	var kept []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case keep[name] && entry.IsDir():
			kept = append(kept, path)
		case keep[name]:
		case entry.IsDir():
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return fs.SkipDir
		default:
			return os.Remove(path)
		}
		return nil
	})
	for _, path := range kept {
		err = errors.Join(err, os.Chtimes(path, epoch, epoch))
	}
	return err
}

// copyFile copies a file or a symbolic link.
func copyFile(source, target string) error {
	info, err := os.Lstat(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if there, err := os.Lstat(target); err == nil && there.Mode().Type() != info.Mode().Type() {
		if err := os.RemoveAll(target); err != nil {
			return err
		}
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return copyLink(source, target)
	}
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(target); err != nil || !bytes.Equal(old, content) {
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return err
		}
	}
	// A umask is nothing that a result depends on.
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	changed := changeTime(content)
	return errors.Join(os.Chmod(target, mode), os.Chtimes(target, changed, changed))
}

func copyLink(source, target string) error {
	to, err := os.Readlink(source)
	if err != nil {
		return err
	}
	if there, err := os.Readlink(target); err == nil && there == to {
		return nil
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(to, target)
}

// epoch is long enough ago: "go test" does not trust a time of change that is just now.
var epoch = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

// changeTime returns a time that two contents share only by a chance of 1 in 2^58.
func changeTime(content []byte) time.Time {
	sum := sha256.Sum256(content)
	return epoch.Add(time.Duration(binary.BigEndian.Uint64(sum[:]) >> 6)) // within nine years
}
