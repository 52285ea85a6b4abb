package hostentry

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/pager"

	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	apply "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// Reporter is the name of this package's entry in status.reporters, and its field
	// manager there.
	Reporter = contract.RegisterHostReporter

	identityVerified = v1beta1.ConditionIdentityVerified
	reason           = "HostCluster"
	message          = "The controller runs in this cluster, and has read the UID of its namespace kube-system."
)

// shown are the resources whose sums are reported.
var shown = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}

// report writes what is known of the host cluster to the status of its entry, if it
// isn't there yet.
func (r *Registrar) report(ctx context.Context, cluster *v1beta1.Cluster) error {
	version, err := r.Host.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the host cluster for its version: %w", err)
	}
	nodes, err := r.nodes(ctx)
	if err != nil {
		return fmt.Errorf("list the nodes of the host cluster: %w", err)
	}
	want := v1beta1.ClusterStatus{Version: v1beta1.ClusterVersion{Kubernetes: version.GitVersion}}
	if nodes != nil {
		want.Nodes, want.Capacity, want.Allocatable = &nodes.count, nodes.capacity, nodes.allocatable
	}
	if same(cluster, want) {
		return nil
	}
	now := metav1.NewTime(r.Clock.Now())
	verified := func(have []metav1.Condition) *metav1ac.ConditionApplyConfiguration {
		since := now
		for _, c := range have {
			if c.Type == identityVerified && c.Status == metav1.ConditionTrue {
				since = c.LastTransitionTime
			}
		}
		return metav1ac.Condition().WithType(identityVerified).WithStatus(metav1.ConditionTrue).WithReason(reason).WithMessage(message).
			WithObservedGeneration(cluster.Generation).WithLastTransitionTime(since)
	}
	have := v1beta1.ClusterStatus{}
	if cluster.Status != nil {
		have = *cluster.Status
	}
	status := apply.ClusterStatus().
		WithVersion(apply.ClusterVersion().WithKubernetes(want.Version.Kubernetes)).
		WithConditions(verified(have.Conditions)).
		WithReporters(apply.Reporter().WithName(Reporter).WithLastSeen(now).WithConditions(verified(ownConditions(have))))
	if want.Nodes != nil {
		status.WithNodes(apply.NodeCount().WithTotal(want.Nodes.Total).WithReady(want.Nodes.Ready)).WithCapacity(want.Capacity).WithAllocatable(want.Allocatable)
	}
	_, err = r.Clusters.ApplyStatus(ctx, apply.Cluster(r.Name).WithUID(cluster.UID).WithStatus(status), metav1.ApplyOptions{FieldManager: Reporter, Force: true})
	if err != nil {
		return fmt.Errorf("report of cluster %q: %w", r.Name, err)
	}
	return nil
}

// same reports whether the entry says already what is to be reported.
func same(cluster *v1beta1.Cluster, want v1beta1.ClusterStatus) bool {
	have := cluster.Status
	if have == nil || have.Version != want.Version || !isVerified(have.Conditions) || !isVerified(ownConditions(*have)) {
		return false
	}
	return want.Nodes == nil || equality.DeepEqual(have.Nodes, want.Nodes) &&
		equality.DeepEqual(have.Capacity, want.Capacity) && equality.DeepEqual(have.Allocatable, want.Allocatable)
}

func isVerified(conditions []metav1.Condition) bool {
	for _, c := range conditions {
		if c.Type == identityVerified {
			return c.Status == metav1.ConditionTrue && c.Reason == reason && c.Message == message
		}
	}
	return false
}

func ownConditions(status v1beta1.ClusterStatus) []metav1.Condition {
	for _, reporter := range status.Reporters {
		if reporter.Name == Reporter {
			return reporter.Conditions
		}
	}
	return nil
}

// totals are sums over nodes.
type totals struct {
	count                 v1beta1.NodeCount
	capacity, allocatable map[string]resource.Quantity
}

// nodes adds up the host cluster's nodes, page by page, so that no more than a few pages of
// them are in memory; nil when they may not be read.
func (r *Registrar) nodes(ctx context.Context) (*totals, error) {
	sum := &totals{capacity: map[string]resource.Quantity{}, allocatable: map[string]resource.Quantity{}}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.Host.CoreV1().Nodes().List(ctx, options)
	})
	pages.PageBufferSize = 1
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		sum.add(object.(*corev1.Node))
		return nil
	})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return sum, err
}

func (t *totals) add(node *corev1.Node) {
	add := func(to map[string]resource.Quantity, from corev1.ResourceList) {
		for _, name := range shown {
			if quantity, ok := from[name]; ok {
				total := to[string(name)]
				total.Add(quantity)
				to[string(name)] = total
			}
		}
	}
	t.count.Total++
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			t.count.Ready++
		}
	}
	add(t.capacity, node.Status.Capacity)
	add(t.allocatable, node.Status.Allocatable)
}
