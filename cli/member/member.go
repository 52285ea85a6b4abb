// Package member reads a cluster that is to be entered in a registry: from a context
// of a kubeconfig, and from the cluster itself. It takes no credentials along.
package member

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/address"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
)

// Member is a context of a kubeconfig.
type Member struct {
	// Context is the context's name.
	Context string
	// Cluster is where the context leads, and ClusterName what the kubeconfig calls that.
	Cluster     *clientcmdapi.Cluster
	ClusterName string
	// Exec is how its user gets credentials, nil when not by a program.
	Exec *clientcmdapi.ExecConfig

	config clientcmd.ClientConfig
}

// Load finds a context in a kubeconfig, or in the default ones when the path is
// empty.
func Load(path, name string) (*Member, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if path != "" {
		rules.ExplicitPath = path
	}
	raw, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read the cluster's kubeconfig: %w; name the file with --cluster-kubeconfig", err)
	}
	found, is := raw.Contexts[name]
	if !is {
		known := slices.Sorted(maps.Keys(raw.Contexts))
		if len(known) == 0 {
			return nil, command.Usagef("the kubeconfig has no contexts, and so not %q: name its file with --cluster-kubeconfig", command.Plain(name))
		}
		return nil, command.Usagef("the kubeconfig has no context %q: it has %s; name another file with --cluster-kubeconfig", command.Plain(name), command.Plain(strings.Join(known, ", ")))
	}
	cluster, is := raw.Clusters[found.Cluster]
	if !is {
		return nil, command.Usagef("context %q names the cluster %q, which the kubeconfig doesn't have: correct it with \"kubectl config set-context\"", command.Plain(name), command.Plain(found.Cluster))
	}
	member := &Member{Context: name, Cluster: cluster, ClusterName: found.Cluster, config: clientcmd.NewNonInteractiveClientConfig(*raw, name, &clientcmd.ConfigOverrides{}, rules)}
	if user := raw.AuthInfos[found.AuthInfo]; user != nil {
		member.Exec = user.Exec
	}
	return member, nil
}

// Endpoint returns what the registry is to list as the way to the cluster. A server
// takes the place of the context's address unless it is empty. It refuses what would
// lead other clients astray.
func (m *Member) Endpoint(name, server string) (v1beta1.Endpoint, error) {
	none := v1beta1.Endpoint{}
	context := command.Plain(m.Context)
	if m.Cluster.InsecureSkipTLSVerify {
		return none, command.Refusedf("context %q has insecure-skip-tls-verify: the registry takes only endpoints whose certificate is verified; set the cluster's CA with \"kubectl config set-cluster %s --insecure-skip-tls-verify=false --certificate-authority=FILE --embed-certs\"", context, command.Quote(m.ClusterName))
	}
	at := server
	if at == "" {
		at = m.Cluster.Server
		if fault := local(at); fault != "" {
			return none, command.Refusedf("context %q leads to %s, %s: say with --server which https URL other computers reach the cluster at", context, command.Plain(at), fault)
		}
	} else if fault := local(at); fault != "" {
		return none, command.Refusedf("--server=%s: %s; name an address that other computers reach the cluster at", command.Plain(at), fault)
	}
	if u, err := url.Parse(at); err != nil || u.Scheme != "https" {
		return none, command.Refusedf("the server of context %q is not an https URL: the registry takes only endpoints with TLS; name one with --server", context)
	}
	bundle, err := m.caBundle()
	if err != nil {
		return none, err
	}
	if u, err := url.Parse(m.Cluster.ProxyURL); err != nil || u.User != nil {
		return none, command.Refusedf("the proxy of context %q is a URL with a user or password: the registry is readable by many and holds no credentials; use a proxy without, or enter the cluster by hand", context)
	}
	endpoint := v1beta1.Endpoint{Name: name, URL: strings.TrimSuffix(at, "/"), CABundle: bundle, TLSServerName: m.Cluster.TLSServerName, ProxyURL: m.Cluster.ProxyURL}
	if server != "" {
		endpoint.ProxyURL, endpoint.TLSServerName = "", "" // they are for the address that is not entered
	}
	return endpoint, nil
}

