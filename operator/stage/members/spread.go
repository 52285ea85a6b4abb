package members

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/placement"
	"github.com/clusterregistry/operator/operator/verdict"
)

// spreadNoted returns a verdict that is done with a note on members that share a node. A
// member that is replaced after its node was lost takes another one's node rather than wait
// for a new node: three members on two nodes survive more than two members do. It stays there
// when a node comes back, so that is said. Where the spec spreads members in its own way, they
// are where a person wants them.
func (s *Stage) spreadNoted(ctx context.Context, v verdict.Verdict, pods []corev1.Pod) verdict.Verdict {
	shared := sharing(pods)
	if len(shared) == 0 || len(s.Registry.Spec.Etcd.TopologySpreadConstraints) > 0 {
		return v
	}
	free, err := s.freeNodes(ctx, pods)
	if err != nil {
		return verdict.Failed(err).DegradedIf(true)
	}
	return v.Note(operatorv1alpha1.ReasonMembersShareNode, s.describeShared(shared, len(pods), free))
}

// sharing returns the names of the members that share a node, by the node.
func sharing(pods []corev1.Pod) map[string][]string {
	on := map[string][]string{}
	for i := range pods {
		if node := pods[i].Spec.NodeName; node != "" && pods[i].DeletionTimestamp == nil {
			on[node] = append(on[node], pods[i].Name)
		}
	}
	maps.DeleteFunc(on, func(_ string, names []string) bool { return len(names) < 2 })
	return on
}

// freeNodes returns the names of the nodes that members may run on, that are ready, and that
// no member is on.
func (s *Stage) freeNodes(ctx context.Context, pods []corev1.Pod) (out []string, err error) {
	nodes, _, err := placement.Nodes(ctx, s.Live)
	for i := range nodes {
		node := &nodes[i]
		taken := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Spec.NodeName == node.Name })
		unready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
		})
		if !taken && !unready && !node.Spec.Unschedulable && node.DeletionTimestamp == nil && placement.Allows(node, s.Registry.Spec.Etcd.Pods) {
			out = append(out, node.Name)
		}
	}
	return out, err
}

// describeShared says which members share a node, what that means, and how to move one of them.
func (s *Stage) describeShared(shared map[string][]string, members int, free []string) string {
	var parts, commands []string
	for _, node := range slices.Sorted(maps.Keys(shared)) {
		names := slices.Sorted(slices.Values(shared[node]))
		means := fmt.Sprintf("if it fails, %d of %d members are left", members-len(names), members)
		if members-len(names) < members/2+1 {
			means = "if it fails, etcd loses its majority"
		}
		parts = append(parts, fmt.Sprintf("%s share node %s: %s", strings.Join(names, " and "), node, means))
		for _, name := range names[1:] {
			commands = append(commands, fmt.Sprintf("kubectl registry etcd replace -n %s %s", s.Registry.Namespace, name))
		}
	}
	what := strings.Join(parts, "; ")
	if len(free) == 0 {
		return fmt.Sprintf("%s. Add a node that etcd members may run on, and then move a member there: %s", what, commands[len(commands)-1])
	}
	return fmt.Sprintf("%s. To move a member to a node of its own (%s), replace it: %s", what, strings.Join(free, ", "), commands[len(commands)-1])
}
