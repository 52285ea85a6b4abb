package status

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
)

// Registry is a ClusterRegistry.
type Registry struct {
	Namespace    string        `json:"namespace"`
	Name         string        `json:"name"`
	Mode         string        `json:"mode"`
	Version      string        `json:"version"`
	Desired      string        `json:"desired"`
	Available    string        `json:"available"`
	Ready        string        `json:"ready"`
	Etcd         string        `json:"etcd"`
	Operation    string        `json:"operation,omitempty"`
	Certificates []Certificate `json:"certificates,omitempty"`
	Members      []Member      `json:"members,omitempty"`
}

// Certificate is one of a registry's.
type Certificate struct {
	Name     string       `json:"name"`
	NotAfter *metav1.Time `json:"notAfter,omitempty"`
	// DaysLeft are whole days until it expires, negative afterwards.
	DaysLeft *int         `json:"daysLeft,omitempty"`
	Renewal  *metav1.Time `json:"renewalTime,omitempty"`
}

// Member is an etcd member.
type Member struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Version string `json:"version,omitempty"`
}

// addRegistry adds a ClusterRegistry with what of it needs attention.
func (r *Report) addRegistry(creg *operatorv1alpha1.ClusterRegistry) {
	status := &creg.Status
	out := Registry{
		Namespace: creg.Namespace, Name: creg.Name, Mode: string(creg.Spec.Mode), Version: status.Version, Desired: string(creg.Spec.Version),
		Available: conditionStatus(status.Conditions, operatorv1alpha1.ConditionAvailable), Ready: conditionStatus(status.Conditions, operatorv1alpha1.ConditionReady), Etcd: status.Etcd.Ready,
	}
	object := "registry " + creg.Namespace + "/" + creg.Name
	describe := fmt.Sprintf("kubectl -n %s describe creg %s", creg.Namespace, creg.Name)
	if operation := status.Operation; operation != nil {
		out.Operation = strings.TrimSpace(fmt.Sprintf("%s %s -> %s: %s", operation.Type, operation.From, operation.To, operation.Progress))
		if operation.From == "" {
			out.Operation = strings.TrimSpace(fmt.Sprintf("%s %s: %s", operation.Type, operation.To, operation.Progress))
		}
		if operation.Phase == operatorv1alpha1.PhaseRollback {
			r.problem(Error, object, "kubectl registry upgrade plan "+creg.Name+" -n "+creg.Namespace, "the upgrade to %s is rolled back: %s", operation.To, operation.Message)
		}
	}
	if recovery := status.Recovery; recovery != nil && recovery.Phase != "" && out.Operation == "" {
		out.Operation = "Recovery: " + string(recovery.Phase)
	}
	switch {
	case creg.DeletionTimestamp != nil:
		r.problem(Warning, object, describe, "it is being deleted")
	case len(status.Conditions) == 0:
		r.problem(Error, object, "kubectl -n clusterregistry-system get pods", "the operator has not reported of it: it is not running, or doesn't watch this namespace")
	case out.Available != string(metav1.ConditionTrue) || out.Ready != string(metav1.ConditionTrue):
		r.conditions(creg, object, describe, out)
	}
	if Unprobed(creg) {
		r.unprobed = true
		r.note(object + " has no controller that leads (LeaderLost), and nothing probes its clusters: how they are is taken for unknown")
	}
	if creg.Spec.Paused {
		r.note(object + " is paused: the operator changes nothing")
	}
	for _, member := range status.Etcd.Members {
		out.Members = append(out.Members, Member{member.Name, member.Ready, member.Version})
	}
	for _, certificate := range status.Certificates {
		out.Certificates = append(out.Certificates, r.certificate(object, creg.Namespace, certificate))
	}
	r.Registries = append(r.Registries, out)
}

