package endpoint

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/address"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/servers"
)

func node(name string, age time.Duration, addresses ...corev1.NodeAddress) client.Object {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-age))}, Status: corev1.NodeStatus{Addresses: addresses}}
}

func service(kind corev1.ServiceType, nodePort int32, ingress ...corev1.LoadBalancerIngress) client.Object {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-server"},
		Spec:   corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Port: 443, NodePort: nodePort}}},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}}}
}

// stageOf returns the stage of a registry whose certificates are ready.
func stageOf(o *operand.Objects) *Stage { return &Stage{Access: servers.Access{Objects: o}} }

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
		s := stageOf(operandtest.New(t, "{spec: {mode: Independent, server: {service: "+test.service+"}}}", test.objects...))
		addresses, err := address.Addresses(t.Context(), s.Client, s.Registry)
		if err != nil || !slices.Equal(addresses, test.addresses) {
			t.Errorf("%s: addresses %q (%v), want %q", reason, addresses, err, test.addresses)
		}
		s.Addresses = addresses
		v := s.Run(t.Context())
		url := ""
		if s.Registry.Status.Endpoint != nil {
			url = s.Registry.Status.Endpoint.URL
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

// TestPortKept has a registry lose its Service while it can't be made again: the
// record of its port stays.
func TestPortKept(t *testing.T) {
	for reason, test := range map[string]struct {
		kind string
		kept bool
	}{"of a node port": {"NodePort", true}, "of a balancer": {"LoadBalancer", false}, "within the host": {"ClusterIP", false}} {
		s := stageOf(operandtest.New(t, "{spec: {mode: Independent, server: {service: {type: "+test.kind+"}}}, status: {endpoint: {url: 'https://203.0.113.1:30443'}}}"))
		if v := s.Run(t.Context()); v.Complete() || v.Reason != operatorv1alpha1.ReasonAddressPending {
			t.Errorf("%s: %+v", reason, v)
		}
		if kept := s.Registry.Status.Endpoint != nil; kept != test.kept {
			t.Errorf("%s: kept is %v", reason, kept)
		}
	}
}

// TestMoved is about whom an event sends elsewhere.
func TestMoved(t *testing.T) {
	for reason, test := range map[string]struct {
		status, kubeconfig string
		want               bool
	}{
		"as it was": {"https://a", "https://a", false},
		"as it was, and the kubeconfig is behind": {"https://a", "https://b", false},
		"another one":                     {"https://b", "https://b", true},
		"another one, after it had none":  {"", "https://b", true},
		"the same one, after it had none": {"", "https://a", false},
		"its first":                       {"", "", false},
	} {
		var objects []client.Object
		if test.kubeconfig != "" {
			content := "clusters: [{name: fleet, cluster: {server: '" + test.kubeconfig + "'}}]"
			objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-kubeconfig"}, Data: map[string][]byte{"kubeconfig": []byte(content)}})
		}
		s, recorder := stageOf(operandtest.New(t, "{spec: {mode: Independent}}", objects...)), events.NewFakeRecorder(10)
		s.Events = recorder
		if test.status != "" {
			s.Before.Endpoint = &operatorv1alpha1.Endpoint{URL: test.status}
		}
		if err := s.tellMoved(t.Context(), "https://a"); err != nil {
			t.Fatal(err)
		}
		if told := len(recorder.Events) == 1; told != test.want {
			t.Errorf("%s: told is %v", reason, told)
		}
		if test.want {
			if event := <-recorder.Events; !strings.Contains(event, "now https://a instead of https://b") || !strings.Contains(event, "Secret fleet-kubeconfig") {
				t.Errorf("%s: %s", reason, event)
			}
		}
	}
}
