package framework

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClusterName is the cluster that stories run on: the one that $E2E_CLUSTER names,
// or else that of "make cluster".
func ClusterName() string { return cmp.Or(os.Getenv("E2E_CLUSTER"), "registry") }

// ClusterKubeconfig returns the path of its kubeconfig.
func ClusterKubeconfig(t *testing.T) string {
	t.Helper()
	if name := ClusterName(); name != "registry" {
		return filepath.Join(Root(t), ".cluster", name, "kubeconfig")
	}
	return filepath.Join(Root(t), ".cluster", "kubeconfig")
}

// Cluster runs the project's cluster command, which must succeed.
func Cluster(t *testing.T, args ...string) string {
	t.Helper()
	out, err := TryCluster(t.Context(), Root(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TryCluster runs the project's cluster command from the given folder. It is about
// the cluster of the stories unless the arguments name another.
func TryCluster(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "bin", "cluster"), append([]string{"--name", ClusterName()}, args...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("cluster %v: %w\n%s", args, err, out)
	}
	return string(out), nil
}

// Node does to a node what the cluster command offers (stop, start, partition,
// heal, wipe). Whatever it was, the node is up again when the test ends.
func (e *Env) Node(fault, name string) {
	e.t.Helper()
	root := Root(e.t)
	e.t.Cleanup(func() {
		if out, err := TryCluster(context.Background(), root, "node", "start", name); err != nil {
			e.t.Errorf("node %s did not come back: %v\n%s", name, err, out)
		}
	})
	Cluster(e.t, "node", fault, name)
}

// NodeReady returns whether the API counts a node as Ready.
func (e *Env) NodeReady(ctx context.Context, name string) (bool, error) {
	var node corev1.Node
	if err := e.Client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return false, err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue, nil
		}
	}
	return false, nil
}
