package framework

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

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
	s := &S3{CA: NewAuthority(t, "s3-ca"), Bucket: "registry-backups", Credentials: credentials(t, map[string]string{"accessKeyID": user, "secretAccessKey": password})}
	s.Dir = filepath.Join(root, "objects", s.Bucket)
	for _, dir := range []string{s.Dir, filepath.Join(root, "attributes")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	pair := s.CA.Issue("s3", nil, "127.0.0.1")
	address := fmt.Sprintf("127.0.0.1:%d", FreePort(t))
	s.Endpoint = "https://" + address
	startServer(t, "the S3 server", nil, Program(t, needs.S3Server.Name, needs.S3Server.Tag, "versitygw"), "--quiet", "--port="+address, "--cert="+pair.Cert, "--key="+pair.Key, "--access="+user, "--secret="+password,
		"posix", "--sidecar="+filepath.Join(root, "attributes"), filepath.Join(root, "objects"))
	awaitServer(t, s.Endpoint, s.CA)
	return s
}

// Flags are what the helper needs to use the bucket.
func (s *S3) Flags() []string {
	return []string{"--store=s3", "--bucket=" + s.Bucket, "--endpoint=" + s.Endpoint, "--store-cacert=" + s.CA.File, "--credentials=" + s.Credentials}
}
