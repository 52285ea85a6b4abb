package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// authorities are the values that are CA certificates, in each form that manifests
// have them.
var authorities = []string{"<etcd-ca>", "<etcd-client-ca>", "<serving-ca>", "<serving-ca-base64>", "<client-ca>"}

// Lacks names the CA of which an object of the result would publish an empty bundle,
// which no one could trust; empty when there is none. Such an object must not be
// applied: the CA does not exist yet, or not at the moment.
func (r *Result) Lacks(object *unstructured.Unstructured) string {
	if r == nil {
		return ""
	}
	return r.lacks[object]
}

// lacking returns the first CA that a tree, before anything is substituted, refers to
// and that is empty.
func lacking(tree any, values map[string]string) string {
	switch t := tree.(type) {
	case map[string]any:
		for _, value := range t {
			if found := lacking(value, values); found != "" {
				return found
			}
		}
	case []any:
		for _, value := range t {
			if found := lacking(value, values); found != "" {
				return found
			}
		}
	case string:
		i := slices.IndexFunc(authorities, func(name string) bool { return strings.Contains(t, name) && values[name] == "" })
		if i >= 0 {
			return strings.TrimSuffix(strings.Trim(authorities[i], "<>"), "-base64")
		}
	}
	return ""
}
