package oldapi

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/e2e/framework"
)

// group is the API group, and version the only version, that a server of 2018 has.
const (
	group   = "clusterregistry.k8s.io"
	version = "v1alpha1"
	root    = "/apis/" + group + "/" + version
)

// Config says what a server has.
type Config struct {
	// Clusters are its clusters, each a JSON object as a person wrote it: with
	// metadata.name, labels, annotations and spec. The server adds what is a server's.
	Clusters []string
	// Namespaced makes it a host of the CRD of v0.0.5 and v0.0.6: clusters have a
	// namespace, and there is no protobuf.
	Namespaced bool
	// WithoutGroup makes it a server that does not have the API group at all.
	WithoutGroup bool
	// CutAfter is after how many bytes of a list the connection breaks; 0 is never.
	CutAfter int
}

// Server answers reads as cluster-registry v0.0.4 did. It has no watch, and refuses writes.
// It lists v1alpha1 alone, and only in the old form of discovery; a path of another version
// is an error 404 with a Status, one of another group an index of the paths that there are.
// Lists come in chunks where a client asks with a limit, without remainingItemCount, and
// the items of a list have neither kind nor apiVersion. Objects have a selfLink, and
// neither generation nor managedFields. Of tables it knew none that clients of today ask
// for, so they get whole objects.
type Server struct {
	// URL is where it answers.
	URL string

	authority, clients *framework.Authority
	config             Config
	clusters           []map[string]any

	mutex    sync.Mutex
	requests []string
}

// Start starts a server that ends with the test.
func Start(t *testing.T, config Config) *Server {
	t.Helper()
	s := &Server{config: config, authority: framework.NewAuthority(t, "crinit"), clients: framework.NewAuthority(t, "crinit")}
	for i, text := range config.Clusters {
		s.clusters = append(s.clusters, s.stored(t, i, text))
	}
	slices.SortFunc(s.clusters, func(a, b map[string]any) int { return strings.Compare(key(a), key(b)) })
	pair := s.authority.Issue("clusterregistry", nil, "127.0.0.1")
	certificate, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	callers := x509.NewCertPool()
	callers.AppendCertsFromPEM(s.clients.PEM)
	server := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: callers, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Config returns the configuration of a client with the certificate that crinit made for
// the administrator.
func (s *Server) Config() *rest.Config {
	pair := s.clients.Issue("admin", []string{"system:masters"})
	return &rest.Config{Host: s.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: s.authority.PEM, CertFile: pair.Cert, KeyFile: pair.Key}}
}

// Kubeconfig returns a kubeconfig as crinit wrote it, with the context of the given name.
// Without a certificate the server refuses the caller.
func (s *Server) Kubeconfig(t *testing.T, name string, certificate bool) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: s.authority.PEM}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{}
	if certificate {
		pair := s.clients.Issue("admin", []string{"system:masters"})
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificate: pair.Cert, ClientKey: pair.Key}
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Requests returns what the server was asked so far, as "GET /path?query".
func (s *Server) Requests() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.mutex.Unlock()
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch {
	case r.TLS == nil || len(r.TLS.VerifiedChains) == 0:
		refuse(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
	case r.Method != http.MethodGet:
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "this server is only read")
	case path == "/version":
		answer(w, http.StatusOK, map[string]any{"major": "", "minor": "", "gitVersion": "v0.0.4"})
	case path == "/apis":
		s.discover(w, r, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": s.groups()})
	case s.config.WithoutGroup || path != "/apis/"+group && !strings.HasPrefix(path, "/apis/"+group+"/"):
		answer(w, http.StatusNotFound, map[string]any{"paths": s.paths()})
	case path == "/apis/"+group:
		about := s.groups()[0]
		about["kind"], about["apiVersion"] = "APIGroup", "v1"
		s.discover(w, r, about)
	case path == root:
		s.discover(w, r, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group + "/" + version, "resources": []any{map[string]any{
			"name": "clusters", "singularName": "", "namespaced": s.config.Namespaced, "kind": "Cluster",
			"verbs": []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		}}})
	case path == root+"/clusters":
		s.list(w, r)
	case strings.HasPrefix(path, root+"/clusters/") && !s.config.Namespaced:
		s.get(w, r, strings.TrimPrefix(path, root+"/clusters/"))
	default:
		refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	}
}

// discover answers in JSON, since a client of today asks for other forms first.
func (s *Server) discover(w http.ResponseWriter, r *http.Request, about map[string]any) {
	if wanted(r, JSON) == "" {
		refuse(w, http.StatusNotAcceptable, "NotAcceptable", "only the following media types are accepted: "+JSON)
		return
	}
	answer(w, http.StatusOK, about)
}

func (s *Server) groups() []map[string]any {
	if s.config.WithoutGroup {
		return []map[string]any{}
	}
	only := map[string]any{"groupVersion": group + "/" + version, "version": version}
	return []map[string]any{{
		"name": group, "versions": []any{only}, "preferredVersion": only,
		"serverAddressByClientCIDRs": []any{map[string]any{"clientCIDR": "0.0.0.0/0", "serverAddress": strings.TrimPrefix(s.URL, "https://")}},
	}}
}

func (s *Server) paths() []string {
	if s.config.WithoutGroup {
		return []string{"/apis", "/healthz", "/metrics", "/version"}
	}
	return []string{"/apis", "/apis/" + group, root, "/healthz", "/metrics", "/swagger.json", "/version"}
}

// refuse answers with a Status.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	answer(w, code, map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "message": message, "reason": reason, "code": code})
}

func answer(w http.ResponseWriter, code int, content any) {
	w.Header().Set("Content-Type", JSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(content) // a client that has left needs no answer
}
