package inventory

import (
	"slices"
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/pass/passtest"
)

// TestGoes is about what a policy keeps, and in what order the rest goes.
func TestGoes(t *testing.T) {
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
			"ConfigMap team/fleet-etcd-identity", "ConfigMap team/fleet-trust", "Deployment team/fleet-server", "ClusterRoleBinding clusterregistry:team:fleet:auth-delegator", "ConfigMap team/fleet-ca-generations", "Secret team/fleet-serving-ca"},
	} {
		s := passtest.New(t, "{spec: {deletionPolicy: "+string(policy)+", etcd: {replicas: 1}}}")
		s.Registry.Status.Inventory = inventory
		registration, rest := Goes(s.Pass, policy == operatorv1alpha1.DeletionPolicyDelete, nil)
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

// TestGoesAdopted is about the record of etcd's identity that an older registry
// of the name has left: whatever became of the new one, under Delete the record goes
// with the volumes, or else no registry of the name could begin any more.
func TestGoesAdopted(t *testing.T) {
	for policy, goes := range map[operatorv1alpha1.DeletionPolicy]bool{operatorv1alpha1.DeletionPolicyRetain: false, operatorv1alpha1.DeletionPolicyDelete: true} {
		s := passtest.New(t, "{spec: {deletionPolicy: "+string(policy)+", etcd: {replicas: 1}}}")
		_, rest := Goes(s.Pass, policy == operatorv1alpha1.DeletionPolicyDelete, nil)
		if got := slices.Contains(rest, operatorv1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: "team", Name: "fleet-etcd-identity"}); got != goes {
			t.Errorf("%s: the record goes: %t", policy, got)
		}
	}
}

// TestKeysAreRetained keeps the operator's copy of the keys with the data, and no longer.
func TestKeysAreRetained(t *testing.T) {
	for policy, retained := range map[string]bool{"Retain": true, "Delete": false} {
		s := passtest.New(t, "{spec: {mode: Independent, deletionPolicy: "+policy+", etcd: {replicas: 1}}}")
		copied := operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "fleet-encryption-0123456789abcdef"}
		s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{copied}
		if _, rest := Goes(s.Pass, !retained, nil); slices.Contains(rest, copied) == retained {
			t.Errorf("with the policy %s, the keys are deleted: %t", policy, !retained)
		}
	}
}
