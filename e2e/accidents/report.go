package accidents

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// result is what became of an accident.
type result struct {
	accident
	phase framework.Phase
	began time.Time
	took  time.Duration
	// conditions were False meanwhile, each once with its last message.
	conditions []metav1.Condition
	// problem is what was not well when it was last looked at.
	problem error
	// repaired is true when a person was needed, and asked what the condition said.
	repaired bool
	asked    string
}

// note remembers what the registry's conditions say, but for those that sum up.
func (r *result) note(conditions []metav1.Condition, problem error) {
	r.problem = problem
	for _, c := range conditions {
		if c.Status != metav1.ConditionFalse || c.Type == operatorv1alpha1.ConditionAvailable || c.Type == operatorv1alpha1.ConditionReady || c.Type == operatorv1alpha1.ConditionProgressing {
			continue
		}
		i := slices.IndexFunc(r.conditions, func(seen metav1.Condition) bool { return seen.Type == c.Type && seen.Reason == c.Reason })
		if i < 0 {
			r.conditions = append(r.conditions, c)
		} else {
			r.conditions[i] = c
		}
	}
}

// saw tells of all that was noted, line by line.
func (r *result) saw() string {
	lines := []string{fmt.Sprint(r.problem)}
	for _, c := range r.conditions {
		lines = append(lines, fmt.Sprintf("%s=False %s: %s", c.Type, c.Reason, c.Message))
	}
	return strings.Join(lines, "\n")
}

// reasons are the conditions that were noted, without their messages.
func (r *result) reasons() string {
	var out []string
	for _, c := range r.conditions {
		out = append(out, c.Type+" "+c.Reason)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// header is that of the table that a run prints; results.md has its rows by object.
const header = "| accident | requests | failed | outage | well again after | conditions that were False meanwhile | by whom |\n|---|---|---|---|---|---|---|"

// line is a row of that table.
func (r *result) line() string {
	whom := "automatically"
	if r.repaired {
		whom = "restored from a copy"
		if r.asked != "" {
			whom += ", as the condition says"
		}
	}
	lost := "none"
	if r.phase.Failed > 0 {
		lost = r.phase.Outage.Round(100 * time.Millisecond).String()
	}
	return fmt.Sprintf("| %s | %d | %d | %s | %s | %s | %s |", r.name, r.phase.Requests, r.phase.Failed, lost, r.took.Round(time.Second), r.reasons(), whom)
}

// table is all of it.
func table(results []result) string {
	lines := []string{header}
	for i := range results {
		lines = append(lines, results[i].line())
	}
	return strings.Join(lines, "\n")
}
