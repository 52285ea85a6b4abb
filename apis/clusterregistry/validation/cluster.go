// Package validation says what a Cluster may be. Every fault is one sentence
// that names the field and the way out; the rules work on the hub and so hold
// through every version.
package validation

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
)

// The limits of an object.
const (
	// MaxEndpoints bounds the addresses of a cluster.
	MaxEndpoints = 16
	// MaxClientCIDRs bounds the ranges of clients of one endpoint.
	MaxClientCIDRs = 64
	// MaxProviders bounds the ways to get credentials.
	MaxProviders = 16
	// MaxTaints bounds the taints of a cluster.
	MaxTaints = 32
	// MaxProperties and MaxReporters bound what controllers report.
	MaxProperties = 128
	MaxReporters  = 32
	// MaxDisplayName, MaxName, MaxID and MaxProperty bound texts, in bytes.
	MaxDisplayName = 256
	MaxName        = 253
	MaxID          = 127
	MaxProperty    = 4096
	// MaxCABundle bounds one CA bundle, in bytes of PEM.
	MaxCABundle = 64 << 10
	// MaxCABundles bounds the distinct CA bundles of an object together.
	MaxCABundles = 128 << 10
)

// Cluster returns the faults of a new cluster that came in a version, whose
// fields they name. What is wrong with both forms is told in that version's.
func Cluster(cluster *clusterregistry.Cluster, version string) field.ErrorList {
	faults := apivalidation.ValidateObjectMeta(&cluster.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	faults = append(faults, reserved(cluster)...)
	return append(faults, spec(&cluster.Spec, version)...)
}

// ClusterUpdate returns the faults of a change to a cluster's spec or metadata
// that came in a version. What the stored cluster has wrong, too, is none.
func ClusterUpdate(cluster, old *clusterregistry.Cluster, version string) field.ErrorList {
	faults := apivalidation.ValidateObjectMetaUpdate(&cluster.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	faults = append(faults, reserved(cluster)...)
	faults = append(faults, constants(&cluster.Spec, &old.Spec)...)
	return append(faults, added(spec(&cluster.Spec, version), func() field.ErrorList { return spec(&old.Spec, version) })...)
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
// the stored status has wrong, too, is none.
func ClusterStatusUpdate(cluster, old *clusterregistry.Cluster) field.ErrorList {
	faults := apivalidation.ValidateObjectMetaUpdate(&cluster.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(faults, added(status(cluster.Status), func() field.ErrorList { return status(old.Status) })...)
}

// added returns the faults of an object that its older state doesn't have.
func added(faults field.ErrorList, older func() field.ErrorList) field.ErrorList {
	if len(faults) == 0 {
		return nil
	}
	known := map[string]int{}
	for _, fault := range older() {
		known[place.ReplaceAllString(fault.Error(), "[]")]++
	}
	return slices.DeleteFunc(faults, func(fault *field.Error) bool {
		key := place.ReplaceAllString(fault.Error(), "[]")
		known[key]--
		return known[key] >= 0
	})
}

// place is where in a list something is, which may change.
var place = regexp.MustCompile(`\[\d+\]`)

// spec checks the form that a spec came in, and when that is right the other:
// v1beta1's has rules for what v1alpha1 doesn't show. What v1alpha1 shows of
// v1beta1's form isn't checked by rules for those who write v1alpha1.
func spec(spec *clusterregistry.ClusterSpec, version string) field.ErrorList {
	path := field.NewPath("spec")
	if version == form.V1alpha1 {
		faults := serverEndpoints(&spec.KubernetesAPIEndpoints, path.Child("kubernetesApiEndpoints"))
		faults = append(faults, providers(spec.AuthInfo.Providers, path.Child("authInfo", "providers"))...)
		if len(faults) > 0 {
			return faults
		}
	}
	faults := identity(spec, path)
	faults = append(faults, endpoints(spec.Endpoints, path.Child("endpoints"))...)
	return append(faults, access(spec.Access, path.Child("access"))...)
}

func serverEndpoints(endpoints *clusterregistry.KubernetesAPIEndpoints, path *field.Path) field.ErrorList {
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