// Local reports whether a URL leads to where no entry may lead, such as each computer to
// itself.
func Local(at string) bool { return local(at) != "" }

// local returns why no entry may lead to the host of a URL, or "".
func local(at string) string {
	u, err := url.Parse(at)
	if err != nil || u.Hostname() == "" {
		return "" // what is wrong with it is said elsewhere
	}
	var refusal *address.Refusal
	if errors.As(address.Policy{}.Check(u.Hostname(), false), &refusal) {
		return "which is " + refusal.What
	}
	return ""
}

// caBundle returns the context's authorities: certificates, and nothing else of what
// may be in the same file.
func (m *Member) caBundle() ([]byte, error) {
	content := m.Cluster.CertificateAuthorityData
	if len(content) == 0 && m.Cluster.CertificateAuthority != "" {
		var err error
		if content, err = os.ReadFile(m.Cluster.CertificateAuthority); err != nil {
			return nil, fmt.Errorf("read the CA of context %q: %w", command.Plain(m.Context), err)
		}
	}
	var out []byte
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
	if len(content) > 0 && len(out) == 0 {
		return nil, command.Refusedf("the CA of context %q has no certificate in PEM: correct certificate-authority-data in the kubeconfig", command.Plain(m.Context))
	}
	return out, nil
}

// Facts are what a cluster says of itself.
type Facts struct {
	// ID is the UID of its namespace kube-system.
	ID string
	// Version is the version of its API server, such as v1.37.1.
	Version string
}

// timeout bounds one request to a member.
const timeout = 20 * time.Second

// Ask asks the cluster who it is, with the context's credentials: at the context's address, or
// at a server that [Member.Endpoint] takes in its place, as clients of that endpoint would.
func (m *Member) Ask(ctx context.Context, server string) (Facts, error) {
	config, err := m.config.ClientConfig()
	if err != nil {
		return Facts{}, fmt.Errorf("context %q: %w", command.Plain(m.Context), err)
	}
	if server != "" {
		config.Host, config.ServerName, config.Proxy = server, "", nil
	}
	if err := command.ApplyPluginPolicy(config); err != nil {
		return Facts{}, err
	}
	config.Timeout = timeout
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, command.FieldManager))
	if err != nil {
		return Facts{}, fmt.Errorf("context %q: %w", command.Plain(m.Context), err)
	}
	return ask(ctx, client, m.Context)
}

func ask(ctx context.Context, client kubernetes.Interface, name string) (Facts, error) {
	name = command.Plain(name)
	namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return Facts{}, explain(name, err)
	}
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return Facts{}, fmt.Errorf("ask the cluster of context %q for its version: %w", name, err)
	}
	return Facts{ID: string(namespace.UID), Version: info.GitVersion}, nil
}

// explain says why a cluster could not be asked who it is, and what to do.
func explain(name string, err error) error {
	text := command.Plain(err.Error())
	var authority x509.UnknownAuthorityError
	var expired x509.CertificateInvalidError
	var host x509.HostnameError
	var dial *net.OpError
	const asked = "ask the cluster of context %q who it is: "
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf(asked+"%s; its user needs the verb get on the namespace kube-system there", name, text)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf(asked+"it does not accept the context's credentials: sign in to it again", name)
	case apierrors.IsNotFound(err):
		return fmt.Errorf(asked+"it has no namespace kube-system, so it is not a Kubernetes cluster whose identity can be read; enter it by hand with an id of your choice", name)
	case errors.As(err, &authority):
		return fmt.Errorf(asked+"its certificate is not signed by the CA in the kubeconfig: correct certificate-authority-data", name)
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		return fmt.Errorf(asked+"its certificate has expired or is not valid yet: %s; renew it, and check this computer's clock", name, text)
	case errors.As(err, &host):
		return fmt.Errorf(asked+"its certificate is for other names: %s; set tls-server-name in the kubeconfig", name, text)
	case command.DeniedPlugin(text):
		return fmt.Errorf(asked+"%s; the policy is in your kuberc", name, text)
	case errors.As(err, &dial):
		return fmt.Errorf(asked+"it can't be reached: %s; check the address in the kubeconfig and the network", name, text)
	}
	return fmt.Errorf(asked+"%w", name, err)
}
