package accidents

import (
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestDeletions deletes each object of a highly available registry.
func TestDeletions(t *testing.T) {
	s := newSite(t, "aggregated-ha.yaml", nil)
	s.all(t, deleted, orphaning)
	s.end(t)
}

// TestMatrixDamages removes the labels of each object of a highly available
// registry, puts nonsense into each Secret, and switches the issuer there and back.
func TestMatrixDamages(t *testing.T) {
	s := newSite(t, "aggregated-ha.yaml", nil)
	s.all(t, unlabelled, nonsense)
	s.issuers(t)
	s.end(t)
}

// TestMatrixIndependent does all of it to a registry with an endpoint of its own.
func TestMatrixIndependent(t *testing.T) {
	s := newSite(t, "independent-nodeport.yaml", func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Server.Replicas, spec.Server.Service.NodePort = 2, 0
		spec.Etcd.Replicas = 3
	})
	s.all(t, deleted, orphaning, unlabelled, nonsense)
	s.issuers(t)
	s.end(t)
}

// TestMatrixSingle does all of it to a registry with one server and one member of
// etcd, whose outages it prints.
func TestMatrixSingle(t *testing.T) {
	s := newSite(t, "aggregated-single.yaml", nil)
	s.all(t, deleted, orphaning, unlabelled, nonsense)
	s.issuers(t)
	s.end(t)
}
