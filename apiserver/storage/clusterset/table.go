package clusterset

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/table"
)

var columns = table.Convertor[*clusterregistry.ClusterSet]{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the set"},
		{Name: "Display", Type: "string", Description: "What people call the set"},
		{Name: "Clusters", Type: "integer", Description: "Number of clusters in the set"},
		{Name: "Available", Type: "integer", Description: "Number of those that are reported as available"},
		{Name: "Age", Type: "string", Description: "Time since the set was created"},
		{Name: "Versions", Type: "string", Priority: 1, Description: "Kubernetes versions of the clusters, as reported, each with the number of clusters"},
	},
	Row: func(set *clusterregistry.ClusterSet, name, age string) []any {
		var versions []string
		for _, v := range set.Status.Versions {
			versions = append(versions, fmt.Sprintf("%s (%d)", v.Kubernetes, v.Clusters))
		}
		return []any{name, set.Spec.DisplayName, int64(set.Status.Clusters), int64(set.Status.Available), age, strings.Join(versions, ", ")}
	},
}
