package render

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// peer is a pod that calls or is called, or somebody without a pod, who has no
// labels.
type peer struct {
	namespace string
	labels    map[string]string
	// ports are those that a rule can name.
	ports []corev1.ContainerPort
}

// allowed reports whether NetworkPolicies let a call through, as their API
// defines it: a pod that none of them selects is open, in each direction.
func allowed(t *testing.T, policies []networkingv1.NetworkPolicy, from, to peer, port int32) bool {
	t.Helper()
	return comesIn(t, policies, from, to, port) && goesOut(t, policies, from, to, port)
}

// goesOut reports whether the policies of the calling pod let its call out.
func goesOut(t *testing.T, policies []networkingv1.NetworkPolicy, from, to peer, port int32) bool {
	t.Helper()
	closed := false
	for _, policy := range policies {
		if policy.Namespace != from.namespace || !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || !selects(t, &policy.Spec.PodSelector, from.labels) {
			continue
		}
		closed = true
		for _, rule := range policy.Spec.Egress {
			if numberedPorts(t, rule.Ports, to, port) && peers(t, rule.To, policy.Namespace, to) {
				return true
			}
		}
	}
	return !closed
}

// numberedPorts reports whether ports, named or numbered, have one of a pod.
func numberedPorts(t *testing.T, ports []networkingv1.NetworkPolicyPort, to peer, port int32) bool {
	t.Helper()
	for _, p := range ports {
		if p.Port == nil || p.Port.IntVal == port {
			return true
		}
		for _, named := range to.ports {
			if named.Name == p.Port.StrVal && named.ContainerPort == port {
				return true
			}
		}
	}
	return len(ports) == 0
}

func comesIn(t *testing.T, policies []networkingv1.NetworkPolicy, from, to peer, port int32) bool {
	t.Helper()
	closed := false
	for _, policy := range policies {
		if policy.Namespace != to.namespace || !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) || !selects(t, &policy.Spec.PodSelector, to.labels) {
			continue
		}
		closed = true
		for _, rule := range policy.Spec.Ingress {
			if rulePorts(t, rule, to, port) && peers(t, rule.From, policy.Namespace, from) {
				return true
			}
		}
	}
	return !closed
}

func rulePorts(t *testing.T, rule networkingv1.NetworkPolicyIngressRule, to peer, port int32) bool {
	t.Helper()
	for _, p := range rule.Ports {
		if p.Port == nil || p.Port.StrVal == "" || p.EndPort != nil || *p.Protocol != corev1.ProtocolTCP {
			t.Fatalf("this test knows named ports of TCP only, not %+v", p)
		}
		for _, named := range to.ports {
			if named.Name == p.Port.StrVal && named.ContainerPort == port {
				return true
			}
		}
	}
	return len(rule.Ports) == 0
}

// peers reports whether a list of peers, of a rule in a namespace, has one that calls or is called.
func peers(t *testing.T, list []networkingv1.NetworkPolicyPeer, namespace string, from peer) bool {
	t.Helper()
	for _, p := range list {
		if p.IPBlock != nil {
			continue // the pods of this test have no addresses
		}
		inNamespace := from.namespace == namespace
		if p.NamespaceSelector != nil {
			inNamespace = selects(t, p.NamespaceSelector, map[string]string{corev1.LabelMetadataName: from.namespace})
		}
		if inNamespace && (p.PodSelector == nil || selects(t, p.PodSelector, from.labels)) {
			return true
		}
	}
	return len(list) == 0
}

func selects(t *testing.T, selector *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(labels.Set(of))
}
