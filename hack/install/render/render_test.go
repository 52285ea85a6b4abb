package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/clusterregistry/operator/hack/product"
)

// fromHere leads to the top of the repository.
const fromHere = "../../../"

// published returns the base's objects.
func published(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects, err := Published(fromHere + Base)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// typed returns the objects of one type, which they must fit without a field
// left over.
func typed[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) []T {
	t.Helper()
	var out []T
	for _, object := range objects {
		if object.GetKind() != kind {
			continue
		}
		var into T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &into, true); err != nil {
			t.Fatalf("%s %s: %v", kind, object.GetName(), err)
		}
		out = append(out, into)
	}
	if len(out) == 0 {
		t.Fatalf("the base has no %s", kind)
	}
	return out
}

// TestNoFieldIsMistyped reads every object strictly into its type.
func TestNoFieldIsMistyped(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, object := range published(t) {
		into, err := scheme.New(object.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// TestWhatOthersNeedComesFirst guards the order in which the objects are applied.
func TestWhatOthersNeedComesFirst(t *testing.T) {
	objects := published(t)
	if first, second := objects[0].GetKind(), objects[1].GetKind(); first != "Namespace" || second != "CustomResourceDefinition" {
		t.Errorf("the first objects are %s and %s, want the namespace and the definition", first, second)
	}
	seen := map[string]bool{}
	for _, object := range objects {
		if kind := object.GetKind(); kind == "Deployment" && (!seen["ServiceAccount"] || !seen["ClusterRoleBinding"] || !seen["RoleBinding"]) {
			t.Error("the operator would start before it may do anything")
		}
		seen[object.GetKind()] = true
	}
}

func TestImage(t *testing.T) {
	built := product.Image{Name: "clusterregistry-operator", Tag: "v1", Reference: "registry.localhost/clusterregistry-operator:v1", Digest: "sha256:1"}
	for _, test := range []struct {
		reason, repository string
		want               Image
	}{
		{"as it was built", "", Image{Reference: built.Reference, Digest: "sha256:1", Repository: "registry.localhost"}},
		{"pushed elsewhere since", "registry.example:5000/platform", Image{Reference: "registry.example:5000/platform/clusterregistry-operator:v1", Digest: "sha256:1", Repository: "registry.example:5000/platform"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			i := NewImage(built, test.repository)
			if i != test.want {
				t.Fatalf("got %+v, want %+v", i, test.want)
			}
			objects, err := Objects(fromHere+Base, i)
			if err != nil {
				t.Fatal(err)
			}
			template := typed[appsv1.Deployment](t, objects, "Deployment")[0].Spec.Template
			container := template.Spec.Containers[0]
			env := map[string]corev1.EnvVar{}
			for _, variable := range container.Env {
				env[variable.Name] = variable
			}
			if container.Image != i.Reference || env["IMAGE_REPOSITORY"].Value != i.Repository || env["POD_NAMESPACE"].ValueFrom == nil || env["AGGREGATED_NAMESPACES"].Value != "*" {
				t.Errorf("the container has image %s and variables %v, want %+v, the pod's namespace, and registries that may be aggregated everywhere", container.Image, container.Env, i)
			}
			if got := template.Annotations["operator.clusterregistry.io/image-digest"]; got != i.Digest {
				t.Errorf("the template is annotated with digest %q, want %q", got, i.Digest)
			}
		})
	}
}

// TestBindingsLeadSomewhere finds the role and the account of each binding.
func TestBindingsLeadSomewhere(t *testing.T) {
	objects := published(t)
	have := map[string]bool{}
	for _, object := range objects {
		have[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = true
	}
	check := func(name, namespace string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if !have[role.Kind+" "+namespace+"/"+role.Name] {
			t.Errorf("%s binds %s %s, which is not there", name, role.Kind, role.Name)
		}
		for _, subject := range subjects {
			if !have[subject.Kind+" "+subject.Namespace+"/"+subject.Name] {
				t.Errorf("%s binds to %s %s/%s, which is not there", name, subject.Kind, subject.Namespace, subject.Name)
			}
		}
	}
	for _, b := range typed[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
		check(b.Name, "", b.RoleRef, b.Subjects)
	}
	for _, b := range typed[rbacv1.RoleBinding](t, objects, "RoleBinding") {
		check(b.Name, b.Namespace, b.RoleRef, b.Subjects)
	}
	account := typed[appsv1.Deployment](t, objects, "Deployment")[0].Spec.Template.Spec.ServiceAccountName
	if !have["ServiceAccount clusterregistry-system/"+account] {
		t.Errorf("the pods run as %s, which is not there", account)
	}
}

// TestSelectorsFindThePods compares each selector with the labels of the pods:
// one that finds none is no error to Kubernetes.
func TestSelectorsFindThePods(t *testing.T) {
	objects := published(t)
	deployment := typed[appsv1.Deployment](t, objects, "Deployment")[0]
	selectors := map[string]map[string]string{
		"spread":        deployment.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
		"Deployment":    deployment.Spec.Selector.MatchLabels,
		"Service":       typed[corev1.Service](t, objects, "Service")[0].Spec.Selector,
		"budget":        typed[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget")[0].Spec.Selector.MatchLabels,
		"NetworkPolicy": typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")[0].Spec.PodSelector.MatchLabels,
	}
	for name, selector := range selectors {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(deployment.Spec.Template.Labels)) {
			t.Errorf("%s selects %v, the pods have %v", name, selector, deployment.Spec.Template.Labels)
		}
	}
}

func TestPublishedImage(t *testing.T) {
	i, err := PublishedImage(fromHere + Base)
	if err != nil {
		t.Fatal(err)
	}
	want := typed[appsv1.Deployment](t, published(t), "Deployment")[0].Spec.Template.Spec.Containers[0].Image
	if i.Reference != want || !strings.HasPrefix(want, i.Repository+"/clusterregistry-operator:") || i.Repository == "" {
		t.Errorf("got %+v, and the Deployment has %s", i, want)
	}
}

func asJSON(t *testing.T, tree any) string {
	t.Helper()
	out, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestYAML reads the file back, object by object.
func TestYAML(t *testing.T) {
	objects := published(t)
	content, err := YAML(objects)
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewYAMLToJSONDecoder(bytes.NewReader(content))
	for _, want := range objects {
		var got any
		if err := decoder.Decode(&got); err != nil {
			t.Fatal(err)
		}
		// Numbers have another type once they are read; as JSON they are the same.
		if got, want := asJSON(t, got), asJSON(t, want.Object); got != want {
			t.Errorf("the file has %s, not %s", got, want)
		}
	}
	if err := decoder.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		t.Errorf("after the last object: %v", err)
	}
}
