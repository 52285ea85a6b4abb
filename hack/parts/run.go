package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// grace is how long a part that is stopped may take to tidy up.
const grace = 30 * time.Second

// run runs a part and returns its exit code.
func run(dir, name string, args []string) (code int, err error) {
	limit, err := timeout()
	if err != nil {
		return 2, err
	}
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	events, err := filepath.Abs(testsFile(dir, name))
	if err != nil {
		return 1, err
	}
	if err := os.Remove(events); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 1, err
	}
	whole := os.Getenv("PARTS_WHOLE") == "1"
	title := fmt.Sprintf("=== %s: %s\n", name, strings.Join(args, " "))
	if err := show(dir, strings.NewReader(title)); err != nil {
		return 1, err
	}
	out := io.Writer(log)
	if !whole {
		out = io.MultiWriter(log, os.Stdout)
	}
	r := row{Name: name, Result: "ok"}
	start, pressure := time.Now(), readPressure()
	reason, state, err := supervise(args, events, limit, out)
	if err != nil {
		fmt.Fprintln(out, "error:", err)
	}
	r.Seconds, r.Pressure = time.Since(start).Seconds(), pressure.since(start)
	switch {
	case reason != "":
		r.Result, code = "FAILED: "+reason, 1
	case err != nil:
		r.Result, code = "FAILED", 1
	case !state.Success():
		r.Result, code = "FAILED", max(1, state.ExitCode())
	}
	if state != nil {
		r.CPU = (state.UserTime() + state.SystemTime()).Seconds()
	}
	var sum tests
	if err := sum.read(events, name); err != nil {
		return 1, err
	}
	r.Retries = sum.retries
	if whole {
		if err := showLog(dir, log.Name(), name, r); err != nil {
			return 1, err
		}
	}
	return code, r.save(dir)
}

// supervise runs the command until it ends or must be stopped, and returns why it was.
// Nothing that it started outlives it then.
func supervise(args []string, tests string, limit time.Duration, out io.Writer) (reason string, _ *os.ProcessState, _ error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	temp, err := newTemp()
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err := os.RemoveAll(temp); err != nil { // no reason for what was tested to fail
			fmt.Fprintln(out, "error:", err)
		}
	}()
	low := os.Getenv("PARTS_LANE") == "low"
	group, err := newCgroup(low)
	if err != nil {
		fmt.Fprintf(out, "there is no cgroup for this part: %v\n", err)
		if low {
			fmt.Fprintln(out, "it runs with nice 19 instead, which other parts notice more")
			args = append([]string{"nice", "-n", "19"}, args...)
		}
	} else {
		defer group.remove(out)
		args = group.enter(args)
	}
	program, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...) // it is stopped below
	cmd.Env = append(os.Environ(), "PARTS_TESTS="+tests, "PARTS_PROGRAM="+program, "TMPDIR="+temp)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// What the command has left running holds its output open, and is no reason to wait.
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its state has the outcome
	}()
	if reason = watch(signals, ended, limit); reason == "" {
		return "", cmd.ProcessState, nil
	}
	fmt.Fprintf(out, "stopping: %s\n", reason)
	// An error means that it has ended meanwhile.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(grace):
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	err = group.kill()
	<-ended
	return reason, cmd.ProcessState, err
}

// watch waits until the command has ended, for which it returns "", or why it must be stopped.
func watch(signals <-chan os.Signal, ended <-chan struct{}, limit time.Duration) string {
	late := time.After(limit)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return ""
		case s := <-signals:
			return s.String()
		case <-late:
			return fmt.Sprintf("longer than %s", limit)
		case <-ticker.C:
			if owner := os.Getenv("PARTS_OWNER"); owner != "" && !alive(owner) {
				return "the run that it is a part of was killed"
			}
		}
	}
}

func alive(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && !errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
}

// show prints without mixing it with what another part prints.
func show(dir string, text io.Reader) error {
	lock, err := os.OpenFile(filepath.Join(dir, ".print.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	_, err = io.Copy(os.Stdout, text)
	return err
}

func showLog(dir, log, name string, r row) error {
	content, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	if len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")) {
		content = append(content, '\n')
	}
	title := fmt.Sprintf("=== %s: %s after %.0f s, and this is its output\n", name, r.Result, r.Seconds)
	end := fmt.Sprintf("=== %s: the output ends here\n", name)
	return show(dir, io.MultiReader(strings.NewReader(title), bytes.NewReader(content), strings.NewReader(end)))
}
