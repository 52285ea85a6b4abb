package install

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// cluster is a cluster with just a name.
const cluster = `{apiVersion: clusterregistry.k8s.io/v1alpha1, kind: Cluster, metadata: {name: %s}, spec: {kubernetesApiEndpoints: {serverEndpoints: [{serverAddress: %[1]s.example}]}}}`

// independent returns a small registry at a port of the nodes that the host chooses.
func independent(e *framework.Env, name string) *operatorv1alpha1.ClusterRegistry {
	registry := e.Sample("independent-nodeport.yaml")
	registry.Name = name
	registry.Spec.Server.Replicas, registry.Spec.Server.Service.NodePort = 1, 0
	return registry
}

// TestIndependent installs two registries beside each other, of which one has the
// name of the other's etcd, and uses each from outside with the kubeconfig that
// its status names.
func TestIndependent(t *testing.T) {
	t.Parallel()
	e := framework.New(t).WithOperator()
	team := e.Sample("independent-nodeport.yaml")
	team.Spec.Server.Service.NodePort = 30043 // of those that no Service beside it is given by chance
	registries := []*operatorv1alpha1.ClusterRegistry{team, independent(e, "team-etcd")}
	for _, registry := range registries {
		e.Install(registry)
	}
	var kubectls []*framework.Kubectl
	for _, registry := range registries {
		e.WaitReady(registry)
		checkStatus(t, e, registry)
		kubectls = append(kubectls, newest(t, e.Kubeconfig(registry)))
	}
	checkImages(t, e)
	if endpoint, want := team.Status.Endpoint.URL, fmt.Sprintf(":%d", team.Spec.Server.Service.NodePort); !strings.HasSuffix(endpoint, want) {
		t.Errorf("%s does not end with %s", endpoint, want)
	}
	for _, reference := range team.Status.Inventory {
		if slices.Contains(registries[1].Status.Inventory, reference) {
			t.Errorf("%s belongs to both registries", reference)
		}
	}
	for i, kubectl := range kubectls {
		kubectl.Stdin(fmt.Sprintf(cluster, registries[i].Name)).Run("create", "-f", "-")
	}
	for i, kubectl := range kubectls {
		if out, want := kubectl.Run("get", "crc", "-o", "name"), "cluster.clusterregistry.k8s.io/"+registries[i].Name+"\n"; out != want {
			t.Errorf("registry %s has %q, not %q", registries[i].Name, out, want)
		}
		if out := kubectl.Run("auth", "whoami"); !strings.Contains(out, registries[i].Name+"-admin") {
			t.Errorf("the kubeconfig of registry %s is that of\n%s", registries[i].Name, out)
		}
	}
	controllers(t, e, team)
}

// TestMatrixLoadBalancer lets a load balancer's address come late, and names hosts later
// still. The test is the load balancer. In "make test", e2e/integration has that with a
// host alone.
func TestMatrixLoadBalancer(t *testing.T) {
	t.Parallel()
	e := framework.New(t).WithOperator()
	registry := independent(e, "team")
	registry.Spec.Server.Service.Type = corev1.ServiceTypeLoadBalancer
	e.Install(registry)
	e.WaitCondition(registry, operatorv1alpha1.ConditionEndpointReady, "False", operatorv1alpha1.ReasonAddressPending, "Service team-server of type LoadBalancer has no address yet")

	var service corev1.Service
	if err := e.Get(t.Context(), "team-server", &service); err != nil {
		t.Fatal(err)
	}
	const late, lateName = "192.0.2.10", "lb.example"
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: late}, {Hostname: lateName}}
	if err := e.Client.Status().Update(t.Context(), &service); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the address to be the registry's", func(ctx context.Context) error { return leadsTo(ctx, t, e, registry, late, late, lateName) })

	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Server.Service.Hostnames = []operatorv1alpha1.Hostname{"registry.example", "other.example"}
	})
	e.WaitReady(registry)
	if err := leadsTo(t.Context(), t, e, registry, "registry.example", "registry.example", "other.example", late, lateName); err != nil {
		t.Errorf("the registry says that it is ready: %v", err)
	}
	if err := shown(t, e, registry, "registry.example"); err != nil {
		t.Errorf("the registry says that it is ready: %v", err)
	}
}

// leadsTo returns nil when status and kubeconfig of a registry lead to an address,
// and its certificate is valid for the given names.
func leadsTo(ctx context.Context, t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, address string, valid ...string) error {
	t.Helper()
	if err := e.Get(ctx, registry.Name, registry); err != nil {
		return err
	}
	endpoint := "https://" + address
	if got := registry.Status.Endpoint; got == nil || got.URL != endpoint {
		return fmt.Errorf("status.endpoint is %+v, not %s", got, endpoint)
	}
	if host := e.RegistryConfig(registry).Host; host != endpoint {
		return fmt.Errorf("the kubeconfig leads to %s, not %s", host, endpoint)
	}
	certificate := leaf(t, e, registry.Name+"-serving")
	for _, name := range valid {
		if err := certificate.VerifyHostname(name); err != nil {
			return err
		}
	}
	return nil
}

// shown returns why a client at an address would not trust the server there, or
// nil. A port of a node leads to the same server.
func shown(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, address string) error {
	t.Helper()
	var service corev1.Service
	if err := e.Get(t.Context(), registry.Name+"-server", &service); err != nil {
		t.Fatal(err)
	}
	var nodes corev1.NodeList
	if err := e.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	config := e.RegistryConfig(registry)
	config.ServerName = address
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	node := net.JoinHostPort(nodes.Items[0].Status.Addresses[0].Address, fmt.Sprint(service.Spec.Ports[0].NodePort))
	conn, err := (&tls.Dialer{Config: trust}).DialContext(t.Context(), "tcp", node)
	if err != nil {
		return err
	}
	return conn.Close()
}
