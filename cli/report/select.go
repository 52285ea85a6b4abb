package report

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/hostcluster"
)

// labelName is the label that the operator's own objects have with the operator's name.
const labelName = "app.kubernetes.io/name"

// selection knows what in a namespace belongs to a registry or to the operator. The
// rest is of neighbors, who are none of a bug report's business.
type selection struct {
	// registry and operator say whether those are in the namespace.
	registry, operator bool
	// name is the registry's.
	name string
	// kept are the kinds and names of what was selected, and makers the names of those
	// that make others with names that begin with theirs.
	kept   map[string]bool
	makers []string
}

func newSelection(registry *v1alpha1.ClusterRegistry, operatorNamespace, namespace string) *selection {
	return &selection{registry: namespace == registry.Namespace, operator: namespace == operatorNamespace, name: registry.Name, kept: map[string]bool{}}
}

// labels reports whether labels are those of the registry or the operator.
func (s *selection) labels(labels map[string]string) bool {
	return s.registry && labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy && labels[v1alpha1.LabelInstance] == s.name ||
		s.operator && labels[labelName] == v1alpha1.ManagedBy
}

// keep reports whether an object belongs to the registry or the operator, and
// remembers it for those that it owns and the events about it.
func (s *selection) keep(object *unstructured.Unstructured) bool {
	if !s.is(object) {
		return false
	}
	s.kept[object.GetKind()+"/"+object.GetName()] = true
	if slices.Contains([]string{"Deployment", "StatefulSet", "Job", "Certificate", hostcluster.Kind.Kind}, object.GetKind()) {
		s.makers = append(s.makers, object.GetName()+"-")
	}
	return true
}

func (s *selection) is(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case hostcluster.Kind.Kind:
		return s.registry && object.GetName() == s.name
	case "Event":
		return s.event(object)
	case "Lease":
		// Those of leader elections have no labels.
		return s.operator && strings.Contains(object.GetName(), "clusterregistry")
	}
	// What installs the operator may label its Deployment in its own way.
	template, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
	return s.labels(object.GetLabels()) || s.labels(template) || slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return s.kept[owner.Kind+"/"+owner.Name]
	})
}

// event reports whether an event is about something that was kept, or that such a
// thing has made and that may be gone.
func (s *selection) event(object *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(object.Object, "involvedObject", "kind")
	name, _, _ := unstructured.NestedString(object.Object, "involvedObject", "name")
	return s.kept[kind+"/"+name] || slices.ContainsFunc(s.makers, func(maker string) bool { return strings.HasPrefix(name, maker) })
}

// pod reports whether a pod's logs are read.
func (s *selection) pod(pod *corev1.Pod) bool { return s.labels(pod.Labels) }
