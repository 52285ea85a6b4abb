package needs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/operator/version"
)

var releases = []version.Release{
	{Version: "v0.1.0", Helper: "v0.1.0", Etcd: "v3.6.14", Images: version.Images{Server: "sha256:a", Helper: "sha256:b", Etcd: "sha256:c"}},
	{Version: "v0.2.0", Helper: "v0.1.0", Etcd: "v3.6.14"},
	{Version: "v0.10.0", Helper: "v0.10.0", Etcd: "v3.7.3"},
}

func TestOf(t *testing.T) {
	for _, test := range []struct{ words, want, images, says string }{
		{"v0.2.0", "v0.2.0", "clusterregistry-apiserver:v0.2.0 clusterregistry-backup:v0.2.0 clusterregistry-controller:v0.2.0 clusterregistry-helper:v0.1.0 etcd:v3.6.14", ""},
		{"newest", "v0.10.0", "clusterregistry-apiserver:v0.10.0 clusterregistry-backup:v0.10.0 clusterregistry-controller:v0.10.0 clusterregistry-helper:v0.10.0 etcd:v3.7.3", ""},
		{"newest oldest", "v0.1.0 v0.10.0", "clusterregistry-apiserver:v0.1.0@sha256:a clusterregistry-apiserver:v0.10.0 clusterregistry-backup:v0.1.0 clusterregistry-backup:v0.10.0 clusterregistry-controller:v0.1.0 clusterregistry-controller:v0.10.0 clusterregistry-helper:v0.1.0@sha256:b clusterregistry-helper:v0.10.0 etcd:v3.6.14@sha256:c etcd:v3.7.3", ""},
		{"v0.2.0 v0.1.0", "v0.1.0 v0.2.0", "clusterregistry-apiserver:v0.1.0@sha256:a clusterregistry-apiserver:v0.2.0 clusterregistry-backup:v0.1.0 clusterregistry-backup:v0.2.0 clusterregistry-controller:v0.1.0 clusterregistry-controller:v0.2.0 clusterregistry-helper:v0.1.0@sha256:b etcd:v3.6.14@sha256:c", ""},
		{"source", "source", "etcd:v3.7.3", ""},
		{"older-operator", "older-operator", "", ""},
		{"s3", "s3", "versitygw:v1.7.0", ""},
		{"e2e/faults", "v0.10.0", "clusterregistry-apiserver:v0.10.0 clusterregistry-backup:v0.10.0 clusterregistry-controller:v0.10.0 clusterregistry-helper:v0.10.0 etcd:v3.7.3", ""},
		{"e2e/skew older-operator", "v0.1.0 v0.10.0 older-operator", "clusterregistry-apiserver:v0.1.0@sha256:a clusterregistry-apiserver:v0.10.0 clusterregistry-backup:v0.1.0 clusterregistry-backup:v0.10.0 clusterregistry-controller:v0.1.0 clusterregistry-controller:v0.10.0 clusterregistry-helper:v0.1.0@sha256:b clusterregistry-helper:v0.10.0 etcd:v3.6.14@sha256:c etcd:v3.7.3", ""},
		{"v0.9.0", "", "", `version "v0.9.0"; it knows v0.1.0, v0.2.0, v0.10.0; besides versions there are newest`},
		{"latest", "", "", `"latest"`},
	} {
		n, err := Of(releases, strings.Fields(test.words)...)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.words, err)
		}
		var images []string
		for _, image := range n.Images() {
			images = append(images, strings.TrimSuffix(image.Name+":"+image.Tag+"@"+image.Digest, "@"))
		}
		if got := strings.Join(images, " "); n.String() != test.want || got != test.images {
			t.Errorf("%s: %s, with %s", test.words, n, got)
		}
	}
	for _, words := range [][]string{nil, {"all"}, {"e2e/unlisted"}} {
		if n, err := Of(releases, words...); err != nil || n.String() != "v0.1.0 v0.2.0 v0.10.0 source older-operator s3" {
			t.Errorf("%q: %s, %v", words, n, err)
		}
	}
	if n, err := Of(releases, "v0.2.0"); err != nil || !n.Has("v0.2.0") || n.Has("v0.1.0") || n.Has("v0.9.0") {
		t.Errorf("%s, %v", n, err)
	}
}

// TestDeclared expects words that are known, of packages that exist.
func TestDeclared(t *testing.T) {
	var declared map[string][]string
	if err := yaml.UnmarshalStrict(packages, &declared); err != nil {
		t.Fatal(err)
	}
	known, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	for name, words := range declared {
		if _, err := os.Stat(filepath.Join("../..", name)); err != nil || len(words) == 0 {
			t.Errorf("package %s runs %q: %v", name, words, err)
		}
		if _, err := Of(known, words...); err != nil {
			t.Errorf("package %s: %v", name, err)
		}
	}
}
