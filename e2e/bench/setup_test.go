package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	hostVersion = "v1.37.1"
	crdGroup    = "bench.example"
)

// The ways to clusters.
const (
	custom     = "CRD"
	direct     = "direct"
	aggregator = "aggregator"
	ceiling    = "ceiling"
)

// aggregated names the contestant that most of the aims are about.
var aggregated = aggregator + " " + inJSON.name

// site is what serves clusters in one way, to an ordinary user and to an administrator.
// Administrators are exempt from authorization, and from priority and fairness.
type site struct {
	way, group          string
	user, administrator *rest.Config
	// servers are the processes that serve; stores are those of their etcd.
	servers, stores []*process
}

// startContestants starts two hosts of one version: one with a registry, one with the
// custom resource. In one host, each would be charged with the other's watch cache. The
// first contestant is the custom resource, with which the others are compared.
func startContestants(t *testing.T, s settings) []*contestant {
	t.Helper()
	crd, alone := startCustom(t, s), startDirect(t, s)
	host, behind := startAggregated(t, s)
	null := startCeiling(t, host, behind)
	contestants := []*contestant{
		crd.contestant(inJSON), alone.contestant(inJSON), alone.contestant(inProtobuf),
		behind.contestant(inJSON), behind.contestant(inProtobuf), null.contestant(inJSON),
	}
	for _, i := range []int{0, 1, 3} {
		contestants[i].populates = true
	}
	for _, of := range []site{crd, behind} {
		c := of.contestant(inJSON)
		c.name, c.administrator = c.name+administrator, true
		if of.way != custom {
			c.base = len(contestants) - 1 // the custom resource's administrator
		}
		contestants = append(contestants, c)
	}
	ca := framework.NewAuthority(t, "example-ca").PEM
	for _, c := range contestants {
		c.ca = ca
		c.connect(t, slices.Max(s.connections))
	}
	return contestants
}

// startCustom starts a host with the custom resource.
func startCustom(t *testing.T, s settings) site {
	t.Helper()
	etcd := framework.StartEtcd(t, 1, s.etcdFlags()...)
	flags := map[string]string{}
	for _, flag := range etcd.Flags() {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		flags[name] = value
	}
	host := framework.StartHostWith(t, hostVersion, flags)
	if _, err := envtest.InstallCRDs(host.Config, envtest.CRDInstallOptions{Paths: []string{"crd.yaml"}}); err != nil {
		t.Fatal(err)
	}
	allow(t, host.Config, crdGroup)
	return site{custom, crdGroup, login(t, host), host.Config, []*process{newProcess(t, hostServer, host.PID(), host.Config)}, members(etcd)}
}

// startDirect starts a registry of its own, whose users and roles are its own, too.
func startDirect(t *testing.T, s settings) site {
	t.Helper()
	return startIndependent(t, framework.StartEtcd(t, 1, s.etcdFlags()...))
}

// startIndependent starts a server in mode Independent on an etcd.
func startIndependent(t *testing.T, etcd *framework.Etcd, flags ...string) site {
	t.Helper()
	clients := framework.NewAuthority(t, "clients")
	registry := framework.StartRegistry(t, slices.Concat(etcd.Flags(), []string{"--mode=independent", "--client-ca-file=" + clients.File}, flags)...)
	registry.WaitReady(t)
	root := registry.Config(clients.Issue("root", []string{"clusterregistry:admins"}))
	allow(t, root, clusterregistry.GroupName)
	return site{direct, clusterregistry.GroupName, registry.Config(clients.Issue(user, nil)), root, []*process{newProcess(t, registryServer, registry.PID(), root)}, members(etcd)}
}

