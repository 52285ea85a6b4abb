package contract

import (
	"strings"
	"testing"
)

// TestKeys holds the keys to what there is in the etcd of every registry.
func TestKeys(t *testing.T) {
	const group = "clusterregistry.k8s.io"
	if got, want := KeyPrefix(group), "/registry/clusterregistry.k8s.io"; got != want {
		t.Errorf("keys begin with %s, want %s", got, want)
	}
	if !strings.HasPrefix(OwnerKey, KeyPrefix(group)+"/") {
		t.Errorf("the servers may not write %s", OwnerKey)
	}
	if got, want := ObjectPrefix(group, "clusters"), "/registry/clusterregistry.k8s.io/clusters/"; got != want {
		t.Errorf("the keys of clusters begin with %s, want %s", got, want)
	}
}
