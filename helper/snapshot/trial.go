package snapshot

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/clusterregistry/operator/helper/child"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/etcdclient"
)

// Trial restores a snapshot and starts etcd on it, as a registry would, where no one else
// reaches it.
//
// "etcdutl hashkv" would do without an etcd that runs; but that of etcd 3.6 ends with a
// panic when a key has a lease, as the server's locks do.
type Trial struct {
	// Etcd and Etcdutl are the programs.
	Etcd, Etcdutl string
	// Scratch is a directory with room for another copy of the snapshot.
	Scratch string
	// Also is what else is asked of the etcd that was started; it may be nil.
	Also func(context.Context, Etcd) error
}

// Restored is what a restored etcd says of a revision.
type Restored struct {
	contract.Content
	Hash contract.KeysHash
	// Version is that of the etcd that was started.
	Version string
}

// RefusedError says why etcd does not take a snapshot.
type RefusedError struct{ Why string }

// Error says why.
func (e *RefusedError) Error() string { return e.Why }

// Run restores a snapshot, and asks the etcd that was started on it what is below a
// prefix at a revision, and for the hash of all keys. A RefusedError is about the snapshot,
// any other about this attempt.
func (t Trial) Run(ctx context.Context, path, prefix string, revision int64) (Restored, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Restored{}, err
	}
	if err := checkSpace(t.Scratch, info.Size()); err != nil {
		return Restored{}, err
	}
	dir, err := os.MkdirTemp(t.Scratch, "trial-")
	if err != nil {
		return Restored{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is scratch
	data := filepath.Join(dir, "data")
	restore := child.Command(ctx, t.Etcdutl, "snapshot", "restore", path, "--data-dir="+data)
	output, err := restore.CombinedOutput()
	if err != nil {
		return Restored{}, judge(ctx, "restore the snapshot", err, output)
	}
	server, err := StartServer(ctx, t.Etcd, data, dir, "--unsafe-no-fsync")
	if err != nil {
		return Restored{}, fmt.Errorf("start etcd on the restored snapshot: %w", err)
	}
	defer server.Stop()
	found, err := ask(ctx, server.Etcd, server.ended, prefix, revision)
	if err == nil && t.Also != nil {
		err = t.also(ctx, server.Etcd, server.ended)
	}
	if early := new(endedError); errors.As(err, &early) {
		return Restored{}, judge(ctx, "start etcd on the restored snapshot", early.error, server.log.bytes())
	}
	return found, err
}

// also asks what else is asked of an etcd, until that has ended: a client may try for as
// long as it is let.
func (t Trial) also(ctx context.Context, etcd Etcd, ended <-chan error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := make(chan error, 1)
	go func() { asked <- t.Also(ctx, etcd) }()
	select {
	case err := <-asked:
		return err
	case err := <-ended:
		cancel()
		<-asked //nolint:errcheck // it was told to end
		return &endedError{err}
	}
}

// judge returns the error about a program that failed: a RefusedError only if it was the
// snapshot, and not this pod, that it did not find in order.
func judge(ctx context.Context, doing string, err error, output []byte) error {
	exit := new(exec.ExitError)
	own := ctx.Err() == nil && errors.As(err, &exit) && exit.Exited()
	for _, passing := range []string{"no space left on device", "cannot allocate memory", "out of memory", "address already in use", "permission denied", "read-only file system", "too many open files"} {
		own = own && !bytes.Contains(bytes.ToLower(output), []byte(passing))
	}
	if !own {
		return fmt.Errorf("%s: %w: %s", doing, err, lastLines(output))
	}
	return &RefusedError{fmt.Sprintf("%s: %s: %s", doing, err, lastLines(output))}
}

// starting is how long etcd may take until it answers, for which it reads all keys.
const starting = 10 * time.Minute

// ask asks an etcd that is being started, when it answers.
func ask(ctx context.Context, etcd Etcd, ended <-chan error, prefix string, revision int64) (Restored, error) {
	from, err := ready(ctx, etcd, ended, starting)
	if err != nil {
		return Restored{}, err
	}
	found := Restored{Version: from.version}
	if found.Hash, err = etcd.Hash(ctx, revision); err == nil {
		found.Content, err = etcd.content(ctx, from, prefix, revision)
	}
	return found, err
}

// lastLines returns the end of a program's output, in one line.
func lastLines(output []byte) string {
	const most = 600
	text := strings.Join(strings.Fields(string(output)), " ")
	if len(text) > most {
		text = "..." + text[len(text)-most:]
	}
	return text
}

// freeAddress returns an address on loopback on which nothing listens.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// selfSigned writes a certificate for the server and its only client, and its key, which
// are of use for this trial alone.
func selfSigned(dir string) (etcdclient.Files, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return etcdclient.Files{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "trial"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return etcdclient.Files{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return etcdclient.Files{}, err
	}
	files := etcdclient.Files{CA: filepath.Join(dir, "tls.crt"), Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	return files, errors.Join(
		os.WriteFile(files.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}
