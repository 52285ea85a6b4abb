package framework

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EmptyVolume removes what is on the volume of a claim, on a node, under the pods
// that use it.
func (e *Env) EmptyVolume(node, claim string) { e.t.Helper(); e.Volume("empty", node, claim) }

// Volume has bin/cluster do something to the volume of a claim, on a node, as its command
// "node" offers it.
func (e *Env) Volume(command, node, claim string, arguments ...string) {
	e.t.Helper()
	var pvc corev1.PersistentVolumeClaim
	if err := e.Get(e.t.Context(), claim, &pvc); err != nil {
		e.t.Fatal(err)
	}
	var volume corev1.PersistentVolume
	if err := e.Client.Get(e.t.Context(), client.ObjectKey{Name: pvc.Spec.VolumeName}, &volume); err != nil {
		e.t.Fatal(err)
	}
	path := ""
	switch {
	case volume.Spec.HostPath != nil:
		path = volume.Spec.HostPath.Path
	case volume.Spec.Local != nil:
		path = volume.Spec.Local.Path
	default:
		e.t.Fatalf("volume %s is not of a node: %+v", volume.Name, volume.Spec)
	}
	Cluster(e.t, append([]string{"node", command, node, filepath.Base(path)}, arguments...)...)
}

// Process is a process of this computer.
type Process int

// KillProcess ends the one process, of whichever container of the local cluster,
// whose command line has all the given arguments. It gets no chance to do
// anything more.
func (e *Env) KillProcess(arguments ...string) {
	e.t.Helper()
	if err := e.Process(arguments...).Kill(); err != nil {
		e.t.Fatalf("kill the process with the arguments %q: %v", arguments, err)
	}
}

// Kill ends the process, if it has not ended.
func (p Process) Kill() error {
	if err := syscall.Kill(int(p), syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// Pause has the process do nothing more, until it is killed.
func (p Process) Pause() error { return syscall.Kill(int(p), syscall.SIGSTOP) }

// File returns a path on this computer for a file as the process sees it.
func (p Process) File(path string) string {
	return filepath.Join("/proc", strconv.Itoa(int(p)), "root", path)
}

// Process finds the one process, of whichever container of the local cluster, whose command
// line has all the given arguments.
func (e *Env) Process(arguments ...string) Process {
	e.t.Helper()
	var found []int
	directories, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		e.t.Fatal(err)
	}
	for _, directory := range directories {
		content, err := os.ReadFile(filepath.Join(directory, "cmdline"))
		if err != nil {
			continue // it has ended
		}
		line := strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
		if slices.ContainsFunc(arguments, func(argument string) bool { return !slices.Contains(line, argument) }) {
			continue
		}
		var pid int
		if _, err := fmt.Sscan(filepath.Base(directory), &pid); err != nil {
			e.t.Fatal(err)
		}
		found = append(found, pid)
	}
	if len(found) != 1 {
		e.t.Fatalf("%d processes have the arguments %q: %v", len(found), arguments, found)
	}
	return Process(found[0])
}