// startVisible starts another server of a registry in mode Independent, which shows clusters by
// their sets. It returns what makes the site of someone who sees the clusters of some sets.
func startVisible(t *testing.T, etcd *framework.Etcd, prefix string) func(t *testing.T, name string, sets ...string) site {
	t.Helper()
	clients := framework.NewAuthority(t, "clients")
	registry := framework.StartRegistry(t, slices.Concat(etcd.Flags(), []string{prefix, "--mode=independent", "--client-ca-file=" + clients.File, "--visibility=ClusterSets"})...)
	registry.WaitReady(t)
	root := registry.Config(clients.Issue("root", []string{"clusterregistry:admins"}))
	server := newProcess(t, registryServer, registry.PID(), root)
	return func(t *testing.T, name string, sets ...string) site {
		t.Helper()
		framework.Create(t, framework.HostClient(t, root),
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{clusterregistry.GroupName}, Resources: []string{"clusters"}, Verbs: []string{"list"}},
				{APIGroups: []string{clusterregistry.GroupName}, Resources: []string{"clustersets/clusters"}, ResourceNames: sets, Verbs: []string{"get"}}}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}})
		s := site{direct, clusterregistry.GroupName, registry.Config(clients.Issue(name, nil)), root, []*process{server}, members(etcd)}
		c := s.contestant(inJSON)
		c.connect(t, 1)
		framework.Eventually(t, "the server to know what "+name+" may do", func(ctx context.Context) error {
			request, err := c.get(ctx, "", nil)
			if err != nil {
				return err
			}
			_, err = c.do(c.connections[0], request)
			return err
		})
		return s
	}
}

// startAggregated starts a host with a registry behind its aggregator. One that is highly
// available has three etcd members and two servers.
func startAggregated(t *testing.T, s settings) (*framework.Host, site) {
	t.Helper()
	host, common := framework.StartReadyHost(t, hostVersion)
	size := 1
	if s.available {
		size = 3
	}
	etcd := framework.StartEtcd(t, size, s.etcdFlags()...)
	flags := slices.Concat(common, etcd.Flags(), []string{"--permit-port-sharing"})
	registry := framework.StartRegistry(t, flags...)
	registry.WaitReady(t)
	servers := []*process{newProcess(t, hostServer, host.PID(), host.Config)}
	if s.available {
		// Both have one address, so that neither can be asked for its profile.
		replica := registry.StartReplica(t, flags...)
		servers = append(servers, newProcess(t, registryServer, registry.PID(), nil), newProcess(t, registryServer, replica.PID(), nil))
	} else {
		config := rest.CopyConfig(host.Config)
		config.Host, config.CAData = registry.URL(), registry.CA.PEM
		servers = append(servers, newProcess(t, registryServer, registry.PID(), config))
	}
	host.AggregateRegistry(t, registry)
	allow(t, host.Config, clusterregistry.GroupName)
	return host, site{aggregator, clusterregistry.GroupName, login(t, host), host.Config, servers, members(etcd)}
}

// startCeiling starts the null backend behind the same aggregator as the registry.
func startCeiling(t *testing.T, host *framework.Host, behind site) site {
	t.Helper()
	authority := framework.NewAuthority(t, "null-ca")
	port := framework.FreePort(t)
	pid := startNull(t, port, authority.Issue("null", nil, "null.default.svc", "localhost", "127.0.0.1"))
	host.Aggregate(t, "null", port, authority.PEM, nullGroup, "v1alpha1")
	allow(t, host.Config, nullGroup)
	s := site{ceiling, nullGroup, behind.user, behind.administrator, []*process{behind.servers[0], newProcess(t, nullServer, pid, nil)}, nil}
	c := s.contestant(inJSON)
	c.connect(t, 1)
	framework.Eventually(t, "the host to serve the null backend", func(ctx context.Context) error {
		request, err := c.get(ctx, "", nil)
		if err != nil {
			return err
		}
		_, err = c.do(c.connections[0], request)
		return err
	})
	return s
}

// members are the processes of an etcd.
func members(etcd *framework.Etcd) (out []*process) {
	for i := range etcd.Endpoints {
		out = append(out, &process{name: store, pid: etcd.PID(i)})
	}
	return out
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

// contestant is the site, asked in an encoding.
func (s site) contestant(e encoding) *contestant {
	root := address(s.user) + "/apis/" + s.group
	return &contestant{
		site: s, name: fmt.Sprintf("%s %s", s.way, e.name), encoding: e, root: root, url: root + "/v1alpha1/clusters",
	}
}
