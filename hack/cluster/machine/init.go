package machine

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// restartDelay is the pause before a service that ended is started again.
const restartDelay = time.Second

// Init is a machine's first process: it prepares the mounts, starts the
// services, starts each again when it ends, and reaps orphans. It returns only
// when the machine can't be prepared; its end is the end of the machine.
func Init(servicesFile, logDir string) error {
	content, err := os.ReadFile(servicesFile)
	if err != nil {
		return err
	}
	var services []Service
	if err := json.Unmarshal(content, &services); err != nil {
		return err
	}
	if err := prepareMounts(); err != nil {
		return err
	}
	layout, err := Cgroups()
	if err != nil {
		return err
	}
	if layout.Unified {
		if err := prepareUnified(); err != nil {
			return err
		}
	}
	return supervise(services, logDir)
}

// prepareMounts makes the mount tree shared within the machine, as kubelet
// wants it, yet cut off from the computer's.
func prepareMounts() error {
	for _, propagation := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", propagation|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("change mount propagation: %w", err)
		}
	}
	return shieldSysctls()
}

// kubeletSysctls are the settings of the whole computer that kubelet writes
// when it finds other values (pkg/kubelet/cm, setupKernelTunables).
var kubeletSysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// shieldSysctls covers kubeletSysctls with files that hold what kubelet wants,
// so that it changes nothing outside the machine.
func shieldSysctls() error {
	const dir = "/run/sysctl"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for key, value := range kubeletSysctls {
		cover := filepath.Join(dir, strings.ReplaceAll(key, "/", "."))
		if err := os.WriteFile(cover, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(cover, filepath.Join("/proc/sys", key), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cover sysctl %s: %w", key, err)
		}
	}
	return nil
}

// supervise runs the services for ever. The log of each ends up in logDir.
func supervise(services []Service, logDir string) error {
	running := map[int]Service{}
	start := func(s Service) {
		pid, err := startService(s, filepath.Join(logDir, s.Name+".log"))
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s %s: %v\n", time.Now().Format(time.RFC3339), s.Name, err)
			os.Exit(1)
		}
		running[pid] = s
	}
	for _, s := range services {
		start(s)
	}
	for {
		var status unix.WaitStatus
		// As the first process this one inherits every orphan, so it must
		// wait for any child; os/exec would compete for the services.
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for children: %w", err)
		}
		s, ok := running[pid]
		if !ok {
			continue
		}
		delete(running, pid)
		fmt.Fprintf(os.Stderr, "%s %s ended (exit status %d, signal %d), starting it again\n", time.Now().Format(time.RFC3339), s.Name, status.ExitStatus(), status.Signal())
		time.Sleep(restartDelay)
		start(s)
	}
}

func startService(s Service, logFile string) (int, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer func() { _ = null.Close() }()
	process, err := os.StartProcess(s.Args[0], s.Args, &os.ProcAttr{Dir: "/", Env: os.Environ(), Files: []*os.File{null, log, log}})
	if err != nil {
		return 0, err
	}
	pid := process.Pid
	return pid, process.Release()
}
