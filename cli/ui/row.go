package ui

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/status"
	"github.com/clusterregistry/operator/internal/contract"
)

// What a row has of a cluster is bounded, whatever the entry holds, because all rows are kept.
// The page reads the rest when a person opens the cluster.
const (
	longestText = 240
	mostLabels  = 32
)

// regionLabels are labels that say where a cluster is, the first one first.
var regionLabels = []string{"region", "topology.kubernetes.io/region"}

// Row is a cluster in the table.
type Row struct {
	Name    string `json:"name"`
	Display string `json:"display,omitempty"`
	// State is how the cluster is, as "kubectl registry status" says it.
	State   string     `json:"state"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Version string     `json:"version,omitempty"`
	Set     string     `json:"set,omitempty"`
	Region  string     `json:"region,omitempty"`
	// Expires is when the certificate that the cluster's API server shows expires, or the
	// first of the CAs of its endpoints does.
	Expires *time.Time `json:"expires,omitempty"`
	// Seen is when a controller last had a sign of life of the cluster.
	Seen   *time.Time        `json:"seen,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Resource tells one state of the entry from another.
	Resource string `json:"resource,omitempty"`
}

// rowOf returns a cluster's row.
func rowOf(cluster *v1beta1.Cluster) Row {
	state, why := status.State(cluster)
	row := Row{
		Name: text(cluster.Name), Display: text(cluster.Spec.DisplayName), State: state, Set: text(cluster.Spec.ClusterSet),
		Expires: expiry(cluster), Labels: labels(cluster.Labels), Resource: cluster.ResourceVersion,
	}
	if why != nil {
		row.Reason, row.Message, row.Since = text(why.Reason), text(why.Message), at(&why.LastTransitionTime)
	}
	for _, label := range regionLabels {
		if row.Region == "" {
			row.Region = text(cluster.Labels[label])
		}
	}
	if s := cluster.Status; s != nil {
		row.Version = text(s.Version.Kubernetes)
		for _, reporter := range s.Reporters {
			if seen := at(reporter.LastSeen); seen != nil && (row.Seen == nil || seen.After(*row.Seen)) {
				row.Seen = seen
			}
		}
	}
	return row
}

// expiry returns when the first certificate that is known of a cluster expires.
func expiry(cluster *v1beta1.Cluster) (first *time.Time) {
	earlier := func(t *time.Time) {
		if t != nil && (first == nil || t.Before(*first)) {
			first = t
		}
	}
	if cluster.Status != nil {
		for _, property := range cluster.Status.Properties {
			if t, err := time.Parse(time.RFC3339, property.Value); err == nil && property.Name == contract.ExpiryProperty {
				earlier(&t)
			}
		}
	}
	for _, endpoint := range cluster.Spec.Endpoints {
		for _, authority := range authorities(endpoint.CABundle) {
			earlier(&authority.NotAfter)
		}
	}
	return first
}

// labels returns labels, in the order of their names as many as a row has.
func labels(all map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if len(out) == mostLabels {
			break
		}
		if key != v1beta1.ClusterSetLabel { // it has a column
			out[text(key)] = text(all[key])
		}
	}
	return out
}

// text returns what others wrote as a line of a bounded length.
func text(s string) string { return cut(s, longestText) }

func cut(s string, longest int) string {
	s = command.Plain(s)
	if runes := []rune(s); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return s
}

// at returns a time, nil when it is not set.
func at(t *metav1.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}
