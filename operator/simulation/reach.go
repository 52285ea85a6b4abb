package simulation

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// insideName is the name of the registry's Service. outsideName leads to balancer, which is the
	// address of the Service outside of the host cluster.
	insideName  = "fleet-server.team.svc"
	outsideName = "fleet.example"
	balancer    = "203.0.113.7"
)

// route has the host cluster say what it reaches, and give Services their addresses.
func (w *world) route() {
	w.aggregate()
	for _, service := range w.host.list(schema.GroupKind{Kind: "Service"}, key.namespace) {
		kind, _, _ := unstructured.NestedString(service.Object, "spec", "type")
		switch has, wants := balanced(service), kind == "LoadBalancer"; {
		case wants && !has && w.chance(30):
			w.note("%s gets a load balancer", service.name)
			w.status(service, map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": balancer}}}})
		case has && !wants:
			w.status(service, nil)
		}
	}
}

// balanced reports whether a Service has got its load balancer.
func balanced(service *stored) bool {
	return len(service.items("status", "loadBalancer", "ingress")) > 0
}

// dialServer connects to the registry as its clients do, by a name or an address.
func (w *world) dialServer(_ context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if w.nameless && net.ParseIP(host) == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "server misbehaving", Name: host, Server: "10.96.0.10:53", IsTemporary: true}}
	}
	server := w.backend()
	if server == nil || !slices.Contains(w.leading(), host) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	shown, err := tls.X509KeyPair(server.chain, server.key)
	if err != nil {
		return nil, err
	}
	front, back := net.Pipe()
	go w.serves(tls.Server(back, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{shown}, ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true}))
	return front, nil
}

// leading returns the names and addresses that lead to the registry.
func (w *world) leading() (out []string) {
	service := w.host.objects[id{schema.GroupKind{Kind: "Service"}, key.namespace, key.name + contract.ServerSuffix}]
	if service == nil {
		return nil
	}
	out = append(out, insideName)
	if balanced(service) {
		out = append(out, outsideName, balancer)
	}
	return out
}

// serves has a server answer one request.
func (w *world) serves(connection *tls.Conn) {
	defer func() { _ = connection.NetConn().Close() }()
	request, err := http.ReadRequest(bufio.NewReader(connection))
	if err != nil {
		return // it only wanted to know whether someone answers
	}
	path := strings.TrimPrefix(request.URL.Path, "/apis/"+registryGroup+"/")
	version, rest, _ := strings.Cut(path, "/")
	answer := w.serve(request, version, rest)
	defer func() { _ = answer.Body.Close() }()
	answer.Close = true
	_ = answer.Write(connection) // who asks may have gone
}
