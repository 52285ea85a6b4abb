package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// kinds are those of a registry's objects.
var kinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"},
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}, {Group: "cert-manager.io", Version: "v1", Kind: "Issuer"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, {Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
}

// objects returns all that carries the labels of a registry of the site, but for
// Secrets, wherever it is.
func (s *site) objects(registry string) []unstructured.Unstructured {
	s.t.Helper()
	var out []unstructured.Unstructured
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := s.List(s.t.Context(), list, client.MatchingLabels{operatorv1alpha1.LabelNamespace: s.namespace, operatorv1alpha1.LabelInstance: registry})
		if err != nil {
			s.t.Fatal(err)
		}
		out = append(out, list.Items...)
	}
	return out
}

// namesOf returns objects as Kind/name, sorted.
func namesOf(objects []unstructured.Unstructured) []string {
	var out []string
	for _, object := range objects {
		out = append(out, object.GetKind()+"/"+object.GetName())
	}
	slices.Sort(out)
	return out
}

// holds waits until a registry has the objects named Kind/name, and none of those
// after a dash.
func (s *site) holds(registry, names string) {
	s.t.Helper()
	s.eventually(registry+" to have "+names, func(context.Context) error { return holdsNow(s.objects(registry), names) })
}

func holdsNow(objects []unstructured.Unstructured, names string) error {
	held := namesOf(objects)
	for _, name := range strings.Fields(names) {
		unwanted, is := strings.CutPrefix(name, "-")
		if is == slices.Contains(held, unwanted) {
			return fmt.Errorf("%s: the site holds %s", name, held)
		}
	}
	return nil
}
