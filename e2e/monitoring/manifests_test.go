package monitoring

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestManifests builds manifests/monitoring and looks for what it selects in the
// cluster. The kinds of Prometheus Operator are not there; "make verify-alerts"
// holds them against that project's types.
func TestManifests(t *testing.T) {
	e := framework.New(t).WithOperator()
	for dir, want := range map[string][]string{
		"monitoring":            {"ClusterRole", "ClusterRoleBinding", "ConfigMap", "PrometheusRule", "Secret", "ServiceAccount", "ServiceMonitor"},
		"monitoring/controller": {"PodMonitor", "Secret", "ServiceAccount"},
	} {
		if kinds := checkManifests(t, e, dir); !slices.Equal(kinds, want) {
			t.Errorf("%s is made of %v, not %v", dir, kinds, want)
		}
	}
}

// checkManifests has the cluster check what a directory of manifests is made of, and
// returns the kinds.
func checkManifests(t *testing.T, e *framework.Env, dir string) []string {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(framework.Root(t), "manifests", dir))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, resource := range built.Resources() {
		content, err := resource.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, object.GetKind())
		switch object.GetKind() {
		case "ServiceMonitor":
			checkSelects(t, e, object)
		case "PrometheusRule", "PodMonitor":
		default:
			if namespaced, err := e.Client.IsObjectNamespaced(object); err == nil && namespaced && object.GetNamespace() == "" {
				object.SetNamespace(e.Namespace) // it is for any one
			}
			if err := e.Client.Create(t.Context(), object, client.DryRunAll); err != nil {
				t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

// checkSelects finds the one Service of the operator, and its port, by what the
// ServiceMonitor says.
func checkSelects(t *testing.T, e *framework.Env, object *unstructured.Unstructured) {
	t.Helper()
	var monitor struct {
		Spec struct {
			Selector          struct{ MatchLabels map[string]string }
			NamespaceSelector struct{ MatchNames []string }
			Endpoints         []struct{ Port string }
		}
	}
	content, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(content, &monitor)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(monitor.Spec.NamespaceSelector.MatchNames, []string{framework.OperatorNamespace}) {
		t.Errorf("it looks into %v", monitor.Spec.NamespaceSelector.MatchNames)
	}
	var services corev1.ServiceList
	if err := e.Client.List(t.Context(), &services, client.InNamespace(framework.OperatorNamespace), client.MatchingLabels(monitor.Spec.Selector.MatchLabels)); err != nil {
		t.Fatal(err)
	}
	// The dashboard knows the operator by this name, which becomes the job's.
	if len(services.Items) != 1 || services.Items[0].Name != "clusterregistry-operator-metrics" {
		t.Fatalf("it finds %d Services", len(services.Items))
	}
	ports := services.Items[0].Spec.Ports
	if !slices.ContainsFunc(ports, func(port corev1.ServicePort) bool { return port.Name == monitor.Spec.Endpoints[0].Port }) {
		t.Errorf("the Service has no port %s, but %v", monitor.Spec.Endpoints[0].Port, ports)
	}
}
