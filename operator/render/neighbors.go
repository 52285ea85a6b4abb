package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// namespacesOf are, by what stands for each of them in the manifests, the namespaces that a
// function reaches: an object in such a namespace is made once in each. own is that of the registry.
func namespacesOf(controllers *operatorv1alpha1.Controllers, own string) map[string][]string {
	return map[string][]string{
		"<cluster-api-namespace>":       controllers.Reaches(contract.ClusterAPIFunction),
		"<cluster-profile-namespace>":   controllers.ExportsTo(operatorv1alpha1.ExportClusterProfile),
		"<cluster-selection-namespace>": controllers.Reaches(contract.ClusterSelectionsFunction),
		// The registry's own has its keys, and what pods trust.
		"<secret-namespace>":     slices.DeleteFunc(controllers.ExportsTo(operatorv1alpha1.ExportArgoCDSecret), func(namespace string) bool { return namespace == own }),
		"<config-map-namespace>": slices.DeleteFunc(controllers.ExportsTo(operatorv1alpha1.ExportFluxConfigMap, operatorv1alpha1.ExportKubeconfig), func(namespace string) bool { return namespace == own }),
	}
}

// inNamespaces returns objects with those of the namespaces that functions reach made in each
// of them which is open to the registry.
func inNamespaces(objects []*unstructured.Unstructured, in Input) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	reached := namespacesOf(Asked(in.Registry), in.Registry.Namespace)
	for _, object := range objects {
		namespaces, several := reached[object.GetNamespace()]
		if !several {
			out = append(out, object)
			continue
		}
		for _, namespace := range namespaces {
			if slices.Contains(in.Reached, namespace) {
				copied := object.DeepCopy()
				copied.SetNamespace(namespace)
				out = append(out, copied)
			}
		}
	}
	return out
}

// InvalidSelector says which selector of a function is not valid, nil when none is. The API
// does not check all of a selector.
func InvalidSelector(controllers *operatorv1alpha1.Controllers, function string) error {
	if controllers == nil {
		return nil
	}
	check := func(field string, selector *metav1.LabelSelector) error {
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			return fmt.Errorf("spec.controllers.%s.selector is not valid: %w", field, err)
		}
		return nil
	}
	switch {
	case function == contract.ClusterAPIFunction && controllers.ClusterAPI != nil:
		return check(function, controllers.ClusterAPI.Selector)
	case function == contract.ExportsFunction:
		for i, export := range controllers.Exports {
			if err := check(fmt.Sprintf("%s[%d]", function, i), export.Selector); err != nil {
				return err
			}
		}
	case function == contract.ClusterSelectionsFunction:
		for i, selections := range controllers.ClusterSelections {
			if err := check(fmt.Sprintf("%s[%d]", function, i), selections.Selector); err != nil {
				return err
			}
		}
	}
	return nil
}

// Runnable returns the functions that a registry asks of its controller and whose selectors are
// valid. Selections run if those of one namespace do: without them, no one would know what exports
// with a ClusterSelection may show in the other namespaces.
func Runnable(registry *operatorv1alpha1.ClusterRegistry) []string {
	asked := Asked(registry)
	return slices.DeleteFunc(asked.Functions(), func(function string) bool {
		if function == contract.ClusterSelectionsFunction {
			return !slices.ContainsFunc(asked.ClusterSelections, validSelector)
		}
		return InvalidSelector(asked, function) != nil
	})
}

// validSelector reports whether the selector of the selections of a namespace is valid. Others see
// nothing.
func validSelector(of operatorv1alpha1.ClusterSelections) bool {
	_, err := metav1.LabelSelectorAsSelector(of.Selector)
	return err == nil
}

// selectorText returns a valid selector as the flags of the controller take it, empty for one
// that selects everything.
func selectorText(selector *metav1.LabelSelector) string {
	valid, err := metav1.LabelSelectorAsSelector(selector)
	if selector == nil || err != nil {
		return ""
	}
	return valid.String()
}

// clusterAPIArguments returns the flags of that function.
func clusterAPIArguments(spec operatorv1alpha1.ClusterAPI, registry string) []string {
	out := []string{"--cluster-api", "--registry-name=" + registry}
	for _, flag := range []struct{ name, value string }{
		{"namespaces", joined(spec.Namespaces)},
		{"selector", selectorText(spec.Selector)},
		{"name-template", spec.NameTemplate},
		{"labels", joined(spec.Labels)},
		{"grants-file", grantsFile(&spec)},
		{"deletion-policy", string(spec.DeletionPolicy)},
	} {
		if flag.value != "" {
			out = append(out, "--cluster-api-"+flag.name+"="+flag.value)
		}
	}
	if spec.GracePeriodSeconds != nil {
		out = append(out, "--cluster-api-grace-period="+strconv.Itoa(int(*spec.GracePeriodSeconds))+"s")
	}
	return out
}

// grantsKey is the key, in the controller's ConfigMap, of what entries get by the namespace of
// their Cluster: it is larger than an argument may be.
const grantsKey = "cluster-api-grants.json"

// grantsFile returns where the controller finds that, empty for nothing.
func grantsFile(spec *operatorv1alpha1.ClusterAPI) string {
	if grantsText(spec) == "" {
		return ""
	}
	return "/config/" + grantsKey
}

// grantsText returns what the spec grants to namespaces as the controller reads it, empty for
// nothing.
func grantsText(spec *operatorv1alpha1.ClusterAPI) string {
	if spec == nil || len(spec.AccessTemplates)+len(spec.ClusterSets) == 0 {
		return ""
	}
	return jsonText(struct {
		AccessTemplates []operatorv1alpha1.AccessTemplate      `json:"accessTemplates,omitempty"`
		ClusterSets     []operatorv1alpha1.NamespaceClusterSet `json:"clusterSets,omitempty"`
	}{spec.AccessTemplates, spec.ClusterSets})
}

// exportsKey is the key, in the controller's ConfigMap, of what is published, where and as what.
const exportsKey = "exports.json"

// exportsText returns what the spec publishes as the controller reads it, empty for nothing.
func exportsText(spec []operatorv1alpha1.Export) string {
	if len(spec) == 0 {
		return ""
	}
	return jsonText(spec)
}

// jsonText returns a value that is nothing but texts as a file has it.
func jsonText(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // six bytes for each such character
	if err := encoder.Encode(value); err != nil {
		return ""
	}
	return out.String()
}

// clusterSelectionsArguments returns the flags of that function.
func clusterSelectionsArguments(spec []operatorv1alpha1.ClusterSelections, registry string) []string {
	out := []string{"--registry-name=" + registry}
	for _, selections := range spec {
		if !validSelector(selections) {
			continue // without it, they would see all clusters
		}
		namespace := string(selections.Namespace)
		out = append(out, strings.TrimSuffix("--cluster-selections="+namespace+":"+selectorText(selections.Selector), ":"))
		if len(selections.ClusterSets) > 0 {
			out = append(out, "--cluster-selections-sets="+namespace+":"+joined(selections.ClusterSets))
		}
	}
	return out
}
