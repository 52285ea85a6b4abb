package framework

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
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
	// command is the kube-apiserver's, once it was killed, and restarted runs it again.
	command   []string
	restarted *exec.Cmd
}

// HostEtcdVersion is the version of a host's etcd.
const HostEtcdVersion = "v3.6.14"

// StartHost starts a host of the given Kubernetes version; it ends with the
// test. The aggregator's front proxy is set up as kubeadm does it, with
// allowedNames as the names that its certificate may have.
func StartHost(t *testing.T, kubernetesVersion string, allowedNames ...string) *Host {
	t.Helper()
	return startHost(t, kubernetesVersion, allowedNames, nil)
}

// StartHostWith is StartHost with further flags of its kube-apiserver.
func StartHostWith(t *testing.T, kubernetesVersion string, flags map[string]string) *Host {
	t.Helper()
	return startHost(t, kubernetesVersion, []string{"front-proxy-client"}, flags)
}

func startHost(t *testing.T, kubernetesVersion string, allowedNames []string, flags map[string]string) *Host {
	t.Helper()
	frontProxy := NewAuthority(t, "front-proxy-ca")
	pair := frontProxy.Issue("front-proxy-client", nil)
	server := &envtest.APIServer{Path: Program(t, "kubernetes", kubernetesVersion, "kube-apiserver")}
	// Not of the ports that the system gives away, so that it is free when it is started again.
	server.Address, server.Port = "127.0.0.1", strconv.Itoa(FreePort(t))
	server.Configure().
		Set("requestheader-client-ca-file", frontProxy.File).
		Set("requestheader-allowed-names", allowedNames...).
		Set("requestheader-username-headers", "X-Remote-User").
		Set("requestheader-group-headers", "X-Remote-Group").
		Set("requestheader-extra-headers-prefix", "X-Remote-Extra-").
		Set("proxy-client-cert-file", pair.Cert).
		Set("proxy-client-key-file", pair.Key)
	for name, value := range flags {
		server.Configure().Set(name, value)
	}
	environment := &envtest.Environment{
		ControlPlane: envtest.ControlPlane{
			APIServer: server,
			Etcd:      &envtest.Etcd{Path: Program(t, "etcd", HostEtcdVersion, "etcd")},
		},
		ControlPlaneStartTimeout: Beginning,
		ControlPlaneStopTimeout:  Patience,
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

// Tokens returns two tokens of a service account of the host: one that is valid,
// and one that has expired and is the same otherwise.
func (h *Host) Tokens() (valid, expired string) {
	h.t.Helper()
	must := func(err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
	}
	client, err := kubernetes.NewForConfig(h.Config)
	must(err)
	accounts := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	account, err := accounts.Create(h.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "token-"}}, metav1.CreateOptions{})
	must(err)
	request, err := accounts.CreateToken(h.t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(err)
	valid = request.Status.Token

	token, err := jwt.ParseSigned(valid)
	must(err)
	claims := map[string]any{}
	must(token.UnsafeClaimsWithoutVerification(&claims))
	claims["exp"] = time.Now().Add(-time.Minute).Unix()
	key, err := keyutil.PrivateKeyFromFile(filepath.Join(h.environment.ControlPlane.APIServer.CertDir, "sa-signer.key"))
	must(err)
	header := token.Headers[0]
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(header.Algorithm), Key: jose.JSONWebKey{Key: key, KeyID: header.KeyID}}, nil)
	must(err)
	expired, err = jwt.Signed(signer).Claims(claims).CompactSerialize()
	must(err)
	return valid, expired
}

// found are the paths of programs, by what Program was asked for: the cluster command looks for
// them by a hash of what they are made of.
var found sync.Map

// Program returns the path of a program of Kubernetes or etcd; the cluster
// command builds it when it's missing.
func Program(t *testing.T, component, version, program string) string {
	t.Helper()
	key := [...]string{component, version, program}
	if path, ok := found.Load(key); ok {
		return path.(string)
	}
	root := Root(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "cluster"), "binaries", component, version, program)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	dir, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s of %s %s: %v: %s\n\"make integration\" builds what these tests need", program, component, version, err, stderr.String())
	}
	path := filepath.Join(strings.TrimSpace(string(dir)), program)
	found.Store(key, path)
	return path
}
