// Package placement tells on which nodes etcd members may run, by the placement that the spec
// asks for, and whether the volume of a member can follow it there: that of a local disk
// can't.
package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/pages"
	"github.com/clusterregistry/operator/operator/render"
)

// atOnce is how many nodes are read at once, which no one but administrators and kubelets writes.
const atOnce = 500

// Nodes returns the nodes of the host cluster, with what tells whether members may run there, and
// false when the operator may not read them.
func Nodes(ctx context.Context, reader client.Reader) (nodes []corev1.Node, known bool, err error) {
	err = pages.Each(ctx, reader, &corev1.NodeList{}, func(page *corev1.NodeList) bool {
		for i := range page.Items {
			nodes = append(nodes, onlyPlace(&page.Items[i]))
		}
		return true
	}, client.Limit(atOnce))
	switch {
	case apierrors.IsForbidden(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return nodes, true, nil
}

// onlyPlace leaves of a node what is read of it: the rest, such as its images, is most of it.
func onlyPlace(node *corev1.Node) corev1.Node {
	out := corev1.Node{Spec: corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable}, Status: corev1.NodeStatus{Conditions: node.Status.Conditions}}
	out.Name, out.Labels, out.DeletionTimestamp = node.Name, node.Labels, node.DeletionTimestamp
	return out
}

// lifecycle begins the taints that come and go with the state of a node.
const lifecycle = "node.kubernetes.io/"

// Allows reports whether members may run on a node by the placement: as long as it is ready
// and not cordoned.
func Allows(node *corev1.Node, pods operatorv1alpha1.Pods) bool {
	repels := func(taint *corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(taint.Key, lifecycle)
	}
	_, repelled := schedulinghelpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pods.Tolerations, repels, false)
	return matches(node, pods) && !repelled
}

// matches reports whether pods may be scheduled to a node by their node selector and affinity
// for nodes. Nothing follows from an affinity that can't be understood, which the host refuses.
func matches(node *corev1.Node, pods operatorv1alpha1.Pods) bool {
	required := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: corev1.PodSpec{NodeSelector: pods.NodeSelector, Affinity: render.Affinity(pods)}})
	match, err := required.Match(node)
	return match || err != nil
}

// Usable returns the names of the nodes on which a volume can be used. It is false where that
// can be any, or is not known.
func Usable(pv *corev1.PersistentVolume, nodes []corev1.Node) (names []string, limited bool) {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return nil, false
	}
	if _, err := nodeaffinity.NewNodeSelector(pv.Spec.NodeAffinity.Required); err != nil {
		return nil, false // nothing follows from what can't be understood
	}
	for i := range nodes {
		if volume.CheckNodeAffinity(pv, nodes[i].Labels) == nil {
			names = append(names, nodes[i].Name)
		}
	}
	return names, true
}

// Local reports whether a volume is that of one node, by its kind or by the name of the node:
// with that node, it is gone.
func Local(pv *corev1.PersistentVolume) bool {
	if pv.Spec.Local != nil || pv.Spec.HostPath != nil {
		return true
	}
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return false
	}
	terms := pv.Spec.NodeAffinity.Required.NodeSelectorTerms
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return r.Key == corev1.LabelHostname })
	})
}

// Stays says why the volume of a claim can't follow a member to any node that the placement
// allows; it says nothing when it can, or when that is not known. A volume whose nodes were
// all deleted is another matter: see Usable.
func Stays(ctx context.Context, reader client.Reader, claim *corev1.PersistentVolumeClaim, pods operatorv1alpha1.Pods) (string, error) {
	bound, err := read(ctx, reader, claim)
	if bound == nil || err != nil || len(bound.names) == 0 {
		return "", err
	}
	for i := range bound.nodes {
		if slices.Contains(bound.names, bound.nodes[i].Name) && Allows(&bound.nodes[i], pods) {
			return "", nil
		}
	}
	return fmt.Sprintf("its volume %s can be used on %s only, where spec.etcd.nodeSelector, spec.etcd.affinity and spec.etcd.tolerations do not let it run", bound.volume, strings.Join(bound.names, ", ")), nil
}

// Crowded says why a member that the scheduler finds no node for can't run where its volume
// is, though the placement allows it: another member runs on each of these nodes, and there is
// a node without one, so that members would not be spread evenly. The others are the members
// that run, by the name of their node. It says nothing when that is not so, or not known.
func Crowded(ctx context.Context, reader client.Reader, claim *corev1.PersistentVolumeClaim, pods operatorv1alpha1.Pods, others map[string]string) (string, error) {
	bound, err := read(ctx, reader, claim)
	if bound == nil || err != nil {
		return "", err
	}
	var beside []string
	free := false
	for i := range bound.nodes {
		node := &bound.nodes[i]
		if !Allows(node, pods) {
			continue
		}
		switch other := others[node.Name]; {
		case !slices.Contains(bound.names, node.Name):
			free = free || other == "" && takesPods(node)
		case other == "":
			return "", nil // something else keeps it from there
		default:
			beside = append(beside, other)
		}
	}
	if len(beside) == 0 || !free {
		return "", nil
	}
	return fmt.Sprintf("its volume %s can be used on %s only, where %s runs, and members are spread over nodes", bound.volume, strings.Join(bound.names, ", "), strings.Join(beside, " or ")), nil
}

// Cordoned returns the volume of a claim and the nodes on which it can be used, if all of
// these are cordoned: a member that is evicted from there finds no node.
func Cordoned(ctx context.Context, reader client.Reader, claim *corev1.PersistentVolumeClaim) (volume string, nodes []string, err error) {
	bound, err := read(ctx, reader, claim)
	if bound == nil || err != nil || len(bound.names) == 0 {
		return "", nil, err
	}
	for i := range bound.nodes {
		if slices.Contains(bound.names, bound.nodes[i].Name) && !bound.nodes[i].Spec.Unschedulable {
			return "", nil, nil
		}
	}
	return bound.volume, bound.names, nil
}

// takesPods reports whether a node is ready and not cordoned.
func takesPods(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && node.DeletionTimestamp == nil && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// bound is a volume that can be used on some nodes only.
type bound struct {
	volume string
	// names are those of the nodes on which it can be used, of all nodes.
	names []string
	nodes []corev1.Node
}

// read returns where the volume of a claim can be used, nil where that can be any node, or is
// not known.
func read(ctx context.Context, reader client.Reader, claim *corev1.PersistentVolumeClaim) (*bound, error) {
	if claim == nil || claim.Spec.VolumeName == "" {
		return nil, nil
	}
	pv := &corev1.PersistentVolume{}
	if err := reader.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv); err != nil {
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	nodes, known, err := Nodes(ctx, reader)
	if !known {
		return nil, err
	}
	names, limited := Usable(pv, nodes)
	if !limited {
		return nil, nil
	}
	return &bound{pv.Name, names, nodes}, nil
}
