package clusterprofile

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

// The conditions of a profile. Those of the registry are shown as they are.
const (
	// Joined says whether the cluster manager has the cluster, as KEP-4322 defines it: it is
	// in the registry, unless a reporter says otherwise.
	Joined = "Joined"
	// AccessPublished says whether the profile has providers by which clients connect.
	AccessPublished = "AccessPublished"
	// PropertiesPublished is False where properties are left out, and absent otherwise.
	PropertiesPublished = "PropertiesPublished"
)

// The reasons of conditions that follow from whether an endpoint is verified.
const (
	reasonNotVerified     = "NotVerified"
	reasonEndpointChanged = "EndpointChanged"
)

// reasonShape is what a profile takes as the reason of a condition; maxReason and
// maxMessage are how long it and the message may be.
var reasonShape = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

const maxReason, maxMessage = 1024, 32768

// conditionsOf returns those of a profile, in a fixed order. What has no time of its own is as
// old as the entry: any other time would differ from one controller to the next.
func conditionsOf(cluster *v1beta1.Cluster, reported []metav1.Condition, access metav1.Condition, left []string, known proof) []metav1.Condition {
	healthy := shown(reported, metav1.Condition{
		Type: v1beta1.ConditionControlPlaneHealthy, Status: metav1.ConditionUnknown, Reason: "NotReported", Message: "No reporter of the registry says how the control plane is.",
	})
	if known.stale(meta.FindStatusCondition(reported, v1beta1.ConditionControlPlaneHealthy), cluster) {
		healthy = metav1.Condition{
			Type: healthy.Type, Status: metav1.ConditionUnknown, Reason: reasonEndpointChanged, Message: "The entry has changed since the control plane was reported as healthy: no one has reported of the endpoint that it has now.",
		}
	}
	joined := shown(reported, metav1.Condition{Type: Joined, Status: metav1.ConditionTrue, Reason: "Registered", Message: "The cluster is in the registry."})
	out := []metav1.Condition{healthy, joined, access}
	if len(left) > 0 {
		out = append(out, metav1.Condition{
			Type: PropertiesPublished, Status: metav1.ConditionFalse, Reason: "PropertiesLeftOut",
			Message: fmt.Sprintf("A ClusterProfile has no properties with a name of more than %d or a value of more than %d characters, or with none: %s.", maxName, maxValue, format.List(left)),
		})
	}
	for i := range out {
		if out[i].LastTransitionTime.IsZero() {
			out[i].LastTransitionTime = cluster.CreationTimestamp
		}
	}
	return out
}

// shown returns a condition as it is reported, in the form that a profile takes; fallback
// where none is.
func shown(reported []metav1.Condition, fallback metav1.Condition) metav1.Condition {
	c := meta.FindStatusCondition(reported, fallback.Type)
	if c == nil {
		return fallback
	}
	out := metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime}
	if len(out.Reason) > maxReason || !reasonShape.MatchString(out.Reason) {
		out.Reason = "Reported"
	}
	if letters := []rune(out.Message); len(letters) > maxMessage {
		out.Message = string(letters[:maxMessage])
	}
	switch out.Status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		out.Status = metav1.ConditionUnknown
	}
	return out
}
