package contract

import "testing"

// TestRestoredIdentity has the IDs that etcd's documentation prints of a member with etcd's
// defaults.
func TestRestoredIdentity(t *testing.T) {
	if cluster, member := RestoredIdentity("etcd-cluster", "http://localhost:2380"); cluster != "cdf818194e3a8c32" || member != "8e9e05c52164694d" {
		t.Errorf("cluster %s, member ID %s", cluster, member)
	}
}
