package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/hack/cluster/machine"
)

// Status prints the machines, what they use, and the pods that don't run. It
// returns an error when something of the cluster is not as it should be.
func (c *Cluster) Status(ctx context.Context) error {
	if err := c.load(); err != nil {
		return err
	}
	api, err := c.client(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "cluster %q: Kubernetes %s, API at %s\n", c.Name, c.state.KubernetesVersion, c.server())
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MACHINE\tINIT\tMEMORY\tSTATE")
	var total uint64
	var troubles []string
	for i := 0; i <= c.state.Nodes; i++ {
		name := controlPlane
		if i > 0 {
			name = nodeName(i)
		}
		m := c.machine(name)
		state, err := m.State(ctx)
		if err != nil {
			return err
		}
		memory := memoryUse(m.ID)
		total += memory
		condition := c.condition(ctx, api, name, state)
		if condition != "ready" {
			troubles = append(troubles, name+" is "+condition)
		}
		fmt.Fprintf(table, "%s\t%d\t%d MiB\t%s\n", name, state.PID, memory>>20, condition)
	}
	fmt.Fprintf(table, "all\t\t%d MiB\t\n", total>>20)
	if err := table.Flush(); err != nil {
		return err
	}
	troubles = append(troubles, podTroubles(ctx, api)...)
	if len(troubles) > 0 {
		return errors.New(strings.Join(troubles, "\n"))
	}
	return nil
}

// condition sums up a machine in a word or a sentence.
func (c *Cluster) condition(ctx context.Context, api client.Client, name string, state machine.State) string {
	switch {
	case state.Status != "running":
		return "stopped"
	case name == controlPlane:
		if err := api.List(ctx, &corev1.NamespaceList{}, client.Limit(1)); err != nil {
			return "running, but the API does not answer: " + err.Error()
		}
		return "ready"
	case c.network().Partitioned(ctx, controlPlane, name):
		return "partitioned"
	}
	var node corev1.Node
	if err := api.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return "unknown: " + err.Error()
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return "ready"
		}
	}
	return "not ready"
}

func podTroubles(ctx context.Context, api client.Client) []string {
	var pods corev1.PodList
	if err := api.List(ctx, &pods); err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodSucceeded {
			out = append(out, fmt.Sprintf("pod %s/%s is %s %s", pod.Namespace, pod.Name, pod.Status.Phase, pod.Status.Message))
		}
	}
	return out
}

// memoryUse returns the bytes of memory that a machine's processes hold,
// without the page cache, or 0 where cgroups don't tell.
func memoryUse(id string) uint64 {
	layout, err := machine.Cgroups()
	if err != nil {
		return 0
	}
	file, key := path.Join("/sys/fs/cgroup/memory", layout.Path(id), "memory.stat"), "total_rss"
	if layout.Unified {
		file, key = path.Join("/sys/fs/cgroup", layout.Path(id), "memory.stat"), "anon"
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == key {
			n, _ := strconv.ParseUint(value, 10, 64)
			return n
		}
	}
	return 0
}
