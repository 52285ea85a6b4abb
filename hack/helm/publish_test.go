package helm

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/clusterregistry/operator/hack/chart/content"
)

// TestLint has Helm find nothing in the chart, not even what it would only recommend.
func TestLint(t *testing.T) {
	for _, set := range []string{"replicas=2", "watchNamespaces={team-a}", "serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true"} {
		out := run(t, "lint", "--strict", chart, "--namespace="+namespace, "--set="+set)
		if !strings.Contains(out, "1 chart(s) linted, 0 chart(s) failed") || strings.Contains(out, "[INFO]") || strings.Contains(out, "[WARNING]") {
			t.Errorf("with %s: %s", set, out)
		}
	}
}

// TestOldKubernetes has Helm refuse a Kubernetes that no registry runs on.
func TestOldKubernetes(t *testing.T) {
	_, err := try(t, "template", "any", chart, "--kube-version=v1.33.9")
	if err == nil || !strings.Contains(err.Error(), "chart requires kubeVersion: >=1.34.0-0 which is incompatible with Kubernetes v1.33.9") {
		t.Errorf("on Kubernetes 1.33: %v", err)
	}
	run(t, "template", "any", chart, "--kube-version=v1.34.4-gke.100")
}

// TestPublished pushes the archive that a release has of the chart to a registry of OCI
// images, and pulls and renders it from there.
func TestPublished(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	charts := "oci://" + strings.TrimPrefix(server.URL, "http://") + "/charts"
	files, err := content.Files(content.Options{Source: root, Version: "v0.3.0-rc.1", Repository: "mirror.example", Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
	archive, err := content.Archive(files, time.Unix(1700000000, 0))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	made := filepath.Join(dir, content.ArchiveName("v0.3.0-rc.1"))
	if err := os.WriteFile(made, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "push", made, charts, "--plain-http")

	pulled := t.TempDir()
	reference := charts + "/" + content.Name
	run(t, "pull", reference, "--version=0.3.0-rc.1", "--plain-http", "--destination="+pulled)
	got, err := os.ReadFile(filepath.Join(pulled, filepath.Base(made)))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(archive) {
		t.Errorf("what is pulled has %d bytes, and is not the %d that were pushed", len(got), len(archive))
	}
	from := run(t, "template", "any", reference, "--version=0.3.0-rc.1", "--plain-http", "--namespace="+namespace)
	if image := "image: mirror.example/clusterregistry-operator:v0.3.0-rc.1@" + digest + "\n"; !strings.Contains(from, image) {
		t.Errorf("rendered from the registry, the chart lacks %q", image)
	}
	if from != run(t, "template", "any", made, "--namespace="+namespace) {
		t.Error("rendered from the registry, the chart is another one")
	}
	if _, err := try(t, "pull", reference, "--version=0.3.0", "--plain-http", "--destination="+pulled); err == nil {
		t.Error("a version that nobody has pushed is pulled")
	}
}

// TestPackage has Helm make the same files of the directory as a release does.
func TestPackage(t *testing.T) {
	dir := t.TempDir()
	run(t, "package", chart, "--destination="+dir)
	archives, err := filepath.Glob(filepath.Join(dir, content.Name+"-*.tgz"))
	if err != nil || len(archives) != 1 {
		t.Fatal(archives, err)
	}
	if run(t, "template", "any", archives[0]) != run(t, "template", "any", chart) {
		t.Error("what is packaged renders otherwise than the directory")
	}
	for _, what := range []string{"values", "readme"} {
		name := map[string]string{"values": "values.yaml", "readme": "README.md"}[what]
		want, err := os.ReadFile(filepath.Join(chart, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t, "show", what, archives[0]); strings.TrimSpace(got) != strings.TrimSpace(string(want)) {
			t.Errorf("helm show %s prints other than %s", what, name)
		}
	}
}
