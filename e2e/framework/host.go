package framework

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Host is a bare host for integration tests: a real kube-apiserver over a real
// etcd, on loopback, without nodes.
type Host struct {
	// Config is an administrator's.
	Config *rest.Config
	// Etcd is the URL of the host's etcd.
	Etcd string
	// FrontProxy is the certificate that the host's aggregator shows.
	FrontProxy Pair

	t           *testing.T
	environment *envtest.Environment
}

// StartHost starts a host of the given Kubernetes version; it ends with the
// test. The aggregator's front proxy is set up as kubeadm does it, with
// allowedNames as the names that its certificate may have.
func StartHost(t *testing.T, kubernetesVersion string, allowedNames ...string) *Host {
	t.Helper()
	frontProxy := NewAuthority(t, "front-proxy-ca")
	pair := frontProxy.Issue("front-proxy-client", nil)
	server := &envtest.APIServer{Path: Program(t, "kubernetes", kubernetesVersion, "kube-apiserver")}
	server.Configure().
		Set("requestheader-client-ca-file", frontProxy.File).
		Set("requestheader-allowed-names", allowedNames...).
		Set("requestheader-username-headers", "X-Remote-User").
		Set("requestheader-group-headers", "X-Remote-Group").
		Set("requestheader-extra-headers-prefix", "X-Remote-Extra-").
		Set("proxy-client-cert-file", pair.Cert).
		Set("proxy-client-key-file", pair.Key)
	environment := &envtest.Environment{
		ControlPlane: envtest.ControlPlane{
			APIServer: server,
			Etcd:      &envtest.Etcd{Path: Program(t, "etcd", "v3.6.14", "etcd")},
		},
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  3 * time.Minute,
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("start a bare Kubernetes %s: %v", kubernetesVersion, err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop Kubernetes %s: %v", kubernetesVersion, err)
		}
	})
	return &Host{Config: config, Etcd: environment.ControlPlane.Etcd.URL.String(), FrontProxy: pair, t: t, environment: environment}
}

// Kubeconfig writes a kubeconfig for a user of the host and returns its path.
func (h *Host) Kubeconfig(user string, groups ...string) string {
	h.t.Helper()
	u, err := h.environment.AddUser(envtest.User{Name: user, Groups: groups}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	content, err := u.KubeConfig()
	if err != nil {
		h.t.Fatal(err)
	}
	return writeFile(h.t, "kubeconfig", content)
}

// Program returns the path of a program of Kubernetes or etcd; the cluster
// command builds it when it's missing.
func Program(t *testing.T, component, version, program string) string {
	t.Helper()
	root := Root(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "cluster"), "binaries", component, version, program)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	dir, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s of %s %s: %v: %s\n\"make integration\" builds what these tests need", program, component, version, err, stderr.String())
	}
	return filepath.Join(strings.TrimSpace(string(dir)), program)
}
