package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestOwner is about whose an object is: only all three labels say so.
func TestOwner(t *testing.T) {
	for _, test := range []struct {
		reason string
		labels map[string]string
		want   string
	}{
		{"ours", map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: "fleet"}, "team/fleet"},
		{"nobody's", nil, ""},
		{"another tool's with an instance of that name", map[string]string{operatorv1alpha1.LabelManagedBy: "Helm", operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: "fleet"}, ""},
		{"ours, of no registry", map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy}, ""},
		{"ours, of a registry of no namespace", map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: "fleet"}, ""},
	} {
		object := &corev1.ConfigMap{}
		object.Labels = test.labels
		if got := Owner(object); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestContent is about what counts as drift: what somebody decided, and not what
// is observed or counted.
func TestContent(t *testing.T) {
	object := func(modify func(*corev1.Service)) string {
		s := &corev1.Service{}
		s.Name, s.ResourceVersion, s.Spec.Type = "a", "1", corev1.ServiceTypeClusterIP
		modify(s)
		return content(s)
	}
	same := object(func(*corev1.Service) {})
	for _, test := range []struct {
		reason string
		modify func(*corev1.Service)
		drift  bool
	}{
		{"the host counts", func(s *corev1.Service) { s.ResourceVersion, s.Generation = "2", 2 }, false},
		{"a controller reports", func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		}, false},
		{"the type is in some answers only", func(s *corev1.Service) { s.Kind, s.APIVersion = "Service", "v1" }, false},
		{"the spec", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }, true},
		{"a label", func(s *corev1.Service) { s.Labels = map[string]string{"a": "b"} }, true},
		{"an owner", func(s *corev1.Service) { s.OwnerReferences = []metav1.OwnerReference{{Name: "b"}} }, true},
	} {
		if drift := object(test.modify) != same; drift != test.drift {
			t.Errorf("%s is drift: %v", test.reason, drift)
		}
	}
}
