package status

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
)

// Report is what status shows.
type Report struct {
	// Verdict is the whole in a sentence.
	Verdict string `json:"verdict"`
	// Problems are what needs attention, registries first.
	Problems []Problem `json:"problems"`
	// Registries are the ClusterRegistries that were asked for.
	Registries []Registry `json:"registries"`
	// Clusters counts the clusters in the registry, nil when they are not known.
	Clusters *Count `json:"clusters,omitempty"`
	// NotWell are the clusters that are not well.
	NotWell []Cluster `json:"notWell,omitempty"`
	// Notes say what could not be asked, and why that may be right.
	Notes []string `json:"notes,omitempty"`

	now time.Time
	// registries and clusters are the resource versions of what was read.
	registries, clusters string
}

// Severity says how bad a problem is.
type Severity string

const (
	// Critical means that clients are not served, the host cluster suffers, or data is at stake.
	Critical Severity = "critical"
	// Error means that something is not as it should be.
	Error Severity = "error"
	// Warning means that nothing is broken yet, or it may be wanted.
	Warning Severity = "warning"
)

// Problem is something that needs attention.
type Problem struct {
	Severity Severity `json:"severity"`
	// Object is where it is.
	Object  string `json:"object"`
	Message string `json:"message"`
	// Next is what to do.
	Next string `json:"next"`
}

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

// Count counts clusters by their condition Available.
type Count struct {
	Total       int `json:"total"`
	Available   int `json:"available"`
	Unavailable int `json:"unavailable"`
	Unknown     int `json:"unknown"`
	// Unreported are clusters that no one reports of.
	Unreported int `json:"unreported"`
}

