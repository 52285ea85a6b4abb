package content

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/hack/install/render"
)

// The namespace of the operator in the manifests; the chart has that of the release.
const operatorNamespace = "clusterregistry-system"

// watchedNamespace stands in objects for a namespace of the value watchNamespaces.
const watchedNamespace = "zz-watched-namespace"

const (
	// keepAnnotation is on objects that stay when a release is uninstalled.
	keepAnnotation = "helm.sh/resource-policy"
	operatorRole   = "clusterregistry:operator"
)

// narrowing is the value that makes it an operator for some namespaces.
const narrowing = "watchNamespaces"

// aggregated is the value that says where registries may be a part of the host cluster's API.
const aggregated = "registries.aggregatedNamespaces"

// conditions are the values that objects depend on, by kind, or by kind and name.
var conditions = map[string]string{
	"CustomResourceDefinition":                          "crds.install",
	"PodDisruptionBudget":                               "podDisruptionBudget.enabled",
	"NetworkPolicy":                                     "networkPolicy.enabled",
	"ServiceMonitor":                                    "serviceMonitor.enabled",
	"ServiceAccount clusterregistry-metrics-reader":     "serviceMonitor.enabled",
	"Secret clusterregistry-metrics-reader":             "serviceMonitor.enabled",
	"ClusterRoleBinding clusterregistry:metrics-reader": "serviceMonitor.enabled",
	"ClusterRole clusterregistry:metrics-reader":        "serviceMonitor.enabled",
	"PrometheusRule":                                    "prometheusRule.enabled",
	"ConfigMap clusterregistry-dashboard":               "dashboard.enabled",
}

// openSystem is true where the operator has rights in kube-system: those that aggregated
// registries need, and to look there for what they left, which an operator of all namespaces has
// everywhere. Platforms that close that namespace would refuse the whole chart.
const openSystem = "or $.Values." + aggregated + " $.Values." + narrowing

// templates returns a file for each kind of object, and for each definition.
func templates(s sources) ([]File, error) {
	files := map[string]string{}
	add := func(object *unstructured.Unstructured, text string) {
		name := strings.ToLower(object.GetKind())
		if name == "customresourcedefinition" {
			plural, _, _ := strings.Cut(object.GetName(), ".")
			name = "crd-" + plural
		}
		files["templates/"+name+".yaml"] += text
	}
	mark(s.deployment)
	for _, object := range s.operator {
		if object.GetKind() == "Namespace" {
			continue // a chart can't bring the namespace of its own release
		}
		retain(object)
		text, err := document(object)
		if err != nil {
			return nil, err
		}
		narrow, err := s.narrowed(object)
		if err != nil {
			return nil, err
		}
		if narrow != "" {
			text = "{{- if $.Values." + narrowing + " }}\n" + narrow + "{{- else }}\n" + text + "{{- end }}\n"
		}
		add(object, conditional(object, text))
	}
	for _, object := range s.namespace {
		object.SetNamespace(watchedNamespace)
		text, err := document(object)
		if err != nil {
			return nil, err
		}
		add(object, "{{- range $.Values."+narrowing+" }}\n"+text+"{{- end }}\n")
	}
	for _, object := range s.monitoring {
		labelMark(object)
		text, err := document(object)
		if err != nil {
			return nil, err
		}
		add(object, conditional(object, text))
	}
	var out []File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, File{Name: name, Content: []byte(header + files[name])})
	}
	return out, nil
}

const header = "{{- /* Written by \"make chart\" from the manifests; change those. */}}\n"

// retain has Helm leave an object in the cluster when the release is uninstalled or no
// longer has it. Registries serve without their operator, and need the definitions, which
// their objects go with, and the roles that bindings of registries and of users refer to.
func retain(object *unstructured.Unstructured) {
	definition := object.GetKind() == "CustomResourceDefinition"
	if !definition && (object.GetKind() != "ClusterRole" || object.GetName() == operatorRole) {
		return
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[keepAnnotation] = "keep"
	object.SetAnnotations(annotations)
}

// narrowed returns the template of an object as it is for some namespaces, or nothing where
// that is the same.
func (s sources) narrowed(object *unstructured.Unstructured) (string, error) {
	if object == s.deployment {
		return "", nil // the argument is a value
	}
	i := slices.IndexFunc(s.narrow, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == object.GetKind() && o.GetNamespace() == object.GetNamespace() && o.GetName() == object.GetName()
	})
	if i < 0 {
		return "", fmt.Errorf("%s has no %s %s, which is in %s", narrowBase, object.GetKind(), object.GetName(), render.Base)
	}
	retain(s.narrow[i])
	if reflect.DeepEqual(s.narrow[i].Object, object.Object) {
		return "", nil
	}
	return document(s.narrow[i])
}

// conditional wraps the template of an object that a value decides on.
func conditional(object *unstructured.Unstructured, text string) string {
	value := cmp.Or(conditions[object.GetKind()], conditions[object.GetKind()+" "+object.GetName()])
	condition := "$.Values." + value
	switch {
	case object.GetNamespace() == metav1.NamespaceSystem:
		condition = openSystem
	case value == "":
		return text
	}
	return "{{- if " + condition + " }}\n" + text + "{{- end }}\n"
}

var (
	namespaceLine = regexp.MustCompile(`(?m)^( *(?:- |[A-Za-z]+: ))` + operatorNamespace + `$`)
	watchedLine   = regexp.MustCompile(`(?m)^( *namespace: )` + watchedNamespace + `$`)
)

// document returns an object as a document of a template.
func document(object *unstructured.Unstructured) (string, error) {
	content, err := yaml.Marshal(object.Object)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	// What the object has of templates is text.
	text := strings.ReplaceAll(string(content), "{{", `{{ "{{" }}`)
	if object.GetKind() != "CustomResourceDefinition" { // they are the same wherever the operator is
		text = namespaceLine.ReplaceAllString(text, "${1}{{ $$.Release.Namespace | quote }}")
		text = strings.ReplaceAll(text, operatorNamespace, "{{ $.Release.Namespace }}")
	}
	text = watchedLine.ReplaceAllString(text, "${1}{{ . | quote }}")
	text, err = fill(text)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return "---\n" + text, nil
}
