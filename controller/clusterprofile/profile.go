package clusterprofile

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// Manager is spec.clusterManager.name of all profiles, whichever registry they are of.
	Manager = "clusterregistry"
	// ManagerLabel repeats it, as KEP-4322 demands.
	ManagerLabel = "x-k8s.io/cluster-manager"
	// FieldManager is by whom profiles are applied.
	FieldManager = "clusterregistry-controller-profiles"
	// SetProperty is the property with the ClusterSet of a cluster. Only the registry says
	// it: whoever may report of a cluster may not put it in a set.
	SetProperty = "clusterset.k8s.io"

	// maxName and maxValue are the limits of a property of a profile.
	maxName, maxValue = 253, 1024
)

var (
	// Resource is what profiles are, in the only version that there is.
	Resource = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}
	kind     = Resource.GroupVersion().WithKind("ClusterProfile")
)

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

// Source is which registry profiles are of.
type Source struct {
	// Registry and Namespace are the name and the namespace of the ClusterRegistry.
	Registry, Namespace string
}

// of returns the profile of a cluster in a namespace, given what is known of its endpoint.
func (s Source) of(cluster *v1beta1.Cluster, in Target, known proof) *profile {
	out := &profile{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name, Labels: map[string]string{}}}
	for key, value := range cluster.Labels {
		if in.Labels.Allows(key) {
			out.Labels[key] = value
		}
	}
	out.Labels[ManagerLabel] = Manager
	out.Labels[contract.NamespaceLabel(s.Registry)] = s.Namespace
	out.Spec = spec{DisplayName: cluster.Spec.DisplayName, ClusterManager: clusterManager{Name: Manager}}

	have := v1beta1.ClusterStatus{}
	if cluster.Status != nil {
		have = *cluster.Status
	}
	out.Status.Version.Kubernetes = have.Version.Kubernetes
	properties, left := propertiesOf(have.Properties, cluster.Spec.ClusterSet)
	out.Status.Properties = properties
	providers, access := providersOf(cluster, in, known)
	out.Status.AccessProviders = providers
	out.Status.Conditions = conditionsOf(cluster, have.Conditions, access, left, known)
	return out
}

// ours reports whether a profile belongs to this registry.
func (s Source) ours(p *profile) bool {
	return p.Spec.ClusterManager.Name == Manager && p.Labels[contract.NamespaceLabel(s.Registry)] == s.Namespace
}

// propertiesOf returns those that are reported of a cluster, and its set, by name; left are
// the names of those that a profile has no room for.
func propertiesOf(reported []v1beta1.Property, set string) (out []property, left []string) {
	out = []property{}
	for _, p := range reported {
		switch {
		case p.Name == SetProperty:
		case p.Name == "" || p.Value == "" || len(p.Name) > maxName || len([]rune(p.Value)) > maxValue:
			left = append(left, p.Name)
		default:
			out = append(out, property{Name: p.Name, Value: p.Value})
		}
	}
	if set != "" {
		out = append(out, property{Name: SetProperty, Value: set})
	}
	slices.SortFunc(out, func(a, b property) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(left)
	return out, left
}

// decode reads a profile.
func decode(object *unstructured.Unstructured) (*profile, error) {
	out := &profile{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
		return nil, fmt.Errorf("read ClusterProfile %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return out, nil
}

// sameMain reports whether a profile has the labels and the spec of another one.
func sameMain(want, have *profile) bool {
	for key, value := range want.Labels {
		if is, ok := have.Labels[key]; !ok || is != value {
			return false
		}
	}
	return want.Spec == have.Spec
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
