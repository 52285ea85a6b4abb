package integration

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/e2e/framework"
)

// fleetMember is a real kube-apiserver that is a cluster of registries.
type fleetMember struct {
	*framework.Host
	name string
	// address is where it is on the network of the members, without the port.
	address string
	// ca signs its certificate there, which is for serverName.
	ca      *framework.Authority
	serving *framework.Mount
}

// serverName is the name that the certificate of each member is for.
const serverName = "member.example.com"

// withoutAnonymous lets anonymous clients ask for what starts the test only.
const withoutAnonymous = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /healthz}]}
`

// TestMembers has real API servers as the clusters of registries: people enter, use and
// move them with kubectl-registry, and the controller reports what happens to them.
func TestMembers(t *testing.T) {
	t.Parallel()
	network := framework.StartNetwork(t)
	all := map[string]*fleetMember{}
	for i, name := range []string{"north", "south", "east", "west"} {
		all[name] = startMember(t, network, name, byte(11+i))
	}
	hosts := map[string]*framework.Host{"east": all["east"].Host, "west": all["west"].Host}
	t.Run("plugin", func(t *testing.T) { testPlugin(t, hosts) })
	t.Run("join", func(t *testing.T) { testJoins(t, all) })
	t.Run("transfer", func(t *testing.T) { testTransfer(t, all) })
	t.Run("health", func(t *testing.T) { testHealth(t, network, all) })
}

// startMember starts a member with an address on a network, which ends in a number.
// That of the west tells anonymous clients nothing.
func startMember(t *testing.T, network *framework.Network, name string, number byte) *fleetMember {
	t.Helper()
	m := &fleetMember{name: name, address: network.Address(number), ca: framework.NewAuthority(t, name+"-ca")}
	m.serving = framework.NewMount(t, m.ca.Issue(name, nil, serverName))
	flags := map[string]string{"bind-address": "0.0.0.0", "tls-sni-cert-key": m.serving.Cert + "," + m.serving.Key}
	if name == "west" {
		flags["authentication-config"] = written(t, "authentication.yaml", withoutAnonymous)
	}
	m.Host = framework.StartHostWith(t, newest, flags)
	return m
}

// url returns where a member is.
func (m *fleetMember) url(t *testing.T) string {
	t.Helper()
	own, err := url.Parse(m.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return "https://" + net.JoinHostPort(m.address, own.Port())
}

// enter adds a context with a member's name to a kubeconfig, for an administrator.
func (m *fleetMember) enter(t *testing.T, config *clientcmdapi.Config) {
	t.Helper()
	own, err := clientcmd.LoadFromFile(m.Kubeconfig("root", "system:masters"))
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters[m.name] = &clientcmdapi.Cluster{Server: m.url(t), CertificateAuthorityData: m.ca.PEM, TLSServerName: serverName}
	config.AuthInfos[m.name] = own.AuthInfos[own.Contexts[own.CurrentContext].AuthInfo]
	config.Contexts[m.name] = &clientcmdapi.Context{Cluster: m.name, AuthInfo: m.name}
}

// kubeconfig writes a kubeconfig with the contexts of some members, and returns its path.
func kubeconfig(t *testing.T, members ...*fleetMember) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	for _, m := range members {
		m.enter(t, config)
	}
	return saved(t, config)
}

func saved(t *testing.T, config *clientcmdapi.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// written writes a file and returns its path.
func written(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// program writes a shell script and returns its path.
func program(t *testing.T, name, script string) string {
	t.Helper()
	path := written(t, name, "#!/bin/sh\n"+script)
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return path
}

// token returns a token of a service account that may do anything in a member.
func token(t *testing.T, host *framework.Host) string {
	t.Helper()
	valid, _ := host.Tokens()
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "people-"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts"}}}
	if _, err := clientset(t, host.Config).RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return valid
}

// credential is what an exec plugin prints for a token.
func credential(version, token string) string {
	return `{"apiVersion":"client.authentication.k8s.io/` + version + `","kind":"ExecCredential","status":{"token":"` + token + `"}}`
}
