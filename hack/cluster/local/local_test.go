package local

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestNodeReady(t *testing.T) {
	started := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ready := func(status corev1.ConditionStatus, heartbeat time.Time) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Reason: "KubeletNotReady", Message: "no CNI", LastHeartbeatTime: metav1.NewTime(heartbeat)}}
	}
	for _, test := range []struct {
		reason     string
		conditions []corev1.NodeCondition
		err        string
	}{
		{reason: "it reported after its start", conditions: ready(corev1.ConditionTrue, started.Add(time.Second))},
		{reason: "it reported in the second of its start", conditions: ready(corev1.ConditionTrue, started)},
		{reason: "the report is from before its power cut", conditions: ready(corev1.ConditionTrue, started.Add(-time.Minute)), err: "before it was started"},
		{reason: "kubelet says why not", conditions: ready(corev1.ConditionFalse, started), err: "KubeletNotReady: no CNI"},
		{reason: "kubelet is silent", err: "kubelet has not reported yet"},
	} {
		err := nodeReady(corev1.Node{Status: corev1.NodeStatus{Conditions: test.conditions}}, started.Add(300*time.Millisecond))
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: got %v, want %q", test.reason, err, test.err)
		}
	}
}

func TestDisk(t *testing.T) {
	absent := t.TempDir() + "/not/there/yet"
	if err := disk(absent, 1); err != nil {
		t.Errorf("one byte: %v", err)
	}
	err := disk(absent, math.MaxInt64)
	if err == nil || !strings.Contains(err.Error(), "of disk are free at") || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Errorf("more than any disk has: %v", err)
	}
}

func TestWishesOfAnotherCluster(t *testing.T) {
	existing := state{KubernetesVersion: "v1.37.1", Nodes: 3}
	for wish, want := range map[Cluster]string{
		{}: "",
		{KubernetesVersion: "v1.37.1", Nodes: new(3)}: "",
		{KubernetesVersion: "v1.34.4"}:                "runs Kubernetes v1.37.1, not v1.34.4; take it down first",
		{Nodes: new(5)}:                               "has 3 nodes, not 5",
		{Nodes: new(0)}:                               "has 3 nodes, not 0",
		{Beside: "other"}:                             `is not on the network of "other"`,
		{Subnet: "10.9.0.0/24"}:                       "not 10.9.0.0/24",
	} {
		wish.state = existing
		err := wish.matchWishes()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", wish, err, want)
		}
	}
}

func TestIDFollowsFromTheFolder(t *testing.T) {
	a, again, other := Cluster{Dir: "/a/.cluster/x"}, Cluster{Dir: "/a/.cluster/x"}, Cluster{Dir: "/b/.cluster/x"}
	if a.id() != again.id() || a.id() == other.id() || len(a.id()) != 8 {
		t.Errorf("ids are %s, %s, %s", a.id(), again.id(), other.id())
	}
}

func TestKernelRelease(t *testing.T) {
	for release, want := range map[string]string{
		"6.18.44-fc-v657":  "",
		"5.13.0":           "",
		"5.10.0-28-amd64":  "unsupported kernel 5.10.0-28-amd64: kube-proxy's nftables mode needs Linux 5.13",
		"4.19.0":           "unsupported kernel 4.19.0",
		"something-custom": "can't read the version of \"something-custom\"",
	} {
		err := kernelRelease(release)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", release, err, want)
		}
	}
}

// TestPodCIDR expects that a node has the range of its pods, which stays.
func TestPodCIDR(t *testing.T) {
	c := &Cluster{Name: "test", state: state{Nodes: 2}}
	api := fake.NewClientBuilder().WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}).Build()
	for range 2 {
		if err := c.publishPodCIDR(t.Context(), api, "n2"); err != nil {
			t.Fatal(err)
		}
	}
	var node corev1.Node
	if err := api.Get(t.Context(), client.ObjectKey{Name: "n2"}, &node); err != nil || node.Spec.PodCIDR != "10.244.2.0/24" || len(node.Spec.PodCIDRs) != 1 {
		t.Errorf("%+v, %v", node.Spec, err)
	}
}

func TestNodeThatIsNotReadyShowsItsKubeletsLog(t *testing.T) {
	c := &Cluster{Name: "test", Dir: t.TempDir()}
	m := c.machine("n1")
	for path, content := range map[string]string{m.Folder + "/config.json": "{}", m.LogFile("kubelet"): "first line\nrun.go: command failed: no such cgroup\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := c.waitNodeReady(ctx, fake.NewClientBuilder().Build(), "n1")
	for _, want := range []string{"node n1 to become Ready", "nodes \"n1\" not found", "the end of " + m.LogFile("kubelet"), "no such cgroup"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}
