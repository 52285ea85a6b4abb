// Package validation says what a Cluster may be. Every fault is one sentence
// that names the field and the way out; the rules work on the hub and so hold
// through every version.
package validation

import (
	"net/netip"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
)

// Cluster returns the faults of a new cluster that came in a version, whose
// fields they name. What is wrong with both forms is told in that version's.
func Cluster(cluster *clusterregistry.Cluster, version string) field.ErrorList {
	if faults := outOfBounds(cluster, nil, version); len(faults) > 0 {
		return discreet(faults)
	}
	faults := apivalidation.ValidateObjectMeta(&cluster.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	faults = append(faults, reserved(cluster)...)
	return discreet(append(faults, spec(&cluster.Spec, nil, version)...))
}

// ClusterUpdate returns the faults of a change to a cluster's spec or metadata
// that came in a version. What the stored cluster has wrong, too, and in no lesser
// measure, is none.
func ClusterUpdate(cluster, old *clusterregistry.Cluster, version string) field.ErrorList {
	if equality.DeepEqual(cluster.Spec, old.Spec) {
		return metadataUpdate(cluster, old)
	}
	if faults := outOfBounds(cluster, old, version); len(faults) > 0 {
		return discreet(faults)
	}
	faults := append(changedMetadata(cluster, old), constants(&cluster.Spec, &old.Spec)...)
	return discreet(append(faults, spec(&cluster.Spec, &old.Spec, version)...))
}

// metadataUpdate returns the faults of a change to a cluster whose spec is the stored one,
// and so has no fault that counts.
func metadataUpdate(cluster, old *clusterregistry.Cluster) field.ErrorList {
	if faults := added(&cluster.ObjectMeta, &old.ObjectMeta, metadataBounds); len(faults) > 0 {
		return discreet(faults)
	}
	return discreet(changedMetadata(cluster, old))
}

// changedMetadata returns the faults of metadata that are within their bounds.
func changedMetadata(cluster, old *clusterregistry.Cluster) field.ErrorList {
	faults := apivalidation.ValidateObjectMetaUpdate(&cluster.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(faults, reserved(cluster)...)
}

// reserved returns a fault when a client sets what the server alone keeps.
func reserved(cluster *clusterregistry.Cluster) field.ErrorList {
	if _, ok := cluster.Annotations[clusterregistry.RemainderAnnotation]; !ok {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(clusterregistry.RemainderAnnotation)
	return field.ErrorList{field.Forbidden(path, "the server alone keeps this annotation, and shows it to nobody; remove it")}
}

// ClusterStatusUpdate returns the faults of a change to a cluster's status. What
// the stored status has wrong, too, and in no lesser measure, is none.
func ClusterStatusUpdate(cluster, old *clusterregistry.Cluster) field.ErrorList {
	if faults := added(cluster.Status, old.Status, statusBounds); len(faults) > 0 {
		return discreet(faults)
	}
	faults := apivalidation.ValidateObjectMetaUpdate(&cluster.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return discreet(append(faults, added(cluster.Status, old.Status, status)...))
}

// spec checks the rules of the form that a spec came in, and when that is right the other:
// v1beta1's has rules for what v1alpha1 doesn't show. What v1alpha1 shows of
// v1beta1's form isn't checked by rules for those who write v1alpha1.
func spec(spec, old *clusterregistry.ClusterSpec, version string) field.ErrorList {
	known := bundlesOf(old)
	if version == form.V1alpha1 {
		if faults := added(spec, old, known.plainSpec); len(faults) > 0 {
			return faults
		}
	}
	return added(spec, old, known.richSpec)
}

// plainSpec returns the faults of v1alpha1's form.
func (known *bundles) plainSpec(spec *clusterregistry.ClusterSpec) field.ErrorList {
	path := field.NewPath("spec")
	faults := serverEndpoints(&spec.KubernetesAPIEndpoints, known, path.Child("kubernetesApiEndpoints"))
	return append(faults, providers(spec.AuthInfo.Providers, path.Child("authInfo", "providers"))...)
}

// richSpec returns the faults of v1beta1's form.
func (known *bundles) richSpec(spec *clusterregistry.ClusterSpec) field.ErrorList {
	path := field.NewPath("spec")
	faults := identity(spec, path)
	faults = append(faults, endpoints(spec.Endpoints, known, path.Child("endpoints"))...)
	return append(faults, access(spec.Access, path.Child("access"))...)
}

func serverEndpoints(endpoints *clusterregistry.KubernetesAPIEndpoints, known *bundles, path *field.Path) field.ErrorList {
	list := path.Child("serverEndpoints")
	twins := form.Twins(endpoints.ServerEndpoints)
	// Two entries for one range would leave it to chance which address a
	// client takes. Entries for any client are tried in order, as ever.
	seen := map[netip.Prefix]bool{}
	var faults field.ErrorList
	for i, endpoint := range endpoints.ServerEndpoints {
		if twins[i] < 0 && endpoint.ClientCIDR != "" {
			faults = append(faults, clientCIDR(endpoint.ClientCIDR, seen, list.Index(i).Child("clientCIDR"), "must be empty (any client) or a range in CIDR notation, such as 10.0.0.0/8 or 2001:db8::/32")...)
		}
		at := list.Index(i).Child("serverAddress")
		if tooLong := length(at, endpoint.ServerAddress, MaxURL); len(tooLong) > 0 {
			faults = append(faults, tooLong...)
		} else {
			faults = append(faults, invalid(at, endpoint.ServerAddress, serverAddress(endpoint.ServerAddress))...)
		}
	}
	return append(faults, caBundles(map[*field.Path][]byte{path.Child("caBundle"): endpoints.CABundle}, known)...)
}

func providers(providers []clusterregistry.AuthProviderConfig, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	seen := map[string]bool{}
	for i, provider := range providers {
		at := path.Index(i)
		if provider.Name != "" && seen[provider.Name] {
			faults = append(faults, field.Duplicate(at.Child("name"), provider.Name))
		}
		seen[provider.Name] = true
		faults = append(faults, length(at.Child("name"), provider.Name, MaxName)...)
		faults = append(faults, length(at.Child("type", "name"), provider.Type.Name, MaxName)...)
		faults = append(faults, config(provider.Config, at.Child("config"))...)
	}
	return faults
}

// serverAddress returns what is wrong with an address, or "". Empty is legal:
// a cluster may be entered before it has an address.
func serverAddress(address string) string {
	switch {
	case address == "", isIP(address):
		return ""
	case !strings.Contains(address, "://") && credential(address) != "":
		return "must not be a credential, which it looks like: the registry holds pointers, never credentials"
	case strings.Contains(address, "://"):
		return httpsURL(address)
	}
	if fault := hostPort(address); fault != "" {
		return "must be a host name, host:port, an IP address, IP:port (IPv6 in brackets when a port follows) or an https URL without user, query and fragment: " + fault
	}
	return ""
}
