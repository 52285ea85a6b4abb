package framework

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Kill ends the host's kube-apiserver as a power cut would. [Host.Restart] starts it again.
func (h *Host) Kill() {
	h.t.Helper()
	if h.restarted != nil {
		h.endRestarted()
		return
	}
	pid := h.PID()
	h.command = commandOf(pid)
	send(h.t, pid, syscall.SIGKILL)
	for len(commandOf(pid)) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
}

// Restart starts a kube-apiserver that was killed with the same flags. It doesn't wait
// until that is ready.
func (h *Host) Restart() {
	h.t.Helper()
	if h.command == nil || h.restarted != nil {
		h.t.Fatal("the kube-apiserver was not killed before")
	}
	cmd := exec.Command(h.command[0], h.command[1:]...) //nolint:gosec,noctx // it outlives the test's context
	if err := cmd.Start(); err != nil {
		h.t.Fatalf("start kube-apiserver again: %v", err)
	}
	h.restarted = cmd
	h.t.Cleanup(func() {
		if h.restarted != nil {
			h.endRestarted()
		}
	})
}

func (h *Host) endRestarted() {
	_ = h.restarted.Process.Kill()
	_ = h.restarted.Wait() // its error is that of the kill
	h.restarted = nil
}

// Pause stops the host's kube-apiserver as a machine does that hangs: it holds its
// connections and answers none. The function that is returned lets it continue.
func (h *Host) Pause() (resume func()) {
	h.t.Helper()
	return pause(h.t, h.PID())
}

// PauseEtcd is Pause for the host's etcd.
func (h *Host) PauseEtcd() (resume func()) {
	h.t.Helper()
	return pause(h.t, processOf(h.t, h.environment.ControlPlane.Etcd.Path, "--listen-client-urls="+h.Etcd))
}

// pause stops a process until the function that is returned is called, or the test ends.
func pause(t *testing.T, pid int) (resume func()) {
	t.Helper()
	send(t, pid, syscall.SIGSTOP)
	// A process that is stopped can't be told to end.
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	return func() { t.Helper(); send(t, pid, syscall.SIGCONT) }
}

func send(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatalf("send %s to process %d: %v", signal, pid, err)
	}
}

// PID returns the process id of the host's kube-apiserver.
func (h *Host) PID() int {
	h.t.Helper()
	server := h.environment.ControlPlane.APIServer
	return processOf(h.t, server.Path, "--secure-port="+server.Port)
}

// processOf returns the process that runs a program with an argument.
func processOf(t *testing.T, program, argument string) int {
	t.Helper()
	directories, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, directory := range directories {
		pid, err := strconv.Atoi(filepath.Base(directory))
		if err != nil {
			t.Fatal(err)
		}
		if command := commandOf(pid); len(command) > 0 && command[0] == program && slices.Contains(command, argument) {
			return pid
		}
	}
	t.Fatalf("no process runs %s with %s", program, argument)
	return 0
}

// commandOf returns the command line of a process; none when it has ended.
func commandOf(pid int) []string {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || len(line) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}
