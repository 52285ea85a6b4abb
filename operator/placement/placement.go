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
	"k8s.io/apimachinery/pkg/labels"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Nodes returns the nodes of the host cluster, and false when the operator may not read them.
func Nodes(ctx context.Context, reader client.Reader) (nodes []corev1.Node, known bool, err error) {
	list := &corev1.NodeList{}
	err = reader.List(ctx, list)
	if apierrors.IsForbidden(err) {
		return nil, false, nil
	}
	return list.Items, err == nil, err
}

// lifecycle begins the taints that come and go with the state of a node.
const lifecycle = "node.kubernetes.io/"

// Allows reports whether members may run on a node by the placement: as long as it is ready
// and not cordoned.
func Allows(node *corev1.Node, placement operatorv1alpha1.Placement) bool {
	repels := func(taint *corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(taint.Key, lifecycle)
	}
	_, repelled := schedulinghelpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, placement.Tolerations, repels, false)
	return labels.SelectorFromSet(placement.NodeSelector).Matches(labels.Set(node.Labels)) && !repelled
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
func Stays(ctx context.Context, reader client.Reader, claim *corev1.PersistentVolumeClaim, placement operatorv1alpha1.Placement) (string, error) {
	if claim == nil || claim.Spec.VolumeName == "" {
		return "", nil
	}
	pv := &corev1.PersistentVolume{}
	if err := reader.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv); err != nil {
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", err
	}
	nodes, known, err := Nodes(ctx, reader)
	if !known {
		return "", err
	}
	names, limited := Usable(pv, nodes)
	allowed := slices.ContainsFunc(nodes, func(node corev1.Node) bool {
		return slices.Contains(names, node.Name) && Allows(&node, placement)
	})
	if !limited || len(names) == 0 || allowed {
		return "", nil
	}
	return fmt.Sprintf("its volume %s can be used on %s only, where spec.etcd.nodeSelector and spec.etcd.tolerations do not let it run", pv.Name, strings.Join(names, ", ")), nil
}
