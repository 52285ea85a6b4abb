package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// tempPrefix begins the name of a part's directory for temporary files. It is short: the
// path of a socket has room for 107 bytes.
const tempPrefix = "crpart-"

// newTemp makes a directory for temporary files.
func newTemp() (string, error) {
	name, err := ownName()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(os.TempDir(), tempPrefix+name)
	return dir, os.Mkdir(dir, 0o700)
}

// endAbandoned ends what parts of runs that were killed have left running, and removes
// their files.
func endAbandoned(out io.Writer) error {
	var errs []error
	if root, _, err := cpuHierarchy(); err == nil { // else no part had a cgroup
		errs = append(errs, eachAbandoned(out, filepath.Join(root, cgroupPrefix), func(dir string) error {
			(&cgroup{dir}).remove(out)
			return nil
		}))
	}
	return errors.Join(append(errs, eachAbandoned(out, filepath.Join(os.TempDir(), tempPrefix), os.RemoveAll))...)
}

func eachAbandoned(out io.Writer, prefix string, remove func(string) error) error {
	dirs, err := filepath.Glob(prefix + "*")
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		id, start, _ := strings.Cut(strings.TrimPrefix(dir, prefix), "-")
		pid, err := strconv.Atoi(id)
		if err != nil {
			continue // it is not one of these
		}
		if now, err := startTime(pid); err == nil && now == start {
			continue
		}
		fmt.Fprintf(out, "a run that was killed has left %s\n", dir)
		errs = append(errs, remove(dir))
	}
	return errors.Join(errs...)
}

// ownName names what belongs to this process: its id is used again, id and start time
// together are not.
func ownName() (string, error) {
	start, err := startTime(os.Getpid())
	return fmt.Sprintf("%d-%s", os.Getpid(), start), err
}

// startTime returns when a process was started, in ticks since the computer was.
func startTime(pid int) (string, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The program's name, in parentheses, may have spaces. After it come fields 3, 4, ...
	fields := strings.Fields(string(content)[strings.LastIndex(string(content), ")")+1:])
	const started = 22 - 3
	if len(fields) <= started {
		return "", fmt.Errorf("/proc/%d/stat has no field 22", pid)
	}
	return fields[started], nil
}
