package recovery

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/backup"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/version"
)

// The components whose pods are stopped before anything is recovered.
const (
	componentEtcd   = "etcd"
	componentServer = "server"
)

// scene is a registry, and what a plan needs of the host cluster beside it.
type scene struct {
	registry *v1alpha1.ClusterRegistry
	releases []version.Release
	now      time.Time
	// backups are the ClusterRegistryBackups of its namespace, and pods those of its etcd and
	// servers. The errors say why they are not known.
	backups           []v1alpha1.ClusterRegistryBackup
	noBackups, noPods error
	pods              []corev1.Pod
	// nodes are those of pods that are not ready.
	nodes map[string]node
}

// node is whether a node answers.
type node struct {
	answers, deleted bool
	unknown          error
}

// observe reads what there is. What may not be read is said to be unknown; of an etcd that is
// ready, nothing more is needed.
func (p *planner) observe(ctx context.Context, registry *v1alpha1.ClusterRegistry) (*scene, error) {
	s := &scene{registry: registry, now: p.env.Now(), nodes: map[string]node{}}
	if registry.Status.Recovery == nil && s.etcdReady() {
		return s, nil
	}
	host, err := p.env.Host()
	if err != nil {
		return nil, err
	}
	s.backups, err = backup.List(ctx, host, registry.Namespace)
	s.noBackups = p.env.Explain("list the ClusterRegistryBackups", command.OfHost, err)
	s.pods, err = stoppable(ctx, host, registry)
	s.noPods = p.env.Explain("list the pods", command.OfHost, err)
	for i := range s.pods {
		name := s.pods[i].Spec.NodeName
		if _, has := s.nodes[name]; name != "" && !has && !diagnose.Ready(&s.pods[i]) {
			s.nodes[name] = nodeOf(ctx, host, name)
		}
	}
	return s, nil
}

// stoppable returns the pods of a registry's etcd and servers.
func stoppable(ctx context.Context, host dynamic.Interface, registry *v1alpha1.ClusterRegistry) ([]corev1.Pod, error) {
	list, err := host.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(registry.Namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelInstance + "=" + registry.Name})
	if err != nil {
		return nil, err
	}
	var out []corev1.Pod
	for i := range list.Items {
		pod := corev1.Pod{}
		if err := decode(&list.Items[i], &pod); err != nil {
			return nil, err
		}
		if component := pod.Labels[v1alpha1.LabelComponent]; component == componentEtcd || component == componentServer {
			out = append(out, pod)
		}
	}
	return out, nil
}

// nodeOf finds out whether a node answers.
func nodeOf(ctx context.Context, host dynamic.Interface, name string) node {
	object, err := host.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).Get(ctx, name, metav1.GetOptions{})
	found := corev1.Node{}
	if err == nil {
		err = decode(object, &found)
	}
	if err != nil {
		return node{deleted: apierrors.IsNotFound(err), unknown: err}
	}
	return node{answers: slices.ContainsFunc(found.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})}
}

func decode(from *unstructured.Unstructured, to any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to); err != nil {
		return fmt.Errorf("read %s %s: %w; this plugin may be too old", from.GetKind(), from.GetName(), err)
	}
	return nil
}

// condition returns what the operator says of etcd, nil when it has said nothing.
func (s *scene) condition() *metav1.Condition {
	return meta.FindStatusCondition(s.registry.Status.Conditions, v1alpha1.ConditionEtcdReady)
}

func (s *scene) etcdReady() bool {
	ready := s.condition()
	return ready != nil && ready.Status == metav1.ConditionTrue
}

// runs reports whether etcd runs in the pod of a member, on a node that is not known to be down.
func (s *scene) runs(member string) bool {
	return slices.ContainsFunc(s.pods, func(pod corev1.Pod) bool {
		node := s.nodes[pod.Spec.NodeName]
		up := diagnose.Ready(&pod) || node.answers || node.unknown != nil && !node.deleted
		return pod.Name == member && pod.DeletionTimestamp == nil && up && slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
			return c.Name == componentEtcd && c.State.Running != nil
		})
	})
}
