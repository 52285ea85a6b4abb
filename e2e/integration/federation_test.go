package integration

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestClientOf2018 lets a client that behaves as federation-v2 did in 2018 read
// clusters that were written through v1beta1: it reaches the server that the
// cluster has for its own address, over TLS.
func TestClientOf2018(t *testing.T) {
	_, _, config := independent(t)
	clusters, olds, ctx := betaOf(t, config), clustersOf(t, config), t.Context()
	inside, outside, near := newMember(t, "inside"), newMember(t, "outside"), newMember(t, "near")
	made, err := clusters.Create(ctx, &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{
		// The longest range is the last.
		{Name: "outside", URL: outside.url, CABundle: outside.ca},
		{Name: "inside", URL: inside.url, CABundle: inside.ca, ClientCIDRs: []string{"10.0.0.0/8", "2001:db8::/32"}},
		{Name: "near", URL: near.url, CABundle: near.ca, ClientCIDRs: []string{"10.1.0.0/16", "2001:db8:1::/48"}},
	}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, round := range []string{"written through v1beta1", "replaced through v1alpha1"} {
		seen, err := olds.Get(ctx, "east", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for from, want := range map[string]string{
			"203.0.113.7": "outside", "10.9.0.1": "inside", "10.1.0.1": "near", "2001:db8:9::1": "inside", "2001:db8:1::1": "near", "2001:db9::1": "outside",
		} {
			if got, err := reach(seen, net.ParseIP(from)); err != nil || got != want {
				t.Errorf("%s, a client at %s reaches %q, %v; want %s", round, from, got, err, want)
			}
		}
		if _, err := olds.Update(ctx, seen, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	after, err := clusters.Get(ctx, "east", metav1.GetOptions{})
	if err != nil || after.ResourceVersion != made.ResourceVersion || after.Generation != 1 {
		t.Errorf("a replacement without a change has changed it: %v, %+v", err, after)
	}
}

// TestClientOf2018SpeaksTLS makes sure that such a client sends its token to
// nobody in clear when a cluster has no CA bundle.
func TestClientOf2018SpeaksTLS(t *testing.T) {
	t.Parallel()
	_, _, config := independent(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	heard := make(chan []byte, 1)
	go func() {
		first := make([]byte, 4096)
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		n, _ := connection.Read(first)
		heard <- first[:n]
		_ = connection.Close()
	}()
	if _, err := betaOf(t, config).Create(t.Context(), &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"},
		Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://" + listener.Addr().String()}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	seen, err := clustersOf(t, config).Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reach(seen, net.ParseIP("203.0.113.7")); err == nil {
		t.Error("a server that is none has answered")
	}
	const handshake = 22 // the type of TLS's first record
	if first := <-heard; len(first) == 0 || first[0] != handshake || bytes.Contains(first, []byte(memberToken)) {
		t.Errorf("the client said %q", first)
	}
}

// memberToken is what the client of 2018 shows to members.
const memberToken = "the-token-for-members"

// member is a cluster of the federation: a server that tells its name to whoever
// has the token.
type member struct {
	url string
	ca  []byte
}

func newMember(t *testing.T, name string) member {
	t.Helper()
	authority := framework.NewAuthority(t, name)
	pair := authority.Issue(name, nil, "127.0.0.1")
	certificate, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || r.Header.Get("Authorization") != "Bearer "+memberToken {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, fmt.Sprintf(`{"gitVersion":%q}`, name))
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return member{server.URL, authority.PEM}
}

// reach does what federation-v2 did with a cluster: it reads each range and gives
// up on one that is none, takes the first that its own address is in, and leaves
// the rest to client-go. It returns which member answered.
func reach(cluster *v1alpha1.Cluster, own net.IP) (string, error) {
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
	client, err := kubernetes.NewForConfig(&rest.Config{Host: host, BearerToken: memberToken, TLSClientConfig: rest.TLSClientConfig{CAData: cluster.Spec.KubernetesAPIEndpoints.CABundle}})
	if err != nil {
		return "", err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	return version.GitVersion, nil
}
