package oldapi

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// MemberToken is what the client of 2018 shows to members.
const MemberToken = "the-token-for-members"

// Member is a cluster of the federation: a server that tells its name to anyone with
// the token.
type Member struct {
	URL string
	CA  []byte
}

// StartMember starts a member that ends with the test.
func StartMember(t *testing.T, name string) Member {
	t.Helper()
	authority := framework.NewAuthority(t, name)
	pair := authority.Issue(name, nil, "127.0.0.1")
	certificate, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || r.Header.Get("Authorization") != "Bearer "+MemberToken {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, fmt.Sprintf(`{"gitVersion":%q}`, name))
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return Member{server.URL, authority.PEM}
}

// Reach does what federation-v2 did with a cluster: it reads each range and gives
// up on one that is not valid, takes the first that its own address is in, and leaves
// the rest to client-go. It returns which member answered.
func Reach(cluster *v1alpha1.Cluster, own net.IP) (string, error) {
	host := ""
	for _, endpoint := range cluster.Spec.KubernetesAPIEndpoints.ServerEndpoints {
		_, network, err := net.ParseCIDR(endpoint.ClientCIDR)
		if err != nil {
			return "", err
		}
		if host == "" && network.Contains(own) {
			host = endpoint.ServerAddress
		}
	}
	if host == "" {
		return "", errors.New("no address for the client")
	}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: host, BearerToken: MemberToken, TLSClientConfig: rest.TLSClientConfig{CAData: cluster.Spec.KubernetesAPIEndpoints.CABundle}})
	if err != nil {
		return "", err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	return version.GitVersion, nil
}
