package address

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestPort is about which of a Service's ports is reached from outside.
func TestPort(t *testing.T) {
	portless := service("ClusterIP", 0)
	portless.Spec.Ports = nil
	for _, test := range []struct {
		reason  string
		service *corev1.Service
		want    int32
	}{
		{"within the host", service("ClusterIP", 0), 443},
		{"of the nodes", service("NodePort", 30443), 30443},
		{"of the nodes, which have none yet", service("NodePort", 0), 0},
		{"of a balancer, whatever the nodes have", service("LoadBalancer", 30000), 443},
		{"no ports", portless, 0},
		{"no Service", nil, 0},
	} {
		build := fake.NewClientBuilder()
		if test.service != nil {
			build = build.WithObjects(test.service)
		}
		got, err := Port(t.Context(), build.Build(), client.ObjectKey{Namespace: "team", Name: "fleet-server"})
		if err != nil || got != test.want {
			t.Errorf("%s: %d, %v; want %d", test.reason, got, err, test.want)
		}
	}
}

// TestURL is about what clients are given.
func TestURL(t *testing.T) {
	for _, test := range []struct {
		address string
		port    int32
		want    string
	}{
		{"a.example", 443, "https://a.example"},
		{"a.example", 30443, "https://a.example:30443"},
		{"203.0.113.1", 443, "https://203.0.113.1"},
		{"2001:db8::1", 443, "https://[2001:db8::1]"},
		{"2001:db8::1", 30443, "https://[2001:db8::1]:30443"},
	} {
		if got := URL(test.address, test.port); got != test.want {
			t.Errorf("%s at %d: %s, want %s", test.address, test.port, got, test.want)
		}
	}
}
