package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A cgroup holds the processes of a part. Its name has the process id and the start time
// of the process that made it, so that what a killed one has left is recognized.
type cgroup struct{ dir string }

const (
	cgroupRoot   = "/sys/fs/cgroup"
	cgroupPrefix = "clusterregistry-part-"
	// lowShares is what low parts get beside 1024 of others (on cgroup v2: lowWeight
	// beside 100), of which each machine of the cluster is one. It is not less, nor cpu.idle:
	// one that gets nothing for seconds can hold a lock of the kernel that others wait for, an
	// etcd elects its leader again and again, and tests take that for a server that hangs.
	lowShares, lowWeight = "256", "25"
)

// cpuHierarchy returns the root of the hierarchy with the cpu controller, and whether that
// is cgroup v2. Parts are made at the root, beside the local cluster's machines
// (hack/cluster/machine/cgroup.go): in a cgroup of this process they would compete with
// this process's others alone, and share its whole weight against the machines.
func cpuHierarchy() (string, bool, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cpu", "cpu.shares")); err == nil {
		return filepath.Join(cgroupRoot, "cpu"), false, nil
	}
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err != nil {
		return "", false, fmt.Errorf("%s has no cpu controller", cgroupRoot)
	}
	return cgroupRoot, true, nil
}

// newCgroup makes a cgroup, with the low weight when low is set.
func newCgroup(low bool) (*cgroup, error) {
	root, unified, err := cpuHierarchy()
	if err != nil {
		return nil, err
	}
	file, weight := "cpu.shares", lowShares
	if unified {
		file, weight = "cpu.weight", lowWeight
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+cpu"), 0); err != nil {
			return nil, err
		}
	}
	name, err := ownName()
	if err != nil {
		return nil, err
	}
	group := &cgroup{filepath.Join(root, cgroupPrefix+name)}
	if err := os.Mkdir(group.dir, 0o755); err != nil {
		return nil, err
	}
	if low {
		if err := os.WriteFile(filepath.Join(group.dir, file), []byte(weight), 0); err != nil {
			return nil, errors.Join(err, os.Remove(group.dir))
		}
	}
	return group, nil
}

// enter returns a command that runs args in the cgroup.
func (g *cgroup) enter(args []string) []string {
	return append([]string{"sh", "-c", `echo 0 >"$0" && exec "$@"`, g.procs()}, args...)
}

func (g *cgroup) procs() string { return filepath.Join(g.dir, "cgroup.procs") }

func (g *cgroup) processes() ([]int, error) {
	content, err := os.ReadFile(g.procs())
	if err != nil {
		return nil, err
	}
	var pids []int
	for field := range strings.FieldsSeq(string(content)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// kill ends every process, and waits until all have ended.
func (g *cgroup) kill() error {
	if g == nil {
		return nil
	}
	for deadline := time.Now().Add(grace); ; time.Sleep(50 * time.Millisecond) {
		pids, err := g.processes()
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s still has processes %v after SIGKILL", g.dir, pids)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // an error means that it has ended
		}
	}
}

// remove ends what a part has left running, which it names, and removes the cgroup.
func (g *cgroup) remove(out io.Writer) {
	pids, err := g.processes()
	for _, pid := range pids {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		fmt.Fprintf(out, "left running, and ended now: process %d, %s\n", pid, strings.ReplaceAll(string(line), "\x00", " "))
	}
	if err = errors.Join(err, g.kill()); err == nil {
		err = os.Remove(g.dir)
	}
	if err != nil {
		fmt.Fprintln(out, "error:", err)
	}
}
