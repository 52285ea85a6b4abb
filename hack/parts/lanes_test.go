package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lanes starts two lanes, each with a part that ends when $DIR has what it waits for.
const lanes = `
set -uo pipefail
. ../parts.sh
finish() { trap '' INT TERM; stop_lanes; report test || exit 1; }
trap finish EXIT
trap 'exit 130' INT TERM
low() {
  part slow bash -c 'echo slow says this; touch $DIR/slow; cat /proc/self/cgroup; until [ -e $DIR/fast ]; do sleep 0.1; done; false'
  part after true
}
high() { part fast bash -c 'touch $DIR/fast; sleep 1000 & echo $! >$DIR/left; until [ -e $DIR/slow ]; do sleep 0.1; done; eval "${FAST:-}"'; }
lane low low
lane high high
lanes`

func bash(ctx context.Context, t *testing.T, text string, environment ...string) (*exec.Cmd, *strings.Builder, string) {
	t.Helper()
	dir, out := t.TempDir(), &strings.Builder{}
	cmd := exec.CommandContext(ctx, "bash", "-c", text)
	cmd.Env = append(cmd.Environ(), append(environment, "DIR="+dir, "PARTS_LOG="+dir)...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = 2 * grace
	return cmd, out, dir
}

// needCgroup skips what no one but root on Linux has.
func needCgroup(t *testing.T) {
	t.Helper()
	group, err := newCgroup(false)
	if err != nil {
		t.Skipf("cgroups can't be made here: %v", err)
	}
	group.remove(os.Stderr)
}

// TestLanes has each of two lanes wait for the other, and one that fails not hide the other.
func TestLanes(t *testing.T) {
	cmd, out, _ := bash(t.Context(), t, lanes)
	if err := cmd.Run(); err == nil {
		t.Errorf("a part fails, and the script does not:\n%s", out)
	}
	for _, want := range []string{"=== slow: FAILED after ", "\nslow says this\n", "=== fast: ok after "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	_, table, _ := strings.Cut(out.String(), "how long each part took\n")
	for part, result := range map[string]string{"slow ": "FAILED\n", "fast ": "ok\n", "after ": "ok\n"} {
		_, row, found := strings.Cut(table, "\n"+part)
		if row, _, _ := strings.Cut(row, "\n"); !found || !strings.HasSuffix(row+"\n", " "+result) {
			t.Errorf("%s is not %sin\n%s", part, result, table)
		}
	}
}

func TestWeight(t *testing.T) {
	needCgroup(t)
	root, unified, err := cpuHierarchy()
	if err != nil {
		t.Fatal(err)
	}
	file, low := "cpu.shares", lowShares
	if unified {
		file, low = "cpu.weight", lowWeight
	}
	cmd, out, _ := bash(t.Context(), t, `. ../parts.sh
export PARTS_LANE=low
part low bash -c 'for group in '`+root+"/"+cgroupPrefix+`'*; do ! grep -qx $$ $group/cgroup.procs || cat $group/`+file+`; done'`)
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "\n"+low+"\n") {
		t.Errorf("%v, and no weight %s in\n%s", err, low, out)
	}
}

// TestLeft has what a part leaves running be named and ended.
func TestLeft(t *testing.T) {
	needCgroup(t)
	cmd, out, dir := bash(t.Context(), t, lanes)
	_ = cmd.Run() // a part fails
	if !strings.Contains(out.String(), "left running, and ended now: process ") {
		t.Errorf("it is not named in\n%s", out)
	}
	gone(t, dir, time.Minute)
}

// gone waits until the process that a part has left has ended.
func gone(t *testing.T, dir string, within time.Duration) {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(dir, "left"))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		if !alive(strings.TrimSpace(string(pid))) {
			return
		}
		if !time.Now().Before(deadline) {
			t.Fatalf("process %s, which a part has started, still runs after %s", pid, within)
		}
	}
}

// TestStopped has both lanes end when their script is stopped, whichever way.
func TestStopped(t *testing.T) {
	needCgroup(t)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd, out, dir := bash(t.Context(), t, lanes, `FAST=sleep 1000`)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"left", "slow", "fast"} {
				for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
					if content, err := os.ReadFile(filepath.Join(dir, name)); err == nil && (name != "left" || len(content) > 0) {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("there is no %s after a minute", name)
					}
				}
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil || errors.Is(err, exec.ErrWaitDelay) {
				t.Errorf("%v\n%s", err, out)
			}
			gone(t, dir, time.Minute)
			if why := map[syscall.Signal]string{syscall.SIGTERM: "FAILED: terminated", syscall.SIGKILL: "stopping: the run that it is a part of was killed"}[signal]; !strings.Contains(out.String(), why) {
				t.Errorf("%q is missing in\n%s", why, out)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	cmd, out, _ := bash(t.Context(), t, `. ../parts.sh; part hangs bash -c 'echo begun; sleep 1000'; report test`, "PARTS_TIMEOUT=1s")
	if err := cmd.Run(); err == nil || !strings.Contains(out.String(), "FAILED: longer than 1s\n") || !strings.Contains(out.String(), "begun\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAbandoned has the next run end what is left of a part whose own supervisor was killed.
func TestAbandoned(t *testing.T) {
	needCgroup(t)
	cmd, out, dir := bash(t.Context(), t, `. ../parts.sh; part killed bash -c 'sleep 1000 & echo $! >$DIR/left; kill -KILL $PPID; sleep 1000'`)
	if err := cmd.Run(); err == nil {
		t.Errorf("a part was killed, and the script says nothing:\n%s", out)
	}
	next, out, _ := bash(t.Context(), t, `. ../parts.sh; true`)
	if err := next.Run(); err != nil || !strings.Contains(out.String(), "a run that was killed has left ") {
		t.Errorf("%v\n%s", err, out)
	}
	gone(t, dir, time.Minute)
}
