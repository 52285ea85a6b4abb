package integration

import (
	"bytes"
	"net"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/e2e/framework/oldapi"
)

// TestClientOf2018 lets a client that behaves as federation-v2 did in 2018 read
// clusters that were written through v1beta1: it reaches the server that the
// cluster has for its own address, over TLS. It asks an independent registry, and one
// behind a host's aggregator, where it may do no more than an editor of the registry.
func TestClientOf2018(t *testing.T) {
	t.Parallel()
	_, _, config := independent(t)
	host, _ := framework.StartAggregated(t, newest)
	framework.Create(t, framework.HostClient(t, host.Config), role("federation", rbacv1.PolicyRule{
		APIGroups: []string{v1beta1.GroupName}, Resources: []string{"clusters"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}}, user("federation"))...)
	plane, err := clientcmd.BuildConfigFromFlags("", host.Kubeconfig("federation"))
	if err != nil {
		t.Fatal(err)
	}
	for _, media := range []string{oldapi.JSON, oldapi.Protobuf} {
		t.Run("independent "+media, func(t *testing.T) { oldapi.CheckFederation(t, config, config, media) })
		t.Run("aggregated "+media, func(t *testing.T) { oldapi.CheckFederation(t, host.Config, plane, media) })
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
	if _, err := oldapi.Reach(seen, net.ParseIP("203.0.113.7")); err == nil {
		t.Error("a server that is none has answered")
	}
	const handshake = 22 // the type of TLS's first record
	if first := <-heard; len(first) == 0 || first[0] != handshake || bytes.Contains(first, []byte(oldapi.MemberToken)) {
		t.Errorf("the client said %q", first)
	}
}
