package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/clusterregistry/operator/hack/chart/content"
	local "github.com/clusterregistry/operator/hack/cluster/image"
)

// small writes a release of one image, whose program is a text, and returns its directory.
func small(t *testing.T, program string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "v0.2.0")
	put := func(name string, content []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var specs []local.Spec
	for _, arch := range []string{"amd64", "arm64"} {
		text := program + arch
		file := filepath.Join(t.TempDir(), "clusterregistry-operator")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		specs = append(specs, local.Spec{Reference: "registry.example/any/clusterregistry-operator:v0.2.0", Programs: []string{file}, Architecture: arch})
		put("sbom/operator-"+arch+".spdx.json", fmt.Appendf(nil, `{"name": %q, "packages": [{"SPDXID": "SPDXRef-program", "checksums": [{"algorithm": "SHA256", "checksumValue": "%x"}]}]}`, arch, sha256.Sum256([]byte(text))))
	}
	digest, err := local.WriteIndex(filepath.Join(dir, "images", "clusterregistry-operator-v0.2.0.tar"), specs...)
	if err != nil {
		t.Fatal(err)
	}
	put("images.txt", fmt.Appendf(nil, "registry.example/any/clusterregistry-operator:v0.2.0@%s\n", digest))
	chart, err := content.Archive([]content.File{{Name: "Chart.yaml", Content: []byte("name: cluster-registry-operator\nversion: 0.2.0\n")}}, time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	put(content.ArchiveName("v0.2.0"), chart)
	var sums []byte
	for _, name := range []string{"images.txt", content.ArchiveName("v0.2.0"), "sbom/operator-amd64.spdx.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sums = fmt.Appendf(sums, "%x  %s\n", sha256.Sum256(text), name)
	}
	put(sumsFile, sums)
	return dir
}

// place is a registry of images, which may change what it answers.
type place struct {
	*httptest.Server
	// change changes the content of an answer to a request for a path.
	change func(path string, content []byte) []byte
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.change == nil || r.Method != http.MethodGet {
			images.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		images.ServeHTTP(answer, r)
		for key, values := range answer.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(p.change(r.URL.Path, answer.Body.Bytes()))
	}))
	t.Cleanup(p.Close)
	return p
}

// read reads a release that is published there.
func (p *place) read(t *testing.T, dir string) *release {
	t.Helper()
	r, err := readRelease(dir, strings.TrimPrefix(p.URL, "http://")+"/team")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
