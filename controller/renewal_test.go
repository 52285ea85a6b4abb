package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/controller/announce"
	"github.com/clusterregistry/operator/controller/health"
)

func TestMain(m *testing.M) {
	transport.CertCallbackRefreshDuration = 500 * time.Millisecond // client-go's own is 5 minutes
	os.Exit(m.Run())
}

// kubeconfig names files, as that of the controller of an independent registry does.
const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: registry, cluster: {server: %s, certificate-authority: %s/serving-ca.crt}}]
users: [{name: controller, user: {%s}}]
contexts: [{name: registry, context: {cluster: registry, user: controller}}]
current-context: registry
`

// volume is a directory whose files are replaced at once, as kubelet does it.
type volume struct {
	t    *testing.T
	path string
}

func newVolume(t *testing.T, files map[string][]byte) *volume {
	t.Helper()
	v := &volume{t: t, path: filepath.Join(t.TempDir(), "..data")}
	v.replace(files)
	return v
}

func (v *volume) replace(files map[string][]byte) {
	v.t.Helper()
	to := v.t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(to, name), content, 0o600); err != nil {
			v.t.Fatal(err)
		}
	}
	link := filepath.Join(to, "..data")
	if err := os.Symlink(to, link); err != nil {
		v.t.Fatal(err)
	}
	if err := os.Rename(link, v.path); err != nil {
		v.t.Fatal(err)
	}
}

// program returns a controller of the registry at an address, whose CA is in the volume,
// and whose user has what is given.
func (v *volume) program(address, user string) (*program, *rest.Config) {
	v.t.Helper()
	file := filepath.Join(v.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, fmt.Appendf(nil, kubeconfig, address, v.path, user), 0o600); err != nil {
		v.t.Fatal(err)
	}
	o := newOptions()
	o.kubeconfig, o.health, o.leaderElect, o.period, o.registerHostPeriod, o.concurrency, o.hostCIDRs = file, true, false, time.Minute, time.Minute, 1, []string{"10.96.0.0/12"}
	p := &program{options: o, trouble: health.NewTrouble(clock.RealClock{}), announcer: announce.New(nil, "", "", clock.RealClock{})}
	config, err := p.registryConfig(&rest.Config{})
	if err != nil {
		v.t.Fatal(err)
	}
	return p, config
}

// issue returns a certificate that signs itself, and its key, both in PEM: for 127.0.0.1,
// or for a client with the name.
func issue(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// registry is one without clusters, which admits one user.
type registry struct {
	admitted atomic.Value
	// watched gets each user that begins to watch.
	watched chan string
}

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	user := ""
	if shown := request.TLS.PeerCertificates; len(shown) > 0 {
		user = shown[0].Subject.CommonName
	}
	if user != r.admitted.Load() {
		http.Error(w, "the certificate has expired", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if request.URL.Query().Get("watch") == "" {
		_, _ = fmt.Fprint(w, `{"kind": "ClusterList", "apiVersion": "clusterregistry.k8s.io/v1beta1", "metadata": {"resourceVersion": "1"}, "items": []}`)
		return
	}
	_, _ = fmt.Fprintln(w, `{"type": "BOOKMARK", "object": {"kind": "Cluster", "apiVersion": "clusterregistry.k8s.io/v1beta1", "metadata": {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}}}`)
	w.(http.Flusher).Flush()
	r.watched <- user
	<-request.Context().Done()
}

func (r *registry) await(t *testing.T, user string) {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		select {
		case got := <-r.watched:
			if got == user {
				return
			}
		case <-deadline:
			t.Fatalf("the user %q does not watch clusters", user)
		}
	}
}

// TestRenewedClientCertificate renews the client certificate of a running controller, when
// the registry accepts the one before no longer.
func TestRenewedClientCertificate(t *testing.T) {
	r := &registry{watched: make(chan string, 100)}
	r.admitted.Store("before")
	server := httptest.NewUnstartedServer(r)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close) // after the context has ended, and with it the watch
	files := func(user string) map[string][]byte {
		certificate, key := issue(t, user)
		return map[string][]byte{
			"serving-ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			"tls.crt":        certificate, "tls.key": key,
		}
	}
	mounted := newVolume(t, files("before"))
	p, config := mounted.program(server.URL, fmt.Sprintf("client-certificate: %[1]s/tls.crt, client-key: %[1]s/tls.key", mounted.path))
	if err := p.validate(); err != nil {
		t.Fatal(err)
	}
	p.registry = versioned.NewForConfigOrDie(config)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.runHealth(ctx) }()
	r.await(t, "before")

	r.admitted.Store("after")
	mounted.replace(files("after"))
	r.await(t, "after")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// pipes are connections inside of this process: their waiting passes the time of a
// synctest bubble, which that of a socket doesn't.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

// TestRenewedCA renews the CA of the registry and its certificate: a client of the
// controller that knew the one before trusts the new one within five minutes, in which
// client-go reads the file.
func TestRenewedCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, beforeKey := issue(t, "before")
		after, afterKey := issue(t, "after")
		mounted := newVolume(t, map[string][]byte{"serving-ca.crt": before})
		p, config := mounted.program("https://127.0.0.1", "")
		var listener pipes
		serve := func(certificate, key []byte) (end func()) {
			pair, err := tls.X509KeyPair(certificate, key)
			if err != nil {
				t.Fatal(err)
			}
			here := make(pipes)
			listener = here
			r := &registry{}
			r.admitted.Store("")
			server := &http.Server{Handler: r, ErrorLog: log.New(t.Output(), "", 0), ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}}
			go func() { _ = server.ServeTLS(here, "", "") }()
			return func() { close(here); _ = server.Close() }
		}
		config.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			mine, theirs := net.Pipe()
			select {
			case listener <- theirs:
				return mine, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		p.registry = versioned.NewForConfigOrDie(config)
		list := func() error {
			_, err := p.registry.ClusterregistryV1beta1().Clusters().List(t.Context(), metav1.ListOptions{})
			return err
		}
		end := serve(before, beforeKey)
		if err := list(); err != nil {
			t.Fatal(err)
		}
		end()
		end = serve(after, afterKey)
		defer func() { end() }()
		if err := list(); err == nil {
			t.Fatal("a certificate is trusted that no known CA has signed")
		}
		mounted.replace(map[string][]byte{"serving-ca.crt": after})
		time.Sleep(5 * time.Minute) // of the bubble
		if err := list(); err != nil {
			t.Errorf("after it: %v", err)
		}
	})
}
