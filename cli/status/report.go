package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
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
	// unprobed says that nothing probes the clusters: how they are is not known.
	unprobed bool
	// registries is the resource version of what was read.
	registries string
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

func (r *Report) note(text string) { r.Notes = append(r.Notes, text) }

func (r *Report) problem(severity Severity, object, next, format string, args ...any) {
	r.Problems = append(r.Problems, Problem{Severity: severity, Object: object, Message: fmt.Sprintf(format, args...), Next: next})
}

// Of returns how a ClusterRegistry is, and what of it needs attention, as it says itself.
func Of(creg *operatorv1alpha1.ClusterRegistry, now time.Time) (Registry, []Problem) {
	r := &Report{now: now, Problems: []Problem{}}
	r.addRegistry(creg)
	return r.Registries[0], r.Problems
}

// grave are the reasons that are critical although clients may still be served: data is
// at stake, nothing can be written, or the host cluster suffers.
var grave = []string{
	operatorv1alpha1.ReasonDataLost, operatorv1alpha1.ReasonIdentityMismatch, operatorv1alpha1.ReasonNoSpace,
	operatorv1alpha1.ReasonCorrupt, operatorv1alpha1.ReasonBackendDown, operatorv1alpha1.ReasonQuorumLost,
	operatorv1alpha1.ReasonClaimTerminating, operatorv1alpha1.ReasonWentBack,
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
	operatorv1alpha1.ConditionControllerReady,
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
