package framework

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Registry is a running clusterregistry-apiserver of this checkout.
type Registry struct {
	// Port is where it serves, on loopback.
	Port int
	// CA signs its certificate, for the name registry.default.svc and loopback.
	CA *Authority
	// Serving is that certificate, which the server reads again when it changes.
	Serving *Mount

	cmd  *exec.Cmd
	log  *lockedBuffer
	done chan error
}

// StartRegistry starts a server with the given flags beside those for serving;
// it ends with the test, and when the test failed its log is shown.
func StartRegistry(t *testing.T, flags ...string) *Registry {
	t.Helper()
	r := &Registry{Port: FreePort(t), CA: NewAuthority(t, "registry-ca")}
	r.Serving = NewMount(t, r.CA.Issue("registry", nil, "registry.default.svc", "localhost", "127.0.0.1"))
	r.start(t, flags)
	return r
}

// StartReplica starts one more server with the given flags, which shares the port and the
// certificate of the first; both need the flag --permit-port-sharing, and then each
// connection leads to one of them. It returns when the replica serves.
func (r *Registry) StartReplica(t *testing.T, flags ...string) *Registry {
	t.Helper()
	replica := &Registry{Port: r.Port, CA: r.CA, Serving: r.Serving}
	replica.start(t, flags)
	Eventually(t, "the replica to serve", func(context.Context) error { return replica.Said("Serving securely") })
	return replica
}

func (r *Registry) start(t *testing.T, flags []string) {
	t.Helper()
	r.log, r.done = &lockedBuffer{}, make(chan error, 1)
	r.cmd = exec.Command(filepath.Join(Root(t), "bin", "clusterregistry-apiserver"), append([]string{ //nolint:noctx // it outlives the test's context
		"--secure-port=" + strconv.Itoa(r.Port), "--bind-address=127.0.0.1", "--tls-cert-file=" + r.Serving.Cert, "--tls-private-key-file=" + r.Serving.Key}, flags...)...)
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	if err := r.cmd.Start(); err != nil {
		t.Fatalf("start the registry: %v; \"make build\" builds it", err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	t.Cleanup(func() {
		_ = r.cmd.Process.Signal(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the registry's log:\n%s", r.log.String())
		}
	})
}

// PID returns the process id of the server.
func (r *Registry) PID() int { return r.cmd.Process.Pid }

// URL returns where the server answers directly.
func (r *Registry) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", r.Port) }

// Config returns the configuration of a client that talks to the server itself,
// with the given certificate; the empty Pair means none.
func (r *Registry) Config(client Pair) *rest.Config {
	return &rest.Config{
		Host: r.URL(), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: r.CA.PEM, CertFile: client.Cert, KeyFile: client.Key},
	}
}

// Kubeconfig writes a kubeconfig for the server itself, with the given
// certificate, and returns its path.
func (r *Registry) Kubeconfig(t *testing.T, client Pair) string {
	t.Helper()
	const name = "registry"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: r.URL(), CertificateAuthorityData: r.CA.PEM}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificate: client.Cert, ClientKey: client.Key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "kubeconfig", content)
}

// Signal sends the server a signal.
func (r *Registry) Signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// WaitReady waits until the server answers /readyz.
func (r *Registry) WaitReady(t *testing.T) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // only readiness is read
	deadline := time.Now().Add(Beginning)
	for {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL()+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("status %s", response.Status)
		}
		select {
		case ended := <-r.done:
			t.Fatalf("the registry ended before it was ready: %v", ended)
		case <-time.After(interval):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the registry is not ready: %v", err)
		}
	}
}

// WaitRefused waits until the server ends by itself with an error and returns
// what it said.
func (r *Registry) WaitRefused(t *testing.T) string {
	t.Helper()
	select {
	case err := <-r.done:
		if err == nil {
			t.Fatal("the registry ended without an error")
		}
		return r.log.String()
	case <-time.After(Beginning):
		t.Fatal("the registry goes on instead of refusing to start")
	}
	return ""
}

// Said returns an error unless the server's log contains the text.
func (r *Registry) Said(text string) error {
	if !strings.Contains(r.log.String(), text) {
		return fmt.Errorf("the registry has not said %q", text)
	}
	return nil
}

// lockedBuffer is written by a process while a test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func writeFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
