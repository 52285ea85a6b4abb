package framework

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Etcd is an etcd for a registry: members on loopback that speak mutual TLS.
type Etcd struct {
	// CA signs the certificates of members and clients.
	CA *Authority
	// Endpoints are the members' URLs for clients.
	Endpoints []string
	// TLS is what a client needs, and Client reads and writes any key with it.
	TLS    *tls.Config
	Client *clientv3.Client
	// DataDirs are where the members keep their data.
	DataDirs []string

	t       *testing.T
	program string
	flags   [][]string
	running []*etcdProcess
	logs    []*lockedBuffer
	client  Pair
}

// etcdProcess is a member that was started; ended is closed when it has ended.
type etcdProcess struct {
	*exec.Cmd
	ended chan struct{}
}

// StartEtcd starts an etcd of the given number of members, of the version that
// registries run, with more flags if there are any, of which the last one of a name
// counts, and waits until it serves; it ends with the test, and when the test failed its
// logs are shown.
func StartEtcd(t *testing.T, members int, flags ...string) *Etcd {
	t.Helper()
	return StartEtcdVersion(t, "v3.6.14", members, flags...)
}

// EtcdName is a name that members' certificates are for, besides their address. A test that uses
// it has a nameserver of its own.
const EtcdName = "etcd.example.com"

// StartEtcdVersion is StartEtcd for another version.
func StartEtcdVersion(t *testing.T, version string, members int, flags ...string) *Etcd {
	t.Helper()
	e := &Etcd{CA: NewAuthority(t, "etcd-ca"), t: t, program: Program(t, "etcd", version, "etcd"), running: make([]*etcdProcess, members)}
	e.client = e.CA.Issue("registry", nil)
	pair := e.CA.Issue("member", nil, "127.0.0.1", EtcdName)
	var initial, peers []string
	for i := range members {
		e.DataDirs = append(e.DataDirs, filepath.Join(t.TempDir(), "data"))
		e.Endpoints = append(e.Endpoints, fmt.Sprintf("https://127.0.0.1:%d", FreePort(t)))
		peers = append(peers, fmt.Sprintf("https://127.0.0.1:%d", FreePort(t)))
		initial = append(initial, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	for i := range members {
		e.flags = append(e.flags, append([]string{
			fmt.Sprintf("--name=m%d", i), "--data-dir=" + e.DataDirs[i], "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=" + e.Endpoints[i], "--advertise-client-urls=" + e.Endpoints[i],
			"--listen-peer-urls=" + peers[i], "--initial-advertise-peer-urls=" + peers[i], "--initial-cluster=" + strings.Join(initial, ","),
			"--cert-file=" + pair.Cert, "--key-file=" + pair.Key, "--trusted-ca-file=" + e.CA.File, "--client-cert-auth",
			"--peer-cert-file=" + pair.Cert, "--peer-key-file=" + pair.Key, "--peer-trusted-ca-file=" + e.CA.File, "--peer-client-cert-auth",
		}, flags...))
		e.logs = append(e.logs, &lockedBuffer{})
		e.Start(i)
	}
	t.Cleanup(func() {
		for i, member := range e.running {
			if member != nil {
				e.Kill(i)
			}
			if t.Failed() {
				t.Logf("the log of etcd's member %d:\n%s", i, e.logs[i].String())
			}
		}
	})
	e.connect()
	return e
}

// Flags are what a server needs to use this etcd.
func (e *Etcd) Flags() []string {
	return []string{"--etcd-servers=" + strings.Join(e.Endpoints, ","), "--etcd-cafile=" + e.CA.File, "--etcd-certfile=" + e.client.Cert, "--etcd-keyfile=" + e.client.Key}
}

// PID returns the process id of a member that runs.
func (e *Etcd) PID(member int) int { return e.running[member].Process.Pid }

// Start starts a member that does not run, with the data that it has.
func (e *Etcd) Start(member int) {
	e.t.Helper()
	cmd := exec.Command(e.program, e.flags[member]...) //nolint:noctx // it outlives the test's context
	cmd.Stdout, cmd.Stderr = e.logs[member], e.logs[member]
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	m := &etcdProcess{cmd, make(chan struct{})}
	e.running[member] = m
	go func() {
		_ = cmd.Wait() // why it ended is in its log
		close(m.ended)
	}()
}

// AddFlags has a member run with more flags from its next start on, of which the last one
// of a name counts.
func (e *Etcd) AddFlags(member int, flags ...string) {
	e.flags[member] = append(e.flags[member], flags...)
}

// Kill ends a member as a power cut would.
func (e *Etcd) Kill(member int) {
	e.t.Helper()
	m := e.running[member]
	if err := m.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		e.t.Fatalf("kill etcd's member %d: %v", member, err)
	}
	<-m.ended
	e.running[member] = nil
}

// Words waits until a member that was started has ended on its own, and returns what it has
// printed, in all of its starts.
func (e *Etcd) Words(member int) string {
	e.t.Helper()
	select {
	case <-e.running[member].ended:
	case <-time.After(Patience):
		e.t.Fatalf("etcd's member %d has not ended on its own within %s", member, Patience)
	}
	return e.logs[member].String()
}

// connect waits until etcd serves.
func (e *Etcd) connect() {
	e.t.Helper()
	certificate, err := tls.LoadX509KeyPair(e.client.Cert, e.client.Key)
	if err != nil {
		e.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(e.CA.PEM)
	e.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots, MinVersion: tls.VersionTLS12}
	e.Client = e.clientOf(e.Endpoints...)
	Eventually(e.t, "etcd to serve", func(ctx context.Context) error {
		e.mustRun()
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := e.Client.Get(ctx, "any")
		return err
	})
}

// mustRun fails the test when a member that was started has ended on its own: etcd with the
// others alone may never serve.
func (e *Etcd) mustRun() {
	e.t.Helper()
	for i, m := range e.running {
		if m == nil {
			continue
		}
		select {
		case <-m.ended:
			e.t.Fatalf("etcd's member %d has ended on its own: %v", i, m.ProcessState)
		default:
		}
	}
}

// bounded ends a call that etcd does not answer: most tests set no deadline.
func bounded(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return invoke(ctx, method, request, reply, connection, options...)
}

func (e *Etcd) clientOf(endpoints ...string) *clientv3.Client {
	e.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: Patience, TLS: e.TLS, Logger: zap.NewNop(), DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(bounded)}})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = client.Close() })
	return client
}