// Unprobed reports whether a ClusterRegistry says that the controller which is to probe the
// clusters in this context's registry is dead.
func Unprobed(creg *operatorv1alpha1.ClusterRegistry) bool {
	if creg.Spec.Mode != operatorv1alpha1.ModeAggregated || creg.Spec.Controllers == nil || creg.Spec.Controllers.Health == nil {
		return false
	}
	is := meta.FindStatusCondition(creg.Status.Conditions, operatorv1alpha1.ConditionControllerReady)
	return is != nil && is.Status != metav1.ConditionTrue && is.Reason == operatorv1alpha1.ReasonLeaderLost
}

// conditions adds why a registry is not available or not ready: the first part that
// is not, and else what the summary says.
func (r *Report) conditions(creg *operatorv1alpha1.ClusterRegistry, object, describe string, registry Registry) {
	conditions := creg.Status.Conditions
	prefix, severity := "not ready", Error
	if registry.Available != string(metav1.ConditionTrue) {
		prefix, severity = "NOT AVAILABLE", Critical
		if registry.Available == string(metav1.ConditionUnknown) {
			prefix, severity = "perhaps not available", Error
		}
	}
	cause := meta.FindStatusCondition(conditions, operatorv1alpha1.ConditionReady)
	for _, part := range Parts {
		if found := meta.FindStatusCondition(conditions, part); found != nil && found.Status != metav1.ConditionTrue {
			cause = found
			break
		}
	}
	if cause == nil || cause.Status == metav1.ConditionTrue {
		cause = meta.FindStatusCondition(conditions, operatorv1alpha1.ConditionAvailable)
	}
	if cause == nil {
		r.problem(severity, object, describe, "%s: the operator has not said why yet", prefix)
		return
	}
	if severity == Error {
		severity = SeverityOf(cause.Reason)
	}
	if cause.Reason == operatorv1alpha1.ReasonRecovering {
		prefix += " while etcd is recovered from a lost quorum"
	}
	r.problem(severity, object, Next(creg, cause.Reason), "%s: %s: %s", prefix, cause.Reason, command.Plain(cause.Message))
}

// Next says what shows more of a condition of a ClusterRegistry that is not true for a reason,
// or what to do about it.
func Next(creg *operatorv1alpha1.ClusterRegistry, reason string) string {
	shows := fmt.Sprintf("kubectl -n %s describe creg %s", creg.Namespace, creg.Name)
	if slices.Contains([]string{operatorv1alpha1.ReasonQuorumLost, operatorv1alpha1.ReasonRecovering, operatorv1alpha1.ReasonWentBack}, reason) {
		shows = fmt.Sprintf("kubectl registry recover plan %s -n %s", creg.Name, creg.Namespace)
	}
	return shows + "; docs/how-to/troubleshooting.md, " + reason
}

// late is how long after its time a renewal may take.
const late = 24 * time.Hour

// certificate returns a certificate, and adds it to the problems when it has expired or
// should have been renewed.
func (r *Report) certificate(object, namespace string, from operatorv1alpha1.CertificateStatus) Certificate {
	out := Certificate{Name: from.Name, NotAfter: from.NotAfter, Renewal: from.RenewalTime}
	if from.NotAfter == nil {
		return out
	}
	days := int(math.Floor(from.NotAfter.Sub(r.now).Hours() / 24))
	out.DaysLeft = &days
	next := fmt.Sprintf("kubectl -n %s describe certificate %s", namespace, from.Name)
	switch {
	case !from.NotAfter.After(r.now):
		r.problem(Error, object, next, "certificate %s has expired on %s", from.Name, from.NotAfter.UTC().Format(time.DateTime))
	case from.RenewalTime != nil && r.now.Sub(from.RenewalTime.Time) > late:
		r.problem(Warning, object, next, "certificate %s should have been renewed on %s, and expires in %d days", from.Name, from.RenewalTime.UTC().Format(time.DateOnly), days)
	}
	return out
}

// conditionStatus returns a condition's status; one that is not set is Unknown.
func conditionStatus(conditions []metav1.Condition, kind string) string {
	if found := meta.FindStatusCondition(conditions, kind); found != nil {
		return string(found.Status)
	}
	return string(metav1.ConditionUnknown)
}
