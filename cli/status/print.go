package status

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/clusterregistry/operator/cli/command"
)

// print writes the report for people.
func (r *Report) print(w io.Writer, detailed bool) error {
	out := &strings.Builder{}
	fmt.Fprintln(out, command.Plain(r.Verdict))
	for _, problem := range r.Problems {
		fmt.Fprintf(out, "  %s: %s\n    next: %s\n", command.Plain(problem.Object), command.Plain(problem.Message), command.Plain(problem.Next))
	}
	if len(r.Registries) > 0 {
		fmt.Fprintln(out)
		rows := [][]string{{"NAMESPACE", "REGISTRY", "MODE", "VERSION", "AVAILABLE", "READY", "ETCD", "CERTIFICATES", "OPERATION"}}
		for _, registry := range r.Registries {
			rows = append(rows, []string{registry.Namespace, registry.Name, registry.Mode, registry.version(), registry.Available, registry.Ready, registry.Etcd, registry.soonest(), registry.Operation})
		}
		command.Table(out, rows)
	}
	if detailed {
		for _, registry := range r.Registries {
			registry.detail(out)
		}
	}
	if count := r.Clusters; count != nil {
		fmt.Fprintf(out, "\nClusters: %d, %d available, %d not available, %d unknown, %d that no one reports of\n", count.Total, count.Available, count.Unavailable, count.Unknown, count.Unreported)
	}
	if len(r.NotWell) > 0 {
		rows := [][]string{{"CLUSTER", "AVAILABLE", "REASON", "MESSAGE"}}
		for _, cluster := range r.NotWell {
			rows = append(rows, []string{cluster.Name, cluster.Available, cluster.Reason, cluster.Message})
		}
		command.Table(out, rows)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(out, "\nnote: %s\n", command.Plain(note))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// version returns what runs, and what should where that is another one.
func (r Registry) version() string {
	if r.Version == r.Desired || r.Desired == "" {
		return r.Version
	}
	return r.Version + " -> " + r.Desired
}

// soonest returns the certificate that expires first.
func (r Registry) soonest() string {
	var first *Certificate
	for i, certificate := range r.Certificates {
		if certificate.DaysLeft != nil && (first == nil || *certificate.DaysLeft < *first.DaysLeft) {
			first = &r.Certificates[i]
		}
	}
	if first == nil {
		return ""
	}
	return fmt.Sprintf("%d, %dd left", len(r.Certificates), *first.DaysLeft)
}

// detail writes a registry's certificates and etcd members.
func (r Registry) detail(w io.Writer) {
	if len(r.Certificates) > 0 {
		fmt.Fprintln(w)
		rows := [][]string{{"CERTIFICATE", "EXPIRES", "DAYS LEFT", "RENEWAL"}}
		for _, certificate := range r.Certificates {
			row := []string{certificate.Name, "not issued", "", ""}
			if certificate.NotAfter != nil {
				row[1], row[2] = certificate.NotAfter.UTC().Format(time.DateOnly), fmt.Sprint(*certificate.DaysLeft)
			}
			if certificate.Renewal != nil {
				row[3] = certificate.Renewal.UTC().Format(time.DateOnly)
			}
			rows = append(rows, row)
		}
		command.Table(w, rows)
	}
	if len(r.Members) > 0 {
		fmt.Fprintln(w)
		rows := [][]string{{"ETCD MEMBER", "READY", "VERSION"}}
		for _, member := range r.Members {
			rows = append(rows, []string{member.Name, fmt.Sprint(member.Ready), member.Version})
		}
		command.Table(w, rows)
	}
}
