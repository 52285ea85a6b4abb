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

// namespaceOf stands, in the manifests, for each namespace that a function reaches: an object
// in such a namespace is made once in each.
var namespaceOf = map[string]string{
	"<cluster-api-namespace>":     contract.ClusterAPIFunction,
	"<cluster-profile-namespace>": contract.ClusterProfilesFunction,
}

// inNamespaces returns objects with those of the namespaces that functions reach made in each
// of them which is open to the registry.
func inNamespaces(objects []*unstructured.Unstructured, in Input) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, object := range objects {
		function, several := namespaceOf[object.GetNamespace()]
		if !several {
			out = append(out, object)
			continue
		}
		for _, namespace := range in.Registry.Spec.Controllers.Reaches(function) {
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
	case function == contract.ClusterProfilesFunction:
		for i, profiles := range controllers.ClusterProfiles {
			if err := check(fmt.Sprintf("%s[%d]", function, i), profiles.Selector); err != nil {
				return err
			}
		}
	}
	return nil
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
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // six bytes for each such character
	err := encoder.Encode(struct {
		AccessTemplates []operatorv1alpha1.AccessTemplate      `json:"accessTemplates,omitempty"`
		ClusterSets     []operatorv1alpha1.NamespaceClusterSet `json:"clusterSets,omitempty"`
	}{spec.AccessTemplates, spec.ClusterSets})
	if err != nil {
		return "" // it is nothing but texts
	}
	return out.String()
}

// clusterProfilesArguments returns the flags of that function.
func clusterProfilesArguments(spec []operatorv1alpha1.ClusterProfiles, registry string) []string {
	out := []string{"--registry-name=" + registry}
	for _, profiles := range spec {
		namespace := string(profiles.Namespace)
		out = append(out, strings.TrimSuffix("--cluster-profiles="+namespace+":"+selectorText(profiles.Selector), ":"))
		if len(profiles.Labels) > 0 {
			out = append(out, "--cluster-profiles-labels="+namespace+":"+joined(profiles.Labels))
		}
		if len(profiles.Providers) > 0 {
			out = append(out, "--cluster-profiles-providers="+namespace+":"+joined(profiles.Providers))
		}
	}
	return out
}
