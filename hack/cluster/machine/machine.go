// Package machine runs what the local cluster calls a machine: an OCI
// container made with runc that has its own processes, mounts, network
// namespace, cgroup and disk, and an init that keeps a few services running.
//
// Everything a machine starts lives in its process namespace, so that one
// SIGKILL of its init, which runc finds by recorded id and start time, ends it
// all at once, as a power cut does. The disk (a folder) outlives that.
package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Machine is one machine. The zero value of an optional field means none.
type Machine struct {
	// ID names the machine among all of this computer.
	ID string
	// Hostname is the machine's own name for itself.
	Hostname string
	// Folder holds the machine's disk, configuration and logs.
	Folder string
	// Runtime is the folder of runc's records, on a file system that may be
	// emptied by a reboot.
	Runtime string
	// NetNS is the path of the network namespace that the machine runs in.
	NetNS string
	// Shared are folders of the computer that the machine sees at the same path.
	Shared []string
	// Init is the program that runs as the machine's first process; it must
	// call Init when its first argument is InitCommand.
	Init string
	// Services are what the machine runs.
	Services []Service
}

// Service is a program that is restarted whenever it ends.
type Service struct {
	// Name is the service's name in messages and the name of its log file.
	Name string
	// Args are the program's path and arguments.
	Args []string
}

// InitCommand is the first argument of a machine's init.
const InitCommand = "machine-init"

// State is what runc says of a machine.
type State struct {
	// Status is "running", "stopped" or "" when there is none.
	Status string `json:"status"`
	// PID is the init's process id.
	PID int `json:"pid"`
}

// Disk returns the folder that is the machine's root file system.
func (m Machine) Disk() string { return filepath.Join(m.Folder, "disk") }

// LogFile returns the path of a service's log.
func (m Machine) LogFile(service string) string {
	return filepath.Join(m.Folder, "log", service+".log")
}

// State asks runc for the machine's state.
func (m Machine) State(ctx context.Context) (State, error) {
	var stdout, stderr bytes.Buffer
	cmd := m.runc(ctx, "state", m.ID)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if _, statErr := os.Stat(filepath.Join(m.Runtime, m.ID)); errors.Is(statErr, os.ErrNotExist) {
			return State{}, nil
		}
		return State{}, fmt.Errorf("runc state %s: %w: %s", m.ID, err, stderr.Bytes())
	}
	var s State
	return s, json.Unmarshal(stdout.Bytes(), &s)
}

// Running reports whether the machine's init lives.
func (m Machine) Running(ctx context.Context) (bool, error) {
	s, err := m.State(ctx)
	return s.Status == "running", err
}

// Start starts the machine's init, which starts the services, and returns
// without waiting for them. What an earlier run left behind is removed first.
func (m Machine) Start(ctx context.Context) error {
	if err := m.Kill(ctx); err != nil {
		return err
	}
	if err := m.writeBundle(); err != nil {
		return fmt.Errorf("machine %s: %w", m.Hostname, err)
	}
	log, err := os.OpenFile(m.LogFile("init"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := m.runc(ctx, "run", "--detach", "--bundle", m.Folder, m.ID)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		content, _ := os.ReadFile(log.Name())
		return fmt.Errorf("machine %s did not start: %w\n%s", m.Hostname, err, lastBytes(content, 2000))
	}
	return nil
}

// Kill ends every process of the machine at once and removes its cgroups. A
// machine that does not run is no error.
func (m Machine) Kill(ctx context.Context) error {
	state, err := m.State(ctx)
	if err != nil || state.Status == "" {
		return err
	}
	// delete --force sends SIGKILL. The kernel ends the processes some time
	// later, and a cgroup that still has one can't be removed.
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		out, err := m.runc(ctx, "delete", "--force", m.ID).CombinedOutput()
		if err == nil {
			err = removeCgroups(m.ID)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("machine %s can't be removed: %w: %s", m.Hostname, err, out)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Exec runs a command inside the machine with the given standard input.
func (m Machine) Exec(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	cmd := m.runc(ctx, append([]string{"exec", m.ID}, args...)...)
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("%s on machine %s: %w: %s", args[0], m.Hostname, err, lastBytes(out, 2000))
	}
	return out, nil
}

func (m Machine) runc(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "runc", append([]string{"--root", m.Runtime}, args...)...)
}

func lastBytes(b []byte, n int) []byte { return b[max(0, len(b)-n):] }
