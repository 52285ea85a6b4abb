package clusterapi

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	apply "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
)

// The reasons of the condition Joined.
const (
	// ReasonImported is that of True.
	ReasonImported = "Imported"
	// ReasonDeleting is that of True, too: Cluster API is deleting the cluster.
	ReasonDeleting = "Deleting"
	// ReasonDeleted and ReasonUnselected are those of False.
	ReasonDeleted    = "Deleted"
	ReasonUnselected = "Unselected"
	// The others are those of Unknown: the entry is kept.
	ReasonMoved             = contract.KeptMoved
	ReasonClusterAPIRemoved = "ClusterAPIRemoved"
	ReasonNamespaceReplaced = "NamespaceReplaced"
	ReasonKept              = "Kept"
	ReasonUndecodable       = "Undecodable"
)

// maxMessage bounds what is taken over of a condition's message, in bytes.
const maxMessage = 1024

// folded are the conditions of Cluster API that the reporter's entry has. Others are left
// out: whoever may write the status of a Cluster would report what other parts of the
// registry rely on, such as IdentityVerified.
var folded = []string{
	clusterv1.ClusterAvailableCondition, clusterv1.ClusterTopologyReconciledCondition, clusterv1.ClusterInfrastructureReadyCondition,
	clusterv1.ClusterControlPlaneInitializedCondition, clusterv1.ClusterControlPlaneAvailableCondition, clusterv1.ClusterWorkersAvailableCondition,
	clusterv1.ClusterControlPlaneMachinesReadyCondition, clusterv1.ClusterWorkerMachinesReadyCondition,
	clusterv1.ClusterControlPlaneMachinesUpToDateCondition, clusterv1.ClusterWorkerMachinesUpToDateCondition,
	clusterv1.ClusterRemoteConnectionProbeCondition, clusterv1.ClusterRollingOutCondition, clusterv1.ClusterScalingUpCondition,
	clusterv1.ClusterScalingDownCondition, clusterv1.ClusterRemediatingCondition, clusterv1.ClusterDeletingCondition, clusterv1.PausedCondition,
}

var versionPath = fieldpath.MakePathOrDie("status", "version", "kubernetes")

// report is what is said of a cluster.
type report struct {
	joined metav1.Condition
	// others are conditions of Cluster API, with the times that it gives.
	others []metav1.Condition
	// version is empty where nothing is said of it.
	version string
}

func joined(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: v1beta1.ConditionJoined, Status: status, Reason: reason, Message: message}
}

// reportOf returns what Cluster API says of a cluster, for its entry.
func reportOf(source *clusterv1.Cluster, entry *v1beta1.Cluster) report {
	out := report{joined: joined(metav1.ConditionTrue, ReasonImported, "")}
	if source.DeletionTimestamp != nil {
		out.joined = joined(metav1.ConditionTrue, ReasonDeleting, "Cluster API is deleting the cluster.")
	}
	for _, kind := range folded {
		if c := meta.FindStatusCondition(source.Status.Conditions, kind); c != nil {
			out.others = append(out.others, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: short(c.Message), LastTransitionTime: c.LastTransitionTime})
		}
	}
	if !versionIsOthers(entry) {
		out.version = versionOf(source)
	}
	return out
}

// gone returns what is said of an entry whose Cluster is not there any more, or is not
// selected.
func gone(entry *v1beta1.Cluster, is metav1.Condition) report {
	out := report{joined: is}
	if !versionIsOthers(entry) && entry.Status != nil {
		out.version = entry.Status.Version.Kubernetes
	}
	return out
}

func short(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + " ..."
}

// versionOf is the lowest version that the control plane runs; while that isn't known, the
// one that it is to run.
func versionOf(source *clusterv1.Cluster) string {
	var lowest *version.Version
	text := source.Spec.Topology.Version
	if source.Status.ControlPlane != nil {
		for _, v := range source.Status.ControlPlane.Versions {
			if parsed, err := version.ParseSemantic(v.Version); err == nil && (lowest == nil || parsed.LessThan(lowest)) {
				lowest, text = parsed, v.Version
			}
		}
	}
	if len(text) > 253 { // the registry takes no more
		return ""
	}
	return text
}

// versionIsOthers reports whether another one has said which version the cluster runs:
// whoever has asked the cluster knows better.
func versionIsOthers(entry *v1beta1.Cluster) bool {
	return fieldsOf(entry, func(m metav1.ManagedFieldsEntry) bool { return m.Manager != Reporter }).Has(versionPath)
}

// statusOf is the status of an entry, an empty one where it has none.
func statusOf(entry *v1beta1.Cluster) v1beta1.ClusterStatus {
	if entry.Status == nil {
		return v1beta1.ClusterStatus{}
	}
	return *entry.Status
}

// ownConditions are those of this package's entry in a status.
func ownConditions(entry *v1beta1.Cluster) []metav1.Condition {
	reporters := statusOf(entry).Reporters
	if i := slices.IndexFunc(reporters, func(r v1beta1.Reporter) bool { return r.Name == Reporter }); i >= 0 {
		return reporters[i].Conditions
	}
	return nil
}

// said reports whether an entry says all of that already.
func (r report) said(entry *v1beta1.Cluster) bool {
	own := ownConditions(entry)
	if len(own) != len(r.others)+1 || !equal(meta.FindStatusCondition(own, r.joined.Type), r.joined) ||
		!equal(meta.FindStatusCondition(statusOf(entry).Conditions, r.joined.Type), r.joined) {
		return false
	}
	for _, c := range r.others {
		have := meta.FindStatusCondition(own, c.Type)
		if !equal(have, c) || !have.LastTransitionTime.Equal(&c.LastTransitionTime) {
			return false
		}
	}
	return r.version == "" || r.version == statusOf(entry).Version.Kubernetes
}

func equal(have *metav1.Condition, want metav1.Condition) bool {
	return have != nil && have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message
}

// write writes the report to the status of an entry, if it isn't there yet. It has no
// lastSeen: what Cluster API stores is no sign of life of the cluster.
func (c *Controller) write(ctx context.Context, entry *v1beta1.Cluster, r report) (*v1beta1.Cluster, error) {
	if r.said(entry) {
		return entry, nil
	}
	since := metav1.NewTime(c.Clock.Now())
	condition := func(of metav1.Condition) *metav1ac.ConditionApplyConfiguration {
		return metav1ac.Condition().WithType(of.Type).WithStatus(of.Status).WithReason(of.Reason).WithMessage(of.Message).WithLastTransitionTime(of.LastTransitionTime)
	}
	// The time of the own entry is the one that counts for the grace period.
	r.joined.LastTransitionTime = since
	if before := meta.FindStatusCondition(ownConditions(entry), r.joined.Type); before != nil && before.Status == r.joined.Status {
		r.joined.LastTransitionTime = before.LastTransitionTime
	}
	join := condition(r.joined).WithObservedGeneration(entry.Generation)
	reporter := apply.Reporter().WithName(Reporter).WithConditions(join)
	for _, other := range r.others {
		reporter.WithConditions(condition(other))
	}
	status := apply.ClusterStatus().WithConditions(join).WithReporters(reporter)
	if r.version != "" {
		status.WithVersion(apply.ClusterVersion().WithKubernetes(r.version))
	}
	out, err := c.Clusters.ApplyStatus(ctx, apply.Cluster(entry.Name).WithUID(entry.UID).WithStatus(status), metav1.ApplyOptions{FieldManager: Reporter, Force: true})
	if err != nil {
		return nil, fmt.Errorf("report of cluster %q: %w", entry.Name, err)
	}
	return out, nil
}
