package diagnose

import (
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/status"
)

// Unchecked means that it could not be asked whether something is wrong.
const Unchecked status.Severity = "unchecked"

// severities are all there are, the worst first.
var severities = []status.Severity{status.Critical, status.Error, status.Warning, Unchecked}

// Report is what diagnose prints.
type Report struct {
	// Verdict is the whole in a sentence.
	Verdict string `json:"verdict"`
	// Findings are what is wrong and what could not be checked, the worst first.
	Findings []status.Problem `json:"findings"`
}

// add adds a finding. What is in it was written by others.
func (r *Report) add(severity status.Severity, object, next, format string, args ...any) {
	r.Findings = append(r.Findings, status.Problem{Severity: severity, Object: object, Message: fmt.Sprintf(format, args...), Next: next})
}

// unchecked adds what could not be listed, and why.
func (r *Report) unchecked(what string, resource schema.GroupVersionResource, namespace string, err error) {
	object, flag := "host cluster", " -A"
	if namespace != "" {
		object, flag = "namespace "+namespace, " -n "+namespace
	}
	next := "kubectl get " + resource.GroupResource().String() + flag
	if apierrors.IsForbidden(err) {
		next = "kubectl auth can-i list " + resource.GroupResource().String() + flag + "; docs/reference/plugin.md lists the rights"
	}
	r.add(Unchecked, object, next, "not checked: %s: %v", what, err)
}

// conclude makes the text of findings safe, sorts them and makes the verdict.
func (r *Report) conclude(registries int) {
	var findings []status.Problem
	for _, finding := range r.Findings {
		finding.Object, finding.Message, finding.Next = command.Plain(finding.Object), command.Plain(finding.Message), command.Plain(finding.Next)
		// Two registries in one namespace, for example, lack the same right.
		if !slices.Contains(findings, finding) {
			findings = append(findings, finding)
		}
	}
	slices.SortStableFunc(findings, func(a, b status.Problem) int {
		return slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
	})
	r.Findings = append([]status.Problem{}, findings...)
	asked := fmt.Sprintf("%d registries", registries)
	if registries == 1 {
		asked = "1 registry"
	}
	if len(findings) == 0 {
		r.Verdict = "OK: nothing found, " + asked
		return
	}
	var counts []string
	for _, severity := range severities {
		count := 0
		for _, finding := range findings {
			if finding.Severity == severity {
				count++
			}
		}
		if count > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", count, severity))
		}
	}
	r.Verdict = fmt.Sprintf("ATTENTION: %s, %s", strings.Join(counts, ", "), asked)
}

// print writes the report for people.
func (r *Report) print(w io.Writer) error {
	out := &strings.Builder{}
	fmt.Fprintln(out, r.Verdict)
	for _, finding := range r.Findings {
		fmt.Fprintf(out, "\n%-9s %s\n  %s\n  next: %s\n", finding.Severity, finding.Object, finding.Message, finding.Next)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
