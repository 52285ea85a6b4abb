package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestControlPlaneBeside brings up two control planes on the network of the cluster,
// one of them by an up that is killed first, stops and starts one, and takes them down
// without a trace.
func TestControlPlaneBeside(t *testing.T) {
	e := framework.New(t)
	root := framework.Root(t)
	before := traces(t)
	names := []string{"beside-1", "beside-2"}
	run := func(name string, args ...string) string {
		return framework.Cluster(t, append([]string{"--name", name}, args...)...)
	}
	t.Cleanup(func() {
		for _, name := range names {
			if out, err := framework.TryCluster(context.Background(), root, "--name", name, "down"); err != nil {
				t.Errorf("down: %v: %s", err, out)
			}
		}
	})
	up := []string{"up", "--nodes", "0", "--beside", framework.ClusterName()}
	t.Log(run(names[0], up...))

	t.Log("an up that is killed can be run again")
	killed, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if out, err := framework.TryCluster(killed, root, append([]string{"--name", names[1]}, up...)...); err == nil {
		t.Logf("it was faster: %s", out)
	}
	run(names[1], "up")

	addresses := map[string]bool{}
	for _, name := range names {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig(root, name))
		if err != nil {
			t.Fatal(err)
		}
		addresses[config.Host] = true
		reachedByPods(t, e, strings.TrimPrefix(config.Host, "https://"))
	}
	if len(addresses) != len(names) {
		t.Errorf("their addresses are %v", addresses)
	}

	t.Log("one that is stopped refuses connections, and comes back with its data")
	kubectl := framework.NewKubectl(t, "v1.37.1", kubeconfig(root, names[0]))
	identity := func() string {
		return kubectl.Run("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
	}
	was := identity()
	run(names[0], "stop")
	if _, err := kubectl.Try("get", "--raw=/readyz"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("while it is stopped: %v", err)
	}
	if out, err := framework.TryCluster(t.Context(), root, "--name", names[0], "status"); err == nil || !strings.Contains(out, "cp is stopped") {
		t.Errorf("its status while it is stopped: %v: %s", err, out)
	}
	run(names[0], "up")
	if is := identity(); is != was {
		t.Errorf("kube-system had the UID %s and has %s", was, is)
	}

	for _, name := range names {
		run(name, "down")
		if _, err := os.Stat(filepath.Join(root, ".cluster", name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory of %s is still there: %v", name, err)
		}
	}
	after := traces(t)
	for what := range before {
		if left, gone := difference(after[what], before[what]), difference(before[what], after[what]); len(left)+len(gone) > 0 {
			t.Errorf("%s: there were not before %v, and gone are %v", what, left, gone)
		}
	}
}

func kubeconfig(root, cluster string) string {
	return filepath.Join(root, ".cluster", cluster, "kubeconfig")
}

// reachedByPods fails the test unless what pods send to an address of another machine
// arrives, and the answer comes back to them: it is sent from nodes, with an address of
// their pods.
func reachedByPods(t *testing.T, e *framework.Env, address string) {
	t.Helper()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	list, err := e.Kubernetes.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=Running"})
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]string{} // with pods, and the address of all pods' gateway there
	for _, pod := range list.Items {
		if address, err := netip.ParseAddr(pod.Status.PodIP); err == nil {
			nodes[pod.Spec.NodeName] = netip.PrefixFrom(address, 24).Masked().Addr().Next().String()
		}
	}
	if len(nodes) == 0 {
		t.Fatal("no pod runs")
	}
	id := networkOf(t, host)
	for node, gateway := range nodes {
		e.Eventually(fmt.Sprintf("%s to answer %s on node %s", address, gateway, node), func(context.Context) error {
			return connect("/run/netns/cr-"+id+"-"+node, gateway, address)
		})
	}
}

// connect connects to an address from another one in a network namespace.
func connect(namespace, from, to string) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		ended <- func() error {
			ns, err := os.Open(namespace)
			if err != nil {
				return err
			}
			defer func() { _ = ns.Close() }()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			dialer := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
			connection, err := dialer.Dial("tcp", to)
			if err != nil {
				return err
			}
			return connection.Close()
		}()
	}()
	return <-ended
}

// networkOf returns the id of the cluster on whose network an address is, by the
// computer's own way to it.
func networkOf(t *testing.T, address string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ip", "-oneline", "route", "get", address).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, device, _ := strings.Cut(string(out), " dev cr-")
	id, _, _ := strings.Cut(device, " ")
	if id == "" {
		t.Fatalf("%s is not on the network of a cluster: %s", address, out)
	}
	return id
}
