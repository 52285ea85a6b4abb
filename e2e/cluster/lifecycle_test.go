package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// traces is all that a cluster could leave on the computer.
func traces(t *testing.T) map[string][]string {
	t.Helper()
	run := func(name string, args ...string) []string {
		out, err := exec.CommandContext(t.Context(), name, args...).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var cgroups []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), "cr-") {
			cgroups = append(cgroups, path)
			return filepath.SkipDir
		}
		return nil
	})
	return map[string][]string{
		"network namespaces": run("ip", "netns", "list"),
		"links":              run("ip", "-brief", "link"),
		"routes":             run("ip", "route", "show", "table", "all"),
		"nft rules":          run("nft", "list", "ruleset"),
		"sysctls":            sysctls(t, "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward"),
		"mounts":             strings.Split(string(mounts), "\n"),
		"cgroups":            cgroups,
		"processes":          processes(t, secondID(t)),
	}
}

// sysctls returns settings of the whole computer, those that kubelet and
// kube-proxy like to change among them.
func sysctls(t *testing.T, keys ...string) []string {
	t.Helper()
	var out []string
	for _, key := range keys {
		value, err := os.ReadFile(filepath.Join("/proc/sys", key))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, key+"="+strings.TrimSpace(string(value)))
	}
	return out
}

// secondID is the id of the second cluster, a part of the names of all that it
// makes.
func secondID(t *testing.T) string {
	t.Helper()
	sum := sha256.Sum256([]byte(filepath.Join(framework.Root(t), ".cluster", "second")))
	return hex.EncodeToString(sum[:])[:8]
}

// processes returns "PID NAME" of the programs that run in the machines of the
// cluster with the given id, all or those with one of the names.
func processes(t *testing.T, id string, names ...string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, path := range paths {
		cmdline, err := os.ReadFile(path)
		cgroup, cgroupErr := os.ReadFile(filepath.Join(filepath.Dir(path), "cgroup"))
		if err != nil || cgroupErr != nil || len(cmdline) == 0 || !bytes.Contains(cgroup, []byte("/cr-"+id+"-")) {
			continue // it has ended, though its parent may not have noticed, or is none of ours
		}
		program, _, _ := bytes.Cut(cmdline, []byte{0})
		if name := filepath.Base(string(program)); len(names) == 0 || slices.Contains(names, name) {
			out = append(out, filepath.Base(filepath.Dir(path))+" "+name)
		}
	}
	slices.Sort(out)
	return out
}

// TestSecondCluster brings a second cluster up beside the first, kills its
// processes one after the other, and takes it down without a trace.
func TestSecondCluster(t *testing.T) {
	e := framework.New(t)
	root := framework.Root(t)
	before := traces(t)
	second := func(args ...string) string {
		return framework.Cluster(t, append([]string{"--name", "second"}, args...)...)
	}
	t.Cleanup(func() {
		if out, err := framework.TryCluster(context.Background(), root, "--name", "second", "down"); err != nil {
			t.Errorf("down: %v: %s", err, out)
		}
	})
	t.Log(second("up", "--nodes", "1"))
	t.Log(second("status"))
	if again := second("up"); !strings.Contains(again, "is up") {
		t.Errorf("up of a running cluster says %s", again)
	}

	t.Log("a killed service is started again")
	for _, name := range []string{"kubelet", "kube-apiserver"} {
		kill(t, e, name)
	}
	second("up")

	t.Log("a killed init ends its machine; up brings it back")
	_, init := machine(t, root, "n1")
	end(t, e, init)
	if out, err := framework.TryCluster(t.Context(), root, "--name", "second", "status"); err == nil || !strings.Contains(out, "stopped") {
		t.Errorf("status after its init was killed: %v: %s", err, out)
	}
	second("up")

	t.Log("up brings everything back after a reboot, with its data")
	kubectl := framework.NewKubectl(t, "v1.37.1", filepath.Join(root, ".cluster", "second", "kubeconfig"))
	kubectl.Run("create", "configmap", "kept")
	reboot(t, e, root)
	second("up")
	kubectl.Run("get", "configmap", "kept")

	t.Log("down after a reboot leaves nothing")
	reboot(t, e, root)
	second("down")
	second("down") // harmless
	after := traces(t)
	for what := range before {
		if left := difference(after[what], before[what]); len(left) > 0 {
			t.Errorf("%s that were not there before: %v", what, left)
		}
		if gone := difference(before[what], after[what]); len(gone) > 0 {
			t.Errorf("%s that are gone: %v", what, gone)
		}
	}
	if _, err := os.Stat(filepath.Join(root, ".cluster", "second")); !os.IsNotExist(err) {
		t.Errorf("the cluster's folder is still there: %v", err)
	}
	if _, err := e.Kubernetes.Discovery().ServerVersion(); err != nil {
		t.Errorf("the first cluster does not answer any more: %v", err)
	}
}

// kill ends the second cluster's only process of the given name and waits
// until another one took its place.
func kill(t *testing.T, e *framework.Env, name string) {
	t.Helper()
	ours := func() []string { return processes(t, secondID(t), name) }
	victims := ours()
	if len(victims) != 1 {
		t.Fatalf("processes of the second cluster named %s: %v", name, victims)
	}
	pid, err := strconv.Atoi(strings.Fields(victims[0])[0])
	if err != nil {
		t.Fatal(err)
	}
	syscallKill(t, pid)
	e.Eventually(name+" to be started again", func(context.Context) error {
		if now := ours(); len(now) != 1 || now[0] == victims[0] {
			return fmt.Errorf("its processes are %v", now)
		}
		return nil
	})
}

// end kills a machine's init and waits until the kernel has ended it with all
// of its machine.
func end(t *testing.T, e *framework.Env, init int) {
	t.Helper()
	syscallKill(t, init)
	e.Eventually("the init's end", func(context.Context) error {
		if err := syscall.Kill(init, 0); err == nil {
			return fmt.Errorf("process %d is still there", init)
		}
		return nil
	})
}

// reboot leaves of the second cluster what a reboot of the computer leaves: no
// process, no cgroup, no link; only files, iproute2's and runc's among them.
func reboot(t *testing.T, e *framework.Env, root string) {
	t.Helper()
	for _, name := range []string{"n1", "cp"} {
		id, pid := machine(t, root, name)
		end(t, e, pid)
		// The machine's network namespace has the machine's name.
		if err := syscall.Unmount(filepath.Join("/run/netns", id), syscall.MNT_DETACH); err != nil {
			t.Fatalf("unmount namespace %s: %v", id, err)
		}
	}
}

// machine returns the id of one of the second cluster's machines and the
// process id of its init, from runc's records.
func machine(t *testing.T, root, name string) (id string, pid int) {
	t.Helper()
	states, err := filepath.Glob("/run/clusterregistry-clusters/*/cr-*-" + name + "/state.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range states {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var state struct {
			PID    int `json:"init_process_pid"`
			Config struct {
				RootFS string `json:"rootfs"`
			} `json:"config"`
		}
		if err := json.Unmarshal(content, &state); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(state.Config.RootFS, filepath.Join(root, ".cluster", "second")+"/") {
			return filepath.Base(filepath.Dir(path)), state.PID
		}
	}
	t.Fatalf("no machine %s among %v", name, states)
	return "", 0
}

func syscallKill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}

func difference(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}
