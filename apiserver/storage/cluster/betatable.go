package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/table"
)

var betaTable = table.Convertor[*clusterregistry.Cluster]{
	Columns: betaColumns,
	Row:     func(c *clusterregistry.Cluster, name, age string) []any { return betaRow(c, name, age, time.Now()) },
}

var betaColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the cluster"},
	{Name: "Display", Type: "string", Description: "What people call the cluster"},
	{Name: "Version", Type: "string", Description: "Kubernetes version of the cluster's API server, as reported"},
	{Name: "Available", Type: "string", Description: "Status of the condition Available, as reported"},
	{Name: "Age", Type: "string", Description: "Time since the cluster was registered"},
	{Name: "ID", Type: "string", Priority: 1, Description: "Which cluster this is, wherever it is moved"},
	{Name: "Endpoint", Type: "string", Priority: 1, Description: "URL of the cluster's first endpoint"},
	{Name: "Manager", Type: "string", Priority: 1, Description: "What manages the cluster's entry"},
	{Name: "Set", Type: "string", Priority: 1, Description: "ClusterSet that the cluster is in"},
	{Name: "LastSeen", Type: "string", Priority: 1, Description: "Time since a reporter last had a sign of life of the cluster"},
}

func betaRow(c *clusterregistry.Cluster, name, age string, now time.Time) []any {
	version, available, endpoint, manager := "", "", "", ""
	if c.Status != nil {
		version = c.Status.Version.Kubernetes
		if condition := meta.FindStatusCondition(c.Status.Conditions, "Available"); condition != nil {
			available = string(condition.Status)
		}
	}
	if len(c.Spec.Endpoints) > 0 {
		endpoint = c.Spec.Endpoints[0].URL
	}
	if c.Spec.Manager != nil {
		manager = c.Spec.Manager.Name
	}
	return []any{name, c.Spec.DisplayName, version, available, age, c.Spec.ID, endpoint, manager, c.Spec.ClusterSet, lastSeen(c.Status, now)}
}

// lastSeen returns the time since the last sign of life that any reporter had.
func lastSeen(status *clusterregistry.ClusterStatus, now time.Time) string {
	var last *metav1.Time
	if status != nil {
		for _, reporter := range status.Reporters {
			if reporter.LastSeen != nil && !reporter.LastSeen.Before(last) {
				last = reporter.LastSeen
			}
		}
	}
	if last == nil {
		return ""
	}
	return duration.HumanDuration(now.Sub(last.Time))
}
