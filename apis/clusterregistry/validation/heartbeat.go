package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// ClusterHeartbeat returns the faults of a new heartbeat.
func ClusterHeartbeat(beat *clusterregistry.ClusterHeartbeat) field.ErrorList {
	if faults := metadataBounds(&beat.ObjectMeta); len(faults) > 0 {
		return discreet(faults)
	}
	path := field.NewPath("metadata")
	faults := apivalidation.ValidateObjectMeta(&beat.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, path)
	if cluster, _ := clusterregistry.HeartbeatOf(beat.Name); cluster == "" || cluster != beat.ClusterName {
		faults = append(faults, field.Invalid(path.Child("name"), beat.Name, "must be the name of a cluster, a dot and the name of the reporter, such as east.agent, and can't be generated"))
	}
	return discreet(faults)
}

// ClusterHeartbeatUpdate returns the faults of a change to a heartbeat. What the stored
// heartbeat has wrong, too, and in no lesser measure, is none.
func ClusterHeartbeatUpdate(beat, old *clusterregistry.ClusterHeartbeat) field.ErrorList {
	if faults := added(&beat.ObjectMeta, &old.ObjectMeta, metadataBounds); len(faults) > 0 {
		return discreet(faults)
	}
	return discreet(apivalidation.ValidateObjectMetaUpdate(&beat.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata")))
}
