package clusterprofile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// ManagerLabel repeats spec.clusterManager.name, as KEP-4322 demands.
	ManagerLabel = "x-k8s.io/cluster-manager"
	// IDProperty is the property with the ID of a cluster, as KEP-2149 names it. Only the
	// registry says it: whoever may report of a cluster may not pass it off as another one.
	IDProperty = "cluster.clusterset.k8s.io"
	// SetProperty is the property with the ClusterSet of a cluster. Only the registry says
	// it: whoever may report of a cluster may not put it in a set.
	SetProperty = "clusterset.k8s.io"

	// maxName and maxValue are the limits of a property of a profile.
	maxName, maxValue = 253, 1024
)

// Resource is what profiles are, in the only version that there is.
var Resource = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}

// profile is what this package reads and writes of a ClusterProfile. Every field that
// matters to a client is written even if empty, so that what others put there is
// undone; the times of properties are left out: they change where nothing else does.
type profile struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              spec   `json:"spec"`
	Status            status `json:"status"`
}

type spec struct {
	DisplayName    string         `json:"displayName"`
	ClusterManager clusterManager `json:"clusterManager"`
}

type clusterManager struct {
	Name string `json:"name"`
}

type status struct {
	Version         version            `json:"version"`
	Conditions      []metav1.Condition `json:"conditions"`
	Properties      []property         `json:"properties"`
	AccessProviders []accessProvider   `json:"accessProviders"`
}

type version struct {
	Kubernetes string `json:"kubernetes"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Format makes profiles of the clusters of a registry.
type Format struct{ format.Source }

// Manager returns spec.clusterManager.name of the profiles of a registry. KEP-4322 has each
// instance of a cluster manager named apart, and the name is the value of a label as well: a
// long one is cut, and ends with a hash of the whole.
func (s Format) Manager() string {
	name := "clusterregistry." + s.Namespace + "." + s.Registry
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	end := "-" + hex.EncodeToString(sum[:8])
	return name[:validation.LabelValueMaxLength-len(end)] + end
}

// of returns the profile of a cluster in a namespace, given what is known of its endpoint.
func (s Format) of(cluster *v1beta1.Cluster, in format.Target, known proof) *profile {
	out := &profile{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name, Labels: in.Copied(cluster)}}
	if in.Owner != nil {
		out.OwnerReferences = []metav1.OwnerReference{*in.Owner}
	}
	out.Labels[ManagerLabel] = s.Manager()
	out.Labels[contract.NamespaceLabel(s.Registry)] = s.Namespace
	out.Spec = spec{DisplayName: cluster.Spec.DisplayName, ClusterManager: clusterManager{Name: s.Manager()}}

	have := v1beta1.ClusterStatus{}
	if cluster.Status != nil {
		have = *cluster.Status
	}
	out.Status.Version.Kubernetes = have.Version.Kubernetes
	properties, left := propertiesOf(have.Properties, cluster.Spec)
	out.Status.Properties = properties
	providers, access := providersOf(cluster, in, known)
	out.Status.AccessProviders = providers
	out.Status.Conditions = conditionsOf(cluster, have.Conditions, access, left, known)
	return out
}

// ours reports whether a profile belongs to this registry.
func (s Format) ours(p *profile) bool {
	return p.Spec.ClusterManager.Name == s.Manager() && p.Labels[contract.NamespaceLabel(s.Registry)] == s.Namespace
}

// propertiesOf returns those that are reported of a cluster, and those that its spec says, by
// name; left are the names of those that a profile has no room for.
func propertiesOf(reported []v1beta1.Property, spec v1beta1.ClusterSpec) (out []property, left []string) {
	out = []property{}
	for _, p := range reported {
		switch {
		case p.Name == IDProperty || p.Name == SetProperty:
		case p.Name == "" || p.Value == "" || len(p.Name) > maxName || len([]rune(p.Value)) > maxValue:
			left = append(left, p.Name)
		default:
			out = append(out, property{Name: p.Name, Value: p.Value})
		}
	}
	for _, p := range []property{{IDProperty, spec.ID}, {SetProperty, spec.ClusterSet}} {
		if p.Value != "" {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b property) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(left)
	return out, left
}

// extraCA returns the place of a provider in a profile that is up to date but for a CA that it
// is not to have; -1 when there is none.
func extraCA(want, have status) int {
	return slices.IndexFunc(have.AccessProviders, func(is accessProvider) bool {
		if len(is.Cluster.CABundle) == 0 {
			return false
		}
		is.Cluster.CABundle = nil
		return slices.ContainsFunc(want.AccessProviders, func(a accessProvider) bool { return reflect.DeepEqual(is, a) })
	})
}

// decode reads a profile.
func decode(object *unstructured.Unstructured) (*profile, error) {
	out := &profile{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
		return nil, fmt.Errorf("read ClusterProfile %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return out, nil
}

// owner returns what a profile is to go with; nil for nothing.
func (p *profile) owner() *metav1.OwnerReference {
	if len(p.OwnerReferences) == 0 {
		return nil
	}
	return &p.OwnerReferences[0]
}

// sameMain reports whether a profile has the labels, the owner and the spec of another one.
func sameMain(want, have *profile) bool {
	for key, value := range want.Labels {
		if is, ok := have.Labels[key]; !ok || is != value {
			return false
		}
	}
	return want.Spec == have.Spec && format.HasOwner(have.OwnerReferences, want.owner())
}

// sameStatus reports whether a profile has the status of another one. What others have
// added to lists is theirs, and when a condition changed says nothing by itself.
func sameStatus(want, have status) bool {
	if want.Version != have.Version {
		return false
	}
	for _, c := range want.Conditions {
		if !slices.ContainsFunc(have.Conditions, func(is metav1.Condition) bool {
			return is.Type == c.Type && is.Status == c.Status && is.Reason == c.Reason && is.Message == c.Message
		}) {
			return false
		}
	}
	for _, p := range want.Properties {
		if !slices.Contains(have.Properties, p) {
			return false
		}
	}
	for _, a := range want.AccessProviders {
		if !slices.ContainsFunc(have.AccessProviders, func(is accessProvider) bool { return reflect.DeepEqual(is, a) }) {
			return false
		}
	}
	return true
}
