package framework

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/clusterregistry/operator/e2e/framework/needs"
)

// S3 is a store with the API of S3, on loopback and with TLS.
type S3 struct {
	// Endpoint is its URL, and CA signs its certificate.
	Endpoint string
	CA       *Authority
	// Bucket is the name of the only bucket, and Dir the directory with its objects.
	Bucket, Dir string
	// Credentials is a directory with the credentials of its only user, as a mounted
	// Secret has them.
	Credentials string
}

// StartS3 starts a store, with an empty bucket, that ends with the test.
func StartS3(t *testing.T) *S3 {
	t.Helper()
	const user, password = "backups", "correct-horse-battery-staple"
	root := t.TempDir()
	s := &S3{CA: NewAuthority(t, "s3-ca"), Bucket: "registry-backups", Credentials: t.TempDir()}
	s.Dir = filepath.Join(root, "objects", s.Bucket)
	for _, dir := range []string{s.Dir, filepath.Join(root, "attributes")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range map[string]string{"accessKeyID": user, "secretAccessKey": password} {
		if err := os.WriteFile(filepath.Join(s.Credentials, key), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair := s.CA.Issue("s3", nil, "127.0.0.1")
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	s.Endpoint = "https://" + address
	log := &lockedBuffer{}
	cmd := exec.Command(Program(t, needs.S3Server.Name, needs.S3Server.Tag, "versitygw"), "--quiet", "--port="+address, "--cert="+pair.Cert, "--key="+pair.Key, "--access="+user, "--secret="+password, //nolint:noctx // it outlives the test's context
		"posix", "--sidecar="+filepath.Join(root, "attributes"), filepath.Join(root, "objects"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its error is that of the kill
		if t.Failed() {
			t.Logf("the log of the S3 server:\n%s", log.String())
		}
	})
	s.wait(t)
	return s
}

// wait waits until the store answers, whatever it says.
func (s *S3) wait(t *testing.T) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CA.PEM)
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	Eventually(t, "the S3 server to answer", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
}

// Flags are what the helper needs to use the bucket.
func (s *S3) Flags() []string {
	return []string{"--store=s3", "--bucket=" + s.Bucket, "--endpoint=" + s.Endpoint, "--store-cacert=" + s.CA.File, "--credentials=" + s.Credentials}
}
