package clusterprofile

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/internal/contract"
)

// Kind says what profiles are.
func (s Format) Kind() format.Kind {
	return format.Kind{
		Name:     "ClusterProfile",
		Resource: Resource, GroupVersionKind: Resource.GroupVersion().WithKind("ClusterProfile"), Words: "ClusterProfiles", Rights: "cluster-profiles",
		CRD:      "the CRD clusterprofiles.multicluster.x-k8s.io of sigs.k8s.io/cluster-inventory-api v0.1.3",
		Selector: contract.NamespaceLabel(s.Registry) + "=" + s.Namespace,
	}
}

// Offered returns why a profile would have no providers, nil when it has some, once the endpoint
// is verified.
func (s Format) Offered(cluster *v1beta1.Cluster, in format.Target) *format.Withheld {
	_, _, why := offered(cluster, in)
	return why
}

// Want returns the profile of a cluster. There is one for every cluster, without providers where
// no one is to be led, unless another cluster answers.
func (s Format) Want(cluster *v1beta1.Cluster, in format.Target, known format.Known, have *unstructured.Unstructured) (format.Object, *format.Withheld) {
	is, err := decoded(have)
	switch why := s.Offered(cluster, in); {
	case format.Mistaken(cluster):
		return object{s, s.of(cluster, in, proofOf(known, is))}, &format.Withheld{Reason: format.ReasonMistaken, Message: "Another cluster answers.", Then: format.Delete}
	case err != nil:
		return nil, &format.Withheld{Reason: "Unreadable", Message: err.Error()}
	case have == nil && why == nil && !known.Asked:
		return nil, &format.Withheld{Then: format.Wait} // it is written once then
	}
	return object{s, s.of(cluster, in, proofOf(known, is))}, nil
}

// Ours reports whether a profile belongs to this registry, and how one that does not differs.
func (s Format) Ours(have *unstructured.Unstructured) (ours bool, differs string) {
	manager, _, _ := unstructured.NestedString(have.Object, "spec", "clusterManager", "name")
	ours = manager == s.Manager() && have.GetLabels()[contract.NamespaceLabel(s.Registry)] == s.Namespace
	return ours, fmt.Sprintf("has the cluster manager %q; those of this registry have %q and the label %s=%s", manager, s.Manager(), contract.NamespaceLabel(s.Registry), s.Namespace)
}

// Leads returns the server of the first provider of a profile, by which clients connect.
func (s Format) Leads(have *unstructured.Unstructured) (place string) {
	providers, _, _ := unstructured.NestedSlice(have.Object, "status", "accessProviders")
	if len(providers) == 0 {
		return ""
	}
	first, _ := providers[0].(map[string]any)
	place, _, _ = unstructured.NestedString(first, "cluster", "server")
	return place
}

// object is what a profile is to be.
type object struct {
	Format
	want *profile
}

// New returns the part of a profile that says whose it is.
func (o object) New() (metadata, content map[string]any) {
	return format.WithOwner(map[string]any{"labels": map[string]any{ManagerLabel: o.Manager(), contract.NamespaceLabel(o.Registry): o.Namespace}}, o.want.owner()),
		map[string]any{"spec": map[string]any{"clusterManager": map[string]any{"name": o.Manager()}}}
}

// Changes returns what differs in a profile, the status first.
func (o object) Changes(stored *unstructured.Unstructured) ([]format.Change, error) {
	have, err := decode(stored)
	if err != nil {
		return nil, err
	}
	if at := extraCA(o.want.Status, have.Status); at >= 0 {
		// To apply a status without a CA leaves one that someone else has set.
		return []format.Change{{Subresource: "status", Patch: []map[string]any{{"op": "remove", "path": fmt.Sprintf("/status/accessProviders/%d/cluster/certificate-authority-data", at)}}}}, nil
	}
	var out []format.Change
	if applied := format.Owned(have.ManagedFields, "status"); applied == nil || !sameStatus(o.want.Status, have.Status) || surplus(applied, o.want) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&o.want.Status)
		if err != nil {
			return nil, err
		}
		out = append(out, format.Change{Subresource: "status", Content: map[string]any{"status": content}})
	}
	if applied := format.Owned(have.ManagedFields, ""); !sameMain(o.want, have) || applied != nil && surplus(applied, o.want) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&o.want.Spec)
		if err != nil {
			return nil, err
		}
		shown := map[string]any{}
		for key, value := range o.want.Labels {
			shown[key] = value
		}
		out = append(out, format.Change{Metadata: format.WithOwner(map[string]any{"labels": shown}, o.want.owner()), Content: map[string]any{"spec": content}})
	}
	return out, nil
}

// decoded is decode of what may not be there.
func decoded(have *unstructured.Unstructured) (*profile, error) {
	if have == nil {
		return nil, nil
	}
	return decode(have)
}
