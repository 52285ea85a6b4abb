package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// ClusterHeartbeat returns the faults of a new heartbeat.
func ClusterHeartbeat(beat *clusterregistry.ClusterHeartbeat) field.ErrorList {
	if faults := heartbeatBounds(&beat.ObjectMeta); len(faults) > 0 {
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
	if faults := added(&beat.ObjectMeta, &old.ObjectMeta, heartbeatBounds); len(faults) > 0 {
		return discreet(faults)
	}
	return discreet(apivalidation.ValidateObjectMetaUpdate(&beat.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata")))
}

// heartbeatBounds returns the faults of metadata that would let a reporter store more than a
// sign of life, or keep it after its cluster: nothing that could wait for that learns of it.
func heartbeatBounds(meta *metav1.ObjectMeta) field.ErrorList {
	path, n := field.NewPath("metadata"), len(meta.GenerateName)
	for _, texts := range []map[string]string{meta.Labels, meta.Annotations} {
		for key, value := range texts {
			n += len(key) + len(value)
		}
	}
	for i := range meta.ManagedFields {
		n += meta.ManagedFields[i].Size()
	}
	faults := count(path.Child("finalizers"), len(meta.Finalizers), 0)
	faults = append(faults, count(path.Child("ownerReferences"), len(meta.OwnerReferences), 0)...)
	return append(faults, size(path, n, MaxHeartbeat, fmt.Sprintf("must have at most %d bytes of generateName, labels, annotations and managedFields in all", MaxHeartbeat))...)
}
