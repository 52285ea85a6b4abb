package heartbeat

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// TestKnownCluster goes by the cluster that the caller has read from etcd, and not by the watch cache,
// which may have the former one still: there is none here to ask.
func TestKnownCluster(t *testing.T) {
	stored := &clusterregistry.ClusterHeartbeat{ObjectMeta: metav1.ObjectMeta{Name: "east.agent", ResourceVersion: "1"}, ClusterName: "east", ClusterUID: "former"}
	if _, err := (stamped{of: "present"}).UpdatedObject(t.Context(), stored); !errors.As(err, new(former)) {
		t.Errorf("a heartbeat of the former cluster: %v", err)
	}
}
