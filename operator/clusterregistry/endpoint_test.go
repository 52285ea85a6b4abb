package clusterregistry

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/endpoint"
)

func node(name string, age time.Duration, addresses ...corev1.NodeAddress) client.Object {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: *timeAt(time.Now().Add(-age))}, Status: corev1.NodeStatus{Addresses: addresses}}
}

func service(kind corev1.ServiceType, nodePort int32, ingress ...corev1.LoadBalancerIngress) client.Object {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-server"},
		Spec:   corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Port: 443, NodePort: nodePort}}},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}}}
}

// TestEndpoint is about where clients are sent, and what the certificate must be
// valid for.
func TestEndpoint(t *testing.T) {
	internal := func(ip string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip}
	}
	external := corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "203.0.113.1"}
	for reason, test := range map[string]struct {
		service   string
		objects   []client.Object
		addresses []string
		url       string // empty when there is none yet
	}{
		"clients in the host": {"{}", []client.Object{service("ClusterIP", 0)}, nil, "https://fleet-server.team.svc"},
		"nobody said how":     {"null", []client.Object{service("ClusterIP", 0)}, nil, "https://fleet-server.team.svc"},
		"the oldest node, from outside if it can be": {"{type: NodePort}", []client.Object{service("NodePort", 30443), node("young", time.Hour, internal("192.0.2.1")), node("old", 2*time.Hour, internal("192.0.2.2"), external)},
			[]string{"203.0.113.1", "192.0.2.1"}, "https://203.0.113.1:30443"},
		"of nodes of one age, by name": {"{type: NodePort}", []client.Object{service("NodePort", 30443), node("b", 0, internal("192.0.2.2")), node("a", 0, internal("192.0.2.1"))},
			[]string{"192.0.2.1", "192.0.2.2"}, "https://192.0.2.1:30443"},
		"a name comes before nodes":        {"{type: NodePort, hostnames: [registry.example]}", []client.Object{service("NodePort", 30443), node("a", 0, internal("192.0.2.1"))}, []string{"registry.example", "192.0.2.1"}, "https://registry.example:30443"},
		"IPv6 is bracketed":                {"{type: NodePort}", []client.Object{service("NodePort", 30443), node("a", 0, internal("2001:db8::1"))}, []string{"2001:db8::1"}, "https://[2001:db8::1]:30443"},
		"IPv6 without a port, too":         {"{hostnames: ['2001:db8::1']}", []client.Object{service("ClusterIP", 0)}, []string{"2001:db8::1"}, "https://[2001:db8::1]"},
		"a balancer's name and address":    {"{type: LoadBalancer}", []client.Object{service("LoadBalancer", 30000, corev1.LoadBalancerIngress{Hostname: "lb.example", IP: "198.51.100.1"})}, []string{"lb.example", "198.51.100.1"}, "https://lb.example"},
		"a balancer that has none yet":     {"{type: LoadBalancer}", []client.Object{service("LoadBalancer", 30000)}, nil, ""},
		"a name for a balancer to come":    {"{type: LoadBalancer, hostnames: [a.example]}", []client.Object{service("LoadBalancer", 30000)}, []string{"a.example"}, "https://a.example"},
		"a name that is a node's":          {"{type: NodePort, hostnames: [192.0.2.1]}", []client.Object{service("NodePort", 30443), node("a", 0, internal("192.0.2.1"))}, []string{"192.0.2.1"}, "https://192.0.2.1:30443"},
		"a node without an address":        {"{type: NodePort}", []client.Object{service("NodePort", 30443), node("a", 0)}, nil, ""},
		"the host has given no port yet":   {"{type: NodePort, hostnames: [a.example]}", []client.Object{service("NodePort", 0)}, []string{"a.example"}, ""},
		"the Service does not exist yet":   {"{hostnames: [a.example]}", nil, []string{"a.example"}, ""},
		"a type that no schema would pass": {"{type: ExternalName}", []client.Object{service("ExternalName", 0)}, nil, ""},
	} {
		s := look(t, "{spec: {mode: Independent, server: {service: "+test.service+"}}}")
		r := reading(t, test.objects...)
		addresses, err := endpoint.Addresses(t.Context(), r.Client, s.registry)
		if err != nil || !slices.Equal(addresses, test.addresses) {
			t.Errorf("%s: addresses %q (%v), want %q", reason, addresses, err, test.addresses)
		}
		s.addresses = addresses
		v := r.endpoint(t.Context(), s)
		url := ""
		if s.registry.Status.Endpoint != nil {
			url = s.registry.Status.Endpoint.URL
		}
		if url != test.url {
			t.Errorf("%s: URL %q, want %q", reason, url, test.url)
		}
		// With an address, the administrator's Secret is what is missing here.
		if v.Complete() || (v.Reason == operatorv1alpha1.ReasonAddressPending) != (test.url == "") {
			t.Errorf("%s: %+v", reason, v)
		}
	}
}
