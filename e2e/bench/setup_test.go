package bench

import (
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	hostVersion = "v1.37.1"
	// connections is how many requests are under way at a time.
	connections = 4
	// user is whom all contestants serve. He is no administrator: those are
	// exempt from authorization, and from priority and fairness.
	user = "bench"

	registryGroup = "clusterregistry.k8s.io"
	crdGroup      = "bench.example"
)

// startContestants starts two hosts of one version, each with an etcd of its
// own: one with a registry, one with the custom resource. In one host, each
// would be charged with the other's watch cache. The first contestant is the
// custom resource, with which the others are compared.
func startContestants(t *testing.T) []*contestant {
	t.Helper()
	crdHost := framework.StartHost(t, hostVersion, "front-proxy-client")
	if _, err := envtest.InstallCRDs(crdHost.Config, envtest.CRDInstallOptions{Paths: []string{"crd.yaml"}}); err != nil {
		t.Fatal(err)
	}
	host, registry := framework.StartAggregated(t, hostVersion)
	allow(t, crdHost, crdGroup)
	allow(t, host, registryGroup)

	direct := func(config *rest.Config) *rest.Config {
		config = rest.CopyConfig(config)
		config.Host, config.CAData = registry.URL(), registry.CA.PEM
		return config
	}
	crdProcess := newProcess(t, "kube-apiserver", crdHost.PID(), crdHost.Config)
	hostProcess := newProcess(t, "kube-apiserver", host.PID(), host.Config)
	registryProcess := newProcess(t, "registry", registry.PID(), direct(host.Config))

	contestants := []*contestant{{name: "CRD", encoding: inJSON, group: crdGroup, servers: []*process{crdProcess}, populates: true}}
	connect(t, contestants[0], login(t, crdHost))
	for _, e := range []encoding{inJSON, inProtobuf} {
		c := &contestant{name: "direct", encoding: e, group: registryGroup, servers: []*process{registryProcess}, populates: e.name == inJSON.name}
		connect(t, c, direct(login(t, host)))
		contestants = append(contestants, c)
	}
	for _, e := range []encoding{inJSON, inProtobuf} {
		c := &contestant{name: "aggregator", encoding: e, group: registryGroup, servers: []*process{hostProcess, registryProcess}}
		connect(t, c, login(t, host))
		contestants = append(contestants, c)
	}
	ca := framework.NewAuthority(t, "example-ca").PEM
	for _, c := range contestants {
		c.ca = ca
	}
	return contestants
}

// allow lets the user do everything with clusters.
func allow(t *testing.T, host *framework.Host, group string) {
	t.Helper()
	framework.Create(t, framework.HostClient(t, host.Config),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{group}, Resources: []string{"clusters", "clusters/status"}, Verbs: []string{"*"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}})
}

// login returns the user's way to a host.
func login(t *testing.T, host *framework.Host) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", host.Kubeconfig(user))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// connect gives a contestant its connections.
func connect(t *testing.T, c *contestant, config *rest.Config) {
	t.Helper()
	c.name += " " + c.encoding.name
	c.url = address(config) + "/apis/" + c.group + "/v1alpha1/clusters"
	for range connections {
		c.connections = append(c.connections, newConnection(t, config))
	}
}

// newConnection returns a client whose connection is no other's. Answers are
// not compressed: zipping would hide what encoding costs.
func newConnection(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, DisableCompression: true, MaxIdleConnsPerHost: watchers}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// address returns the start of a server's URLs.
func address(config *rest.Config) string { return strings.TrimSuffix(config.Host, "/") }
