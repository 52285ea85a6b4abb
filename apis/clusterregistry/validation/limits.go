package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The limits of an object. Together they keep it well below what etcd takes, so
// that what is too large is refused here, with a sentence that names the field.
const (
	// MaxEndpoints bounds the addresses of a cluster.
	MaxEndpoints = 16
	// MaxClientCIDRs bounds the ranges of clients of one endpoint.
	MaxClientCIDRs = 64
	// MaxProviders bounds the ways to get credentials.
	MaxProviders = 16
	// MaxItems bounds the arguments, variables, scopes and settings of one way to
	// get credentials, and the conditions and resources of a status.
	MaxItems = 64
	// MaxTaints bounds the taints of a cluster.
	MaxTaints = 32
	// MaxProperties and MaxReporters bound what controllers report.
	MaxProperties = 128
	MaxReporters  = 32
	// The others bound texts, in bytes.
	MaxDisplayName = 256
	MaxName        = 253
	MaxID          = 127
	MaxURL         = 2048
	MaxText        = 4096
	// MaxData bounds what a program or plugin is given to get credentials: an argument,
	// a variable or a setting. One may be a whole CA bundle in base64.
	MaxData = 88 << 10
	// MaxAccess and MaxStatus bound all ways to get credentials and all of a status,
	// in bytes of text.
	MaxAccess = 128 << 10
	MaxStatus = 256 << 10
	// MaxMetadata bounds labels, finalizers and owner references together; Kubernetes
	// itself bounds annotations.
	MaxMetadata = 64 << 10
	// MaxHeartbeat bounds labels, annotations and managed fields of a heartbeat together, and
	// MaxReporters also the heartbeats of a cluster.
	MaxHeartbeat = 4 << 10
	// MaxCABundle bounds one CA bundle, in bytes of PEM.
	MaxCABundle = 64 << 10
	// MaxCABundles bounds the distinct CA bundles of an object together.
	MaxCABundles = 128 << 10
)

// count returns a fault for a list that is too long.
func count(path *field.Path, n, most int) field.ErrorList {
	if n <= most {
		return nil
	}
	return field.ErrorList{field.TooMany(path, n, most)}
}

// length returns a fault for a text that is too long, in bytes.
func length(path *field.Path, value string, most int) field.ErrorList {
	return size(path, len(value), most, fmt.Sprintf("may not be more than %d bytes", most))
}

// size returns a fault for what is too large. The fault carries the size, which
// its text doesn't have.
func size(path *field.Path, n, most int, fault string) field.ErrorList {
	if n <= most {
		return nil
	}
	return field.ErrorList{{Type: field.ErrorTypeTooLong, Field: path.String(), BadValue: n, Detail: fault}}
}
