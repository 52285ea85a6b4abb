package helm

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/hack/install/render"
)

// manifests returns what kubectl would apply of kustomizations, but for the namespaces: a
// chart can't bring that of its release, and does not bring those of users.
func manifests(t *testing.T, directories ...string) objects {
	t.Helper()
	all := objects{}
	for _, directory := range directories {
		list, err := render.Directory(root + directory)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range list {
			if object.GetKind() != "Namespace" {
				all[identity(object)] = object.Object
			}
		}
	}
	return all
}

// kept takes the annotation by which Helm leaves an object in the cluster from all that
// have it, and returns their identities.
func (all objects) kept() map[string]bool {
	out := map[string]bool{}
	for name, content := range all {
		object := unstructured.Unstructured{Object: content}
		annotations := object.GetAnnotations()
		if annotations["helm.sh/resource-policy"] != "keep" {
			continue
		}
		out[name] = true
		delete(annotations, "helm.sh/resource-policy")
		object.SetAnnotations(annotations)
		if len(annotations) == 0 {
			unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
		}
	}
	return out
}

// compare fails for each object that the chart renders otherwise than the manifests have
// it, and shows both.
func compare(t *testing.T, got, want objects) {
	t.Helper()
	for _, name := range differ(got, want) {
		rendered, err := yaml.Marshal(got[name])
		if err != nil {
			t.Fatal(err)
		}
		applied, err := yaml.Marshal(want[name])
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s is not what the manifests say; the chart has:\n%s\nthe manifests have:\n%s", name, rendered, applied)
	}
}

// TestDefaults has the chart, with no value set, install what kubectl does with
// manifests/operator. What registries and their users need stays when it is uninstalled.
func TestDefaults(t *testing.T) {
	got, want := rendered(t), manifests(t, "manifests/operator")
	kept := got.kept()
	compare(t, got, want)
	for name := range want {
		kind, _, _ := strings.Cut(name, " ")
		stays := kind == "CustomResourceDefinition" || kind == "ClusterRole" && name != "ClusterRole /clusterregistry:operator"
		if kept[name] != stays {
			t.Errorf("%s stays when the chart is uninstalled: %v, want %v", name, kept[name], stays)
		}
	}
}

// TestNamespaced has the chart for some namespaces install what kubectl does with
// manifests/operator-namespaced/example.
func TestNamespaced(t *testing.T) {
	got := rendered(t, "--set=watchNamespaces={team-a,team-b}")
	got.kept()
	compare(t, got, manifests(t, "manifests/operator-namespaced/example"))
}

// TestMonitoring has the chart with all that watches the operator install manifests/monitoring
// as well.
func TestMonitoring(t *testing.T) {
	got := rendered(t, "--set=serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true")
	got.kept()
	compare(t, got, manifests(t, "manifests/operator", "manifests/monitoring"))
	var dashboard string
	for name, object := range got {
		if strings.HasPrefix(name, "ConfigMap ") {
			dashboard, _, _ = unstructured.NestedString(object, "data", "dashboard.json")
		}
	}
	if !json.Valid([]byte(dashboard)) || !strings.Contains(dashboard, "{{") {
		t.Error("the dashboard is no JSON, or has lost its legends, which are templates of Grafana")
	}
}

// TestAnotherNamespace expects nothing of the usual namespace in a chart for another one.
func TestAnotherNamespace(t *testing.T) {
	out := run(t, "template", "any", chart, "--namespace=elsewhere", "--set=serviceMonitor.enabled=true,prometheusRule.enabled=true")
	for line := range strings.Lines(out) {
		if strings.Contains(line, namespace) && !strings.Contains(line, "description") {
			t.Errorf("in another namespace, the chart has %s", line)
		}
	}
	if !strings.Contains(out, "namespace: \"elsewhere\"\n") {
		t.Error("nothing is in the namespace of the release")
	}
}
