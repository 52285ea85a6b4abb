package validation

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
)

// Bounds come before rules. How long each list is and how much text there is in all can
// be counted at no cost; the rules look at every entry, and so at no object that is
// larger than these bounds or the stored one.

// outOfBounds returns the faults of a cluster that is larger than the rules look at, in
// the fields of a version. The older state is nil for a new cluster.
func outOfBounds(cluster, old *clusterregistry.Cluster, version string) field.ErrorList {
	var meta *metav1.ObjectMeta
	var spec *clusterregistry.ClusterSpec
	if old != nil {
		meta, spec = &old.ObjectMeta, &old.Spec
	}
	faults := added(&cluster.ObjectMeta, meta, metadataBounds)
	if version == form.V1alpha1 {
		if plain := added(&cluster.Spec, spec, plainBounds); len(plain) > 0 {
			return append(faults, plain...)
		}
	}
	return append(faults, added(&cluster.Spec, spec, richBounds)...)
}

// metadataBounds returns a fault for metadata that are too large.
func metadataBounds(meta *metav1.ObjectMeta) field.ErrorList {
	path, n := field.NewPath("metadata"), len(meta.GenerateName) // which no one validates in an update
	for key, value := range meta.Labels {
		n += len(key) + len(value)
	}
	for _, finalizer := range meta.Finalizers {
		n += len(finalizer)
	}
	for _, owner := range meta.OwnerReferences {
		n += len(owner.APIVersion) + len(owner.Kind) + len(owner.Name) + len(owner.UID)
	}
	faults := count(path.Child("finalizers"), len(meta.Finalizers), MaxItems)
	faults = append(faults, count(path.Child("ownerReferences"), len(meta.OwnerReferences), MaxItems)...)
	return append(faults, size(path, n, MaxMetadata, fmt.Sprintf("must have at most %d bytes of generateName, labels, finalizers and ownerReferences in all", MaxMetadata))...)
}

// plainBounds returns the faults of v1alpha1's form that is too large.
func plainBounds(spec *clusterregistry.ClusterSpec) field.ErrorList {
	endpoints, path := spec.KubernetesAPIEndpoints, field.NewPath("spec", "kubernetesApiEndpoints")
	pairs := 0
	for _, twin := range form.Twins(endpoints.ServerEndpoints) {
		if twin >= 0 {
			pairs++
		}
	}
	faults := count(path.Child("serverEndpoints"), len(endpoints.ServerEndpoints)-pairs/2, MaxEndpoints)
	faults = append(faults, size(path, len(endpoints.CABundle), MaxCABundles, bundlesFault)...)
	providers := field.NewPath("spec", "authInfo", "providers")
	faults = append(faults, count(providers, len(spec.AuthInfo.Providers), MaxProviders)...)
	for i, provider := range spec.AuthInfo.Providers {
		faults = append(faults, count(providers.Index(i).Child("config"), len(provider.Config), MaxItems)...)
	}
	return faults
}

// richBounds returns the faults of v1beta1's form that is too large.
func richBounds(spec *clusterregistry.ClusterSpec) field.ErrorList {
	path := field.NewPath("spec")
	faults := count(path.Child("taints"), len(spec.Taints), MaxTaints)
	endpoints := path.Child("endpoints")
	faults = append(faults, count(endpoints, len(spec.Endpoints), MaxEndpoints)...)
	bundles, distinct := 0, map[string]bool{}
	for i, endpoint := range spec.Endpoints {
		faults = append(faults, count(endpoints.Index(i).Child("clientCIDRs"), len(endpoint.ClientCIDRs), MaxClientCIDRs)...)
		if !distinct[string(endpoint.CABundle)] {
			distinct[string(endpoint.CABundle)] = true
			bundles += len(endpoint.CABundle)
		}
	}
	faults = append(faults, size(endpoints, bundles, MaxCABundles, bundlesFault)...)
	access := path.Child("access")
	faults = append(faults, count(access, len(spec.Access), MaxProviders)...)
	faults = append(faults, size(access, textOf(spec.Access), MaxAccess, fmt.Sprintf("must have at most %d bytes of text in all", MaxAccess))...)
	for i, way := range spec.Access {
		at := access.Index(i)
		if way.Exec != nil {
			faults = append(faults, count(at.Child("exec", "args"), len(way.Exec.Args), MaxItems)...)
			faults = append(faults, count(at.Child("exec", "env"), len(way.Exec.Env), MaxItems)...)
		}
		if way.OIDC != nil {
			faults = append(faults, count(at.Child("oidc", "scopes"), len(way.OIDC.Scopes), MaxItems)...)
		}
		if way.Provider != nil {
			faults = append(faults, count(at.Child("provider", "config"), len(way.Provider.Config), MaxItems)...)
		}
	}
	return faults
}

var bundlesFault = fmt.Sprintf("must have at most %d bytes of CA bundles in all", MaxCABundles)

// statusBounds returns the faults of a status that is too large; nil has none.
func statusBounds(status *clusterregistry.ClusterStatus) field.ErrorList {
	if status == nil {
		return nil
	}
	path := field.NewPath("status")
	faults := size(path, textOfStatus(status), MaxStatus, fmt.Sprintf("must have at most %d bytes of text in all", MaxStatus))
	faults = append(faults, count(path.Child("conditions"), len(status.Conditions), MaxItems)...)
	faults = append(faults, count(path.Child("properties"), len(status.Properties), MaxProperties)...)
	faults = append(faults, count(path.Child("capacity"), len(status.Capacity), MaxItems)...)
	faults = append(faults, count(path.Child("allocatable"), len(status.Allocatable), MaxItems)...)
	faults = append(faults, count(path.Child("reporters"), len(status.Reporters), MaxReporters)...)
	for i, reporter := range status.Reporters {
		faults = append(faults, count(path.Child("reporters").Index(i).Child("conditions"), len(reporter.Conditions), MaxItems)...)
	}
	return faults
}

// textOf counts the bytes of text of all ways.
func textOf(access []clusterregistry.Access) int {
	n := 0
	add := func(texts ...string) {
		for _, text := range texts {
			n += len(text)
		}
	}
	for _, way := range access {
		add(way.Name)
		if exec := way.Exec; exec != nil {
			add(exec.APIVersion, exec.Command, exec.InstallHint)
			add(exec.Args...)
			for _, variable := range exec.Env {
				add(variable.Name, variable.Value)
			}
		}
		if oidc := way.OIDC; oidc != nil {
			add(oidc.IssuerURL, oidc.ClientID)
			add(oidc.Scopes...)
		}
		if way.Provider != nil {
			for key, value := range way.Provider.Config {
				add(key, value)
			}
		}
	}
	return n
}

// textOfStatus counts the bytes of text of a status.
func textOfStatus(status *clusterregistry.ClusterStatus) int {
	n := 0
	add := func(conditions []metav1.Condition) {
		for _, condition := range conditions {
			n += len(condition.Type) + len(condition.Reason) + len(condition.Message)
		}
	}
	add(status.Conditions)
	for _, reporter := range status.Reporters {
		n += len(reporter.Name)
		add(reporter.Conditions)
	}
	for _, property := range status.Properties {
		n += len(property.Name) + len(property.Value)
	}
	return n
}
