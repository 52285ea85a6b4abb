// Package validation says what a Cluster may be. Every fault is one sentence
// that names the field and the way out; the rules work on the hub and so hold
// through every version.
package validation

import (
	"net/netip"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// The limits of an object.
const (
	// MaxEndpoints bounds the addresses of a cluster.
	MaxEndpoints = 16
	// MaxProviders bounds the ways to get credentials.
	MaxProviders = 16
	// MaxCABundle bounds one CA bundle, in bytes of PEM.
	MaxCABundle = 64 << 10
	// MaxCABundles bounds all CA bundles of an object together.
	MaxCABundles = 128 << 10
)

// Cluster returns the faults of a new cluster.
func Cluster(cluster *clusterregistry.Cluster) field.ErrorList {
	faults := apivalidation.ValidateObjectMeta(&cluster.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	faults = append(faults, reserved(cluster)...)
	return append(faults, spec(&cluster.Spec, field.NewPath("spec"))...)
}

// ClusterUpdate returns the faults of a change to a cluster's spec or metadata.
func ClusterUpdate(cluster, old *clusterregistry.Cluster) field.ErrorList {
	faults := apivalidation.ValidateObjectMetaUpdate(&cluster.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	faults = append(faults, reserved(cluster)...)
	return append(faults, spec(&cluster.Spec, field.NewPath("spec"))...)
}

// reserved returns a fault when a client sets what the server alone keeps.
func reserved(cluster *clusterregistry.Cluster) field.ErrorList {
	if _, ok := cluster.Annotations[clusterregistry.RemainderAnnotation]; !ok {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(clusterregistry.RemainderAnnotation)
	return field.ErrorList{field.Forbidden(path, "the server alone keeps this annotation, and shows it to nobody; remove it")}
}

// ClusterStatusUpdate returns the faults of a change to a cluster's status.
func ClusterStatusUpdate(cluster, old *clusterregistry.Cluster) field.ErrorList {
	faults := apivalidation.ValidateObjectMetaUpdate(&cluster.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if cluster.Status != nil {
		faults = append(faults, metav1validation.ValidateConditions(cluster.Status.Conditions, field.NewPath("status", "conditions"))...)
	}
	return faults
}

func spec(spec *clusterregistry.ClusterSpec, path *field.Path) field.ErrorList {
	faults := endpoints(&spec.KubernetesAPIEndpoints, path.Child("kubernetesApiEndpoints"))
	return append(faults, providers(spec.AuthInfo.Providers, path.Child("authInfo", "providers"))...)
}

func endpoints(endpoints *clusterregistry.KubernetesAPIEndpoints, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	list := path.Child("serverEndpoints")
	if n := len(endpoints.ServerEndpoints); n > MaxEndpoints {
		faults = append(faults, field.TooMany(list, n, MaxEndpoints))
	}
	// Two entries for one range would leave it to chance which address a
	// client takes. Entries for any client are tried in order, as ever.
	seen := map[netip.Prefix]bool{}
	for i, endpoint := range endpoints.ServerEndpoints {
		cidrPath, addressPath := list.Index(i).Child("clientCIDR"), list.Index(i).Child("serverAddress")
		if endpoint.ClientCIDR != "" {
			prefix, err := netip.ParsePrefix(endpoint.ClientCIDR)
			switch {
			case err != nil:
				faults = append(faults, field.Invalid(cidrPath, endpoint.ClientCIDR, "must be empty (any client) or a range in CIDR notation, such as 10.0.0.0/8 or 2001:db8::/32"))
			case seen[prefix.Masked()]:
				faults = append(faults, field.Duplicate(cidrPath, endpoint.ClientCIDR))
			default:
				seen[prefix.Masked()] = true
			}
		}
		if fault := serverAddress(endpoint.ServerAddress); fault != "" {
			faults = append(faults, field.Invalid(addressPath, endpoint.ServerAddress, fault))
		}
	}
	return append(faults, caBundles(map[*field.Path][]byte{path.Child("caBundle"): endpoints.CABundle}, path)...)
}

func providers(providers []clusterregistry.AuthProviderConfig, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	if n := len(providers); n > MaxProviders {
		faults = append(faults, field.TooMany(path, n, MaxProviders))
	}
	seen := map[string]bool{}
	for i, provider := range providers {
		if provider.Name != "" && seen[provider.Name] {
			faults = append(faults, field.Duplicate(path.Index(i).Child("name"), provider.Name))
		}
		seen[provider.Name] = true
		faults = append(faults, config(provider.Config, path.Index(i).Child("config"))...)
	}
	return faults
}

// serverAddress returns what is wrong with an address, or "". Empty is legal:
// a cluster may be entered before it has an address.
func serverAddress(address string) string {
	switch {
	case address == "", isIP(address):
		return ""
	case strings.Contains(address, "://"):
		return httpsURL(address)
	}
	if fault := hostPort(address); fault != "" {
		return "must be a host name, host:port, an IP address, IP:port (IPv6 in brackets when a port follows) or an https URL without user, query and fragment: " + fault
	}
	return ""
}
