package simulation

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/handshake"
	"github.com/clusterregistry/operator/operator/health"
)

// registryGroup is that of the registry's API.
const registryGroup = "clusterregistry.k8s.io"

// backend returns a server that answers, nil when none does.
func (w *world) backend() *process {
	for _, uid := range sorted(w.pods) {
		if p := w.pods[uid]; p.answers() {
			return p
		}
	}
	return nil
}

// reachRegistry returns why clients get no data, through the host cluster or not.
func (w *world) reachRegistry(registered bool) error {
	switch {
	case registered && len(w.host.list(apiServices, "")) == 0:
		return apierrors.NewNotFound(resourceOf(id{}), "clusters")
	case w.backend() == nil:
		return apierrors.NewServiceUnavailable("no server answers")
	case w.etcd.leader == 0:
		return apierrors.NewServiceUnavailable("etcd has no leader")
	}
	return nil
}

// aggregate has the host cluster say whether it reaches the servers of APIServices.
func (w *world) aggregate() {
	for _, service := range w.host.list(apiServices, "") {
		state := "False"
		if w.backend() != nil {
			state = "True"
		}
		conditions := service.items("status", "conditions")
		if len(conditions) > 0 && conditions[0].(map[string]any)["status"] == state {
			continue
		}
		w.status(service, map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": state, "reason": "Checked", "message": "", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}})
	}
}

// at returns the server at an address, or why there is none that answers.
func (w *world) at(address string) (*process, error) {
	for _, uid := range sorted(w.pods) {
		if p := w.pods[uid]; net.JoinHostPort(p.address, contract.ServerPort) == address && p.answers() {
			return p, nil
		}
	}
	return nil, fmt.Errorf("dial tcp %s: connection refused", address)
}

// askServer returns the version of a server, if its certificate is trusted.
func (w *world) askServer(_ context.Context, server health.Server) (string, error) {
	w.asked("a server")
	p, err := w.at(server.Address)
	if err != nil {
		return "", err
	}
	roots := w.verified.pool(server.CAs)
	if roots.Equal(x509.NewCertPool()) {
		return "", errors.New("there is no CA certificate to verify the servers with")
	}
	block, _ := pem.Decode(p.chain)
	if err := w.verified.verify(block.Bytes, x509.VerifyOptions{Roots: roots, DNSName: server.Name}); err != nil {
		return "", err
	}
	return p.version, nil
}

// handshake returns what a server shows, or a member of etcd.
func (w *world) handshake(_ context.Context, server handshake.Server) (handshake.Shown, error) {
	w.asked("a handshake")
	for _, uid := range sorted(w.pods) {
		p := w.pods[uid]
		for port, suffix := range map[string]string{contract.EtcdClientPort: contract.EtcdServerSuffix, contract.EtcdPeerPort: contract.EtcdPeerSuffix} {
			if p.disk != nil && p.serves() && net.JoinHostPort(p.address, port) == server.Address {
				return handshake.Shown{Chain: w.secret(key.name+suffix, "tls.crt"), Accepts: subjects(p.trust)}, nil
			}
		}
	}
	p, err := w.at(server.Address)
	if err != nil {
		return handshake.Shown{}, err
	}
	return handshake.Shown{Chain: p.chain}, nil
}

// answer answers a request to the host cluster's API server.
func (w *world) answer(request *http.Request) *http.Response {
	w.asked(request.Method + " " + request.URL.Path)
	path := strings.TrimPrefix(request.URL.Path, "/apis/"+registryGroup+"/")
	version, rest, _ := strings.Cut(path, "/")
	switch {
	case request.URL.Path == "/version":
		return response(http.StatusOK, map[string]any{"gitVersion": "v1.37.1", "major": "1", "minor": "37"})
	case request.URL.Path == "/api":
		return response(http.StatusOK, map[string]any{"kind": "APIVersions", "versions": []any{"v1"}})
	case request.URL.Path == "/apis":
		return response(http.StatusOK, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": w.groups()})
	case path == request.URL.Path || w.host.objects[id{apiServices, "", version + "." + registryGroup}] == nil:
		return failure(apierrors.NewNotFound(resourceOf(id{}), path))
	case w.backend() == nil:
		return failure(apierrors.NewServiceUnavailable("no server answers"))
	}
	return w.serve(request, version, rest)
}

// serve answers a request to the registry, for what is in a version of its API.
func (w *world) serve(request *http.Request, version, rest string) *http.Response {
	group := registryGroup + "/" + version
	switch {
	case rest == "":
		return response(http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": []any{map[string]any{"name": "clusters", "kind": "Cluster", "verbs": []any{"get", "list"}}}})
	case w.etcd.leader == 0:
		return failure(apierrors.NewServiceUnavailable("etcd has no leader"))
	case request.Method == http.MethodPost:
		return response(http.StatusCreated, map[string]any{"kind": "Cluster", "apiVersion": group, "metadata": map[string]any{"name": "verification"}})
	case strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadata"):
		return response(http.StatusOK, map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{}, "items": []any{}})
	}
	return response(http.StatusOK, map[string]any{"kind": "ClusterList", "apiVersion": group, "metadata": map[string]any{}, "items": []any{}})
}

// groups are those that the host cluster lists.
func (w *world) groups() []any {
	if len(w.host.list(apiServices, "")) == 0 {
		return []any{}
	}
	return []any{map[string]any{"name": registryGroup, "versions": []any{map[string]any{"groupVersion": registryGroup + "/v1beta1", "version": "v1beta1"}}}}
}

func failure(err *apierrors.StatusError) *http.Response {
	status := err.Status()
	return response(int(status.Code), map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": string(status.Reason), "message": status.Message, "code": int64(status.Code)})
}

func response(code int, content map[string]any) *http.Response {
	text, err := json.Marshal(content)
	must(err)
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(text)), Body: io.NopCloser(strings.NewReader(string(text)))}
}

// subjects returns whom a server accepts that trusts CAs.
func subjects(bundle []byte) (out [][]byte) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		ca, err := x509.ParseCertificate(block.Bytes)
		must(err)
		out = append(out, ca.RawSubject)
	}
	return out
}
