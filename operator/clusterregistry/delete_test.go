package clusterregistry

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
)

// TestToDelete is about what a policy keeps, and in what order the rest goes.
func TestToDelete(t *testing.T) {
	inventory := []operatorv1alpha1.ObjectReference{
		{Kind: "Issuer", Namespace: "team", Name: "fleet-selfsigned"},
		{Kind: "Certificate", Namespace: "team", Name: "fleet-etcd-ca"},
		{Kind: "Certificate", Namespace: "team", Name: "fleet-serving"},
		{Kind: "ConfigMap", Namespace: "team", Name: "fleet-etcd-identity"},
		{Kind: "ConfigMap", Namespace: "team", Name: "fleet-trust"},
		{Kind: "Deployment", Namespace: "team", Name: "fleet-server"},
		{Kind: "ClusterRoleBinding", Name: "clusterregistry:team:fleet:auth-delegator"},
		{Kind: "APIService", Name: "v1alpha1.clusterregistry.k8s.io"},
	}
	for policy, want := range map[operatorv1alpha1.DeletionPolicy][]string{
		operatorv1alpha1.DeletionPolicyRetain: {
			"Certificate team/fleet-serving", "Secret team/fleet-serving", "ConfigMap team/fleet-trust", "Deployment team/fleet-server", "ClusterRoleBinding clusterregistry:team:fleet:auth-delegator"},
		operatorv1alpha1.DeletionPolicyDelete: {
			"Issuer team/fleet-selfsigned", "Certificate team/fleet-etcd-ca", "Secret team/fleet-etcd-ca", "Certificate team/fleet-serving", "Secret team/fleet-serving",
			"ConfigMap team/fleet-etcd-identity", "ConfigMap team/fleet-trust", "Deployment team/fleet-server", "ClusterRoleBinding clusterregistry:team:fleet:auth-delegator", "Secret team/fleet-serving-ca"},
	} {
		s := look(t, "{spec: {deletionPolicy: "+string(policy)+"}}")
		s.registry.Status.Inventory = inventory
		registration, rest := s.toDelete(nil)
		if len(registration) != 1 || registration[0].Kind != "APIService" {
			t.Errorf("%s: first goes %v", policy, registration)
		}
		var got []string
		for _, reference := range rest {
			got = append(got, reference.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: then goes\n%q, want\n%q", policy, got, want)
		}
	}
}

// TestToDeleteAdopted is about the record of etcd's identity that an older registry
// of the name has left: whatever became of the new one, under Delete the record goes
// with the volumes, or else no registry of the name could begin any more.
func TestToDeleteAdopted(t *testing.T) {
	for policy, goes := range map[operatorv1alpha1.DeletionPolicy]bool{operatorv1alpha1.DeletionPolicyRetain: false, operatorv1alpha1.DeletionPolicyDelete: true} {
		s := look(t, "{spec: {deletionPolicy: "+string(policy)+"}}")
		_, rest := s.toDelete(nil)
		if got := slices.Contains(rest, operatorv1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: "team", Name: "fleet-etcd-identity"}); got != goes {
			t.Errorf("%s: the record goes: %t", policy, got)
		}
	}
}

// TestOwnRecord has the record of a registry that took over in the inventory.
func TestOwnRecord(t *testing.T) {
	s := look(t, "{status: {inventory: [{kind: ConfigMap, namespace: team, name: fleet-trust}]}}")
	s.identity = &etcd.Record{}
	r := reading(t, s.registry.DeepCopy())
	for range 2 {
		if err := r.ownRecord(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		stored := &operatorv1alpha1.ClusterRegistry{}
		if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(s.registry), stored); err != nil {
			t.Fatal(err)
		}
		for _, inventory := range [][]operatorv1alpha1.ObjectReference{stored.Status.Inventory, s.registry.Status.Inventory} {
			if names(inventory) != "ConfigMap team/fleet-trust, ConfigMap team/fleet-etcd-identity" {
				t.Errorf("the inventory is %s", names(inventory))
			}
		}
	}
}

func TestNames(t *testing.T) {
	var references []operatorv1alpha1.ObjectReference
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		references = append(references, operatorv1alpha1.ObjectReference{Kind: "Role", Namespace: "n", Name: name})
	}
	if got := names(references[:2]); got != "Role n/a, Role n/b" {
		t.Error(got)
	}
	if got := names(references); got != "Role n/a, Role n/b, Role n/c, Role n/d, Role n/e, 2 more" {
		t.Error(got)
	}
}