// Cluster is a cluster that is not well.
type Cluster struct {
	Name      string `json:"name"`
	Available string `json:"available"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
}

func (r *Report) note(text string) { r.Notes = append(r.Notes, text) }

func (r *Report) problem(severity Severity, object, next, format string, args ...any) {
	r.Problems = append(r.Problems, Problem{Severity: severity, Object: object, Message: fmt.Sprintf(format, args...), Next: next})
}

// Problems returns what of a ClusterRegistry needs attention, as it says itself.
func Problems(creg *operatorv1alpha1.ClusterRegistry, now time.Time) []Problem {
	r := &Report{now: now}
	r.addRegistry(creg)
	return r.Problems
}

// grave are the reasons that are critical although clients may still be served: data is
// at stake, nothing can be written, or the host cluster suffers.
var grave = []string{
	operatorv1alpha1.ReasonDataLost, operatorv1alpha1.ReasonIdentityMismatch, operatorv1alpha1.ReasonNoSpace,
	operatorv1alpha1.ReasonCorrupt, operatorv1alpha1.ReasonBackendDown,
}

// SeverityOf returns how bad it is that a condition with a reason is not true.
func SeverityOf(reason string) Severity {
	if slices.Contains(grave, reason) {
		return Critical
	}
	return Error
}

// Parts are the conditions that the summaries are made of, in the order in which a
// registry comes up: the first that is not true is most often why others are not.
var Parts = []string{
	operatorv1alpha1.ConditionVersionSupported, operatorv1alpha1.ConditionCertificatesReady, operatorv1alpha1.ConditionEtcdReady,
	operatorv1alpha1.ConditionServerReady, operatorv1alpha1.ConditionAPIServiceReady, operatorv1alpha1.ConditionEndpointReady,
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
		if operation.Phase == operatorv1alpha1.PhaseRollback {
			r.problem(Error, object, "kubectl registry upgrade plan "+creg.Name+" -n "+creg.Namespace, "the upgrade to %s is rolled back: %s", operation.To, operation.Message)
		}
	}
	switch {
	case creg.DeletionTimestamp != nil:
		r.problem(Warning, object, describe, "it is being deleted")
	case len(status.Conditions) == 0:
		r.problem(Error, object, "kubectl -n clusterregistry-system get pods", "the operator has not reported of it: it is not running, or doesn't watch this namespace")
	case out.Available != string(metav1.ConditionTrue) || out.Ready != string(metav1.ConditionTrue):
		r.conditions(object, describe, out, status.Conditions)
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

// conditions adds why a registry is not available or not ready: the first part that
// is not, and else what the summary says.
func (r *Report) conditions(object, describe string, registry Registry, conditions []metav1.Condition) {
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
	r.problem(severity, object, describe+"; docs/how-to/troubleshooting.md, "+cause.Reason, "%s: %s: %s", prefix, cause.Reason, command.Plain(cause.Message))
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

// Conditions of clusters.
const (
	clusterAvailable = v1beta1.ConditionAvailable
	clusterIdentity  = v1beta1.ConditionIdentityVerified
)

// availability returns whether a cluster is available: True, False, Unknown, or ""
// when no one reports of it.
func availability(cluster *v1beta1.Cluster) (string, *metav1.Condition) {
	if cluster.Status == nil {
		return "", nil
	}
	found := meta.FindStatusCondition(cluster.Status.Conditions, clusterAvailable)
	if found == nil {
		return "", nil
	}
	return string(found.Status), found
}

// addCluster counts a cluster, and adds it to those that are not well.
func (r *Report) addCluster(cluster *v1beta1.Cluster) {
	r.Clusters.Total++
	state, why := availability(cluster)
	switch state {
	case "":
		r.Clusters.Unreported++
	case string(metav1.ConditionTrue):
		r.Clusters.Available++
	case string(metav1.ConditionFalse):
		r.Clusters.Unavailable++
	default:
		r.Clusters.Unknown++
	}
	if cluster.Status != nil {
		if identity := meta.FindStatusCondition(cluster.Status.Conditions, clusterIdentity); identity != nil && identity.Status == metav1.ConditionFalse {
			why, state = identity, "identity differs"
		}
	}
	if state == "" || state == string(metav1.ConditionTrue) {
		return
	}
	r.NotWell = append(r.NotWell, Cluster{Name: cluster.Name, Available: state, Reason: command.Plain(why.Reason), Message: command.Plain(why.Message)})
}

// named is how many clusters a problem names.
const named = 5

// clustersNotWell makes one problem of all clusters that are not well: one line of
// each is below.
func (r *Report) clustersNotWell() {
	var names []string
	for i, cluster := range r.NotWell {
		if i == named {
			names = append(names, fmt.Sprintf("and %d more", len(r.NotWell)-named))
			break
		}
		names = append(names, cluster.Name)
	}
	if len(names) > 0 {
		r.problem(Error, "clusters", "kubectl describe crc "+names[0], "%s not well: %s", plural(len(r.NotWell), "cluster is", "clusters are"), strings.Join(names, ", "))
	}
}

// noClusters notes that the clusters could not be listed; it is a problem where one of
// the registries should answer.
func (r *Report) noClusters(err error) {
	for _, registry := range r.Registries {
		if registry.Mode == string(operatorv1alpha1.ModeAggregated) {
			r.problem(Critical, "clusters", "kubectl get apiservices v1beta1.clusterregistry.k8s.io", "%s", command.Plain(err.Error()))
			return
		}
	}
	r.note("the clusters of an independent registry are listed with its own context: use --context, or --kubeconfig with the content of the Secret in status.kubeconfigSecretRef")
}

// conclude makes the verdict.
func (r *Report) conclude() {
	r.clustersNotWell()
	if r.Problems == nil {
		r.Problems = []Problem{}
	}
	if r.Registries == nil {
		r.Registries = []Registry{}
	}
	var seen []string
	if n := len(r.Registries); n > 0 {
		seen = append(seen, plural(n, "registry", "registries"))
	}
	if r.Clusters != nil {
		seen = append(seen, plural(r.Clusters.Total, "cluster", "clusters"))
	}
	if len(seen) == 0 {
		seen = append(seen, "no registries, no clusters")
	}
	if len(r.Problems) == 0 {
		r.Verdict = "OK: " + strings.Join(seen, ", ")
		return
	}
	r.Verdict = fmt.Sprintf("ATTENTION: %s in %s", plural(len(r.Problems), "problem", "problems"), strings.Join(seen, ", "))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
