package address

import (
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// noon is when the nodes of these tests are looked at.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func node(name string, age time.Duration, addresses ...corev1.NodeAddress) client.Object {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-age))}, Status: corev1.NodeStatus{Addresses: addresses}}
}

// down returns a copy of a node that kubelet reports nothing of for long.
func down(object client.Object) client.Object {
	out := object.DeepCopyObject().(*corev1.Node)
	out.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	return out
}

func at(kind corev1.NodeAddressType, address string) corev1.NodeAddress {
	return corev1.NodeAddress{Type: kind, Address: address}
}

func service(kind corev1.ServiceType, nodePort int32, ingress ...corev1.LoadBalancerIngress) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-server"},
		Spec:   corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Port: 443, NodePort: nodePort}}},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}}}
}

// TestAddresses is about what the servers' certificate must be valid for, the address
// that clients are sent to first.
func TestAddresses(t *testing.T) {
	internal, young := at(corev1.NodeInternalIP, "192.0.2.2"), node("young", time.Hour, at(corev1.NodeInternalIP, "192.0.2.1"))
	for _, test := range []struct {
		reason, mode, service string
		objects               []client.Object
		want                  []string
	}{
		{"clients in the host", "Independent", "{}", []client.Object{service("ClusterIP", 0), young}, nil},
		{"nobody said how", "Independent", "null", []client.Object{young}, nil},
		{"an aggregated one is reached through the host", "Aggregated", "{type: NodePort, hostnames: [a.example]}", []client.Object{young}, nil},
		{"the oldest node first", "Independent", "{type: NodePort}", []client.Object{young, node("old", 2*time.Hour, internal)}, []string{"192.0.2.2", "192.0.2.1"}},
		{"a node that is not ready last", "Independent", "{type: NodePort}", []client.Object{young, down(node("old", 2*time.Hour, internal))}, []string{"192.0.2.1", "192.0.2.2"}},
		{"no node is ready", "Independent", "{type: NodePort}", []client.Object{down(young), down(node("old", 2*time.Hour, internal))}, []string{"192.0.2.2", "192.0.2.1"}},
		{"of nodes of one age, by name", "Independent", "{type: NodePort}", []client.Object{node("z", time.Hour, internal), young}, []string{"192.0.2.1", "192.0.2.2"}},
		{"from outside, if it can be", "Independent", "{type: NodePort}", []client.Object{node("a", 0, internal, at(corev1.NodeExternalDNS, "a.example"), at(corev1.NodeExternalIP, "203.0.113.1"))}, []string{"203.0.113.1"}},
		{"a name from outside is better than an address from inside", "Independent", "{type: NodePort}", []client.Object{node("a", 0, internal, at(corev1.NodeExternalDNS, "a.example"))}, []string{"a.example"}},
		{"what only the node knows leads nowhere", "Independent", "{type: NodePort}", []client.Object{node("a", 0, at(corev1.NodeHostName, "a"))}, nil},
		{"a name comes before nodes", "Independent", "{type: NodePort, hostnames: [registry.example]}", []client.Object{young}, []string{"registry.example", "192.0.2.1"}},
		{"a name that is a node's, once", "Independent", "{type: NodePort, hostnames: [192.0.2.1]}", []client.Object{young}, []string{"192.0.2.1"}},
		{"a balancer's name and address", "Independent", "{type: LoadBalancer}", []client.Object{service("LoadBalancer", 0, corev1.LoadBalancerIngress{Hostname: "lb.example", IP: "198.51.100.1"}), young}, []string{"lb.example", "198.51.100.1"}},
		{"a balancer that has none yet", "Independent", "{type: LoadBalancer}", []client.Object{service("LoadBalancer", 0)}, nil},
		{"a balancer whose Service does not exist yet", "Independent", "{type: LoadBalancer, hostnames: [a.example]}", nil, []string{"a.example"}},
	} {
		reader := fake.NewClientBuilder().WithObjects(test.objects...).Build()
		got, err := Addresses(t.Context(), reader, registryOf(t, test.mode, test.service))
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %q (%v), want %q", test.reason, got, err, test.want)
		}
	}
}

// TestFewNodes bounds a certificate: with all nodes of a great host in it, each
// new node would be a new certificate.
func TestFewNodes(t *testing.T) {
	var objects []client.Object
	for i := range 20 {
		objects = append(objects, node("n"+strconv.Itoa(i), time.Duration(i)*time.Hour, at(corev1.NodeInternalIP, "192.0.2."+strconv.Itoa(i))))
	}
	addresses, err := nodes(t.Context(), fake.NewClientBuilder().WithObjects(objects...).Build())
	if err != nil || len(addresses) != maxNodes || addresses[0] != "192.0.2.19" {
		t.Errorf("%q, %v", addresses, err)
	}
	for i := 5; i < 20; i++ {
		objects[i] = down(objects[i])
	}
	addresses, err = nodes(t.Context(), fake.NewClientBuilder().WithObjects(objects...).Build())
	if err != nil || len(addresses) != maxNodes || addresses[0] != "192.0.2.4" || addresses[1] != "192.0.2.19" {
		t.Errorf("with the oldest down: %q, %v", addresses, err)
	}
}
