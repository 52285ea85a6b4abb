package clusterregistry

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/stage/restoring"
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
			"ConfigMap team/fleet-etcd-identity", "ConfigMap team/fleet-trust", "Deployment team/fleet-server", "ClusterRoleBinding clusterregistry:team:fleet:auth-delegator", "ConfigMap team/fleet-ca-generations", "Secret team/fleet-serving-ca"},
	} {
		s := look(t, "{spec: {deletionPolicy: "+string(policy)+"}}")
		s.Registry.Status.Inventory = inventory
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

// TestToDeleteKeys keeps the Secrets with encryption keys, without which neither retained data
// nor the last backup can be read, unless nothing is to stay.
func TestToDeleteKeys(t *testing.T) {
	keys := operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "fleet-encryption-0123456789"}
	identity := operatorv1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: "team", Name: "fleet-etcd-identity"}
	for policy, goes := range map[operatorv1alpha1.DeletionPolicy]bool{operatorv1alpha1.DeletionPolicyRetain: false, operatorv1alpha1.DeletionPolicySnapshot: false, operatorv1alpha1.DeletionPolicyDelete: true} {
		s := look(t, "{spec: {deletionPolicy: Snapshot}}")
		s.Registry.DeletionTimestamp = new(metav1.NewTime(time.Date(2026, 3, 1, 10, 20, 0, 0, time.UTC)))
		s.Registry.Status.Backup = &operatorv1alpha1.BackupStatus{Deletion: &operatorv1alpha1.BackupSuccess{Name: "fleet-20260301-102000-del1"}}
		s.Registry.Spec.DeletionPolicy, s.Registry.Status.Inventory = policy, []operatorv1alpha1.ObjectReference{keys, identity}
		_, rest := s.toDelete(nil)
		if slices.Contains(rest, keys) != goes || slices.Contains(rest, identity) != (policy != operatorv1alpha1.DeletionPolicyRetain) {
			t.Errorf("%s: there go %v", policy, rest)
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

// TestReleaseVolumes gives old volumes of replaced members their reclaim policy back when the
// data goes with the registry, and only then.
func TestReleaseVolumes(t *testing.T) {
	for policy, want := range map[operatorv1alpha1.DeletionPolicy]corev1.PersistentVolumeReclaimPolicy{
		operatorv1alpha1.DeletionPolicyRetain: corev1.PersistentVolumeReclaimRetain,
		operatorv1alpha1.DeletionPolicyDelete: corev1.PersistentVolumeReclaimDelete,
	} {
		s := look(t, "{spec: {deletionPolicy: "+string(policy)+"}}")
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", Annotations: map[string]string{operatorv1alpha1.AnnotationReclaimPolicy: "Delete"}}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, ClaimRef: &corev1.ObjectReference{Namespace: "team", Name: "data-fleet-etcd-1", UID: "1"}}}
		r := reading(t, s, volume)
		s.Identity = identity.New(s.Objects)
		s.Identity.Record = &etcd.Record{Identity: etcd.Identity{ClusterID: "c"}, Kept: []etcd.KeptVolume{{Name: "gone", Claim: "0", Policy: "Delete", Cluster: "c"}, {Name: "pv", Claim: "1", Policy: "Delete", Cluster: "c"}}}
		for range 2 { // an operator that was killed before the record was deleted
			if err := s.releaseVolumes(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(volume), volume); err != nil || volume.Spec.PersistentVolumeReclaimPolicy != want {
			t.Errorf("%s: the volume's policy is %s: %v", policy, volume.Spec.PersistentVolumeReclaimPolicy, err)
		}
	}
	s := look(t, "{spec: {deletionPolicy: Delete}}")
	if err := s.releaseVolumes(t.Context()); err != nil {
		t.Errorf("without a record: %v", err)
	}
}

// TestKeysAreRetained keeps the operator's copy of the keys with the data, and no longer.
func TestKeysAreRetained(t *testing.T) {
	for policy, retained := range map[string]bool{"Retain": true, "Delete": false} {
		s := look(t, "{spec: {mode: Independent, deletionPolicy: "+policy+", etcd: {replicas: 1}}}")
		copied := operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "fleet-encryption-0123456789abcdef"}
		s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{copied}
		if _, rest := s.toDelete(nil); slices.Contains(rest, copied) == retained {
			t.Errorf("with the policy %s, the keys are deleted: %t", policy, !retained)
		}
	}
}

// TestInTheWayStays deletes a registry whose restore is refused for data of an earlier one, as
// the refusal says: that data stays, whatever the policy, and no backup is waited for. What the
// registry has restored itself goes by its policy, whether it has its record still or not.
func TestInTheWayStays(t *testing.T) {
	asked := restore.ID(operatorv1alpha1.RestoreFrom{BackupRef: &operatorv1alpha1.BackupReference{Name: "b", Namespace: "old"}})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-fleet-etcd-4"}}
	formed := etcd.Identity{ClusterID: "c"}
	for reason, test := range map[string]struct {
		record   *etcd.Record
		claims   []client.Object
		restored *operatorv1alpha1.RestoredStatus
		stays    bool
	}{
		"a record":                          {&etcd.Record{Identity: formed}, nil, nil, true},
		"a record of another restore":       {&etcd.Record{Identity: formed, Restored: &etcd.Restored{From: "other", Completed: new(time.Now())}}, nil, nil, true},
		"one that another restore is under": {&etcd.Record{Identity: formed, Restored: &etcd.Restored{From: "other"}}, nil, nil, true},
		"a claim without a record":          {nil, []client.Object{claim}, nil, true},
		"nothing":                           {nil, nil, nil, false},
		"a record that can't be read":       {nil, nil, nil, true},
		"its own restore":                   {&etcd.Record{Identity: formed, Restored: &etcd.Restored{From: asked}}, []client.Object{claim}, nil, false},
		"its own claims, the record went":   {nil, []client.Object{claim}, &operatorv1alpha1.RestoredStatus{}, false},
	} {
		for _, policy := range []operatorv1alpha1.DeletionPolicy{operatorv1alpha1.DeletionPolicyRetain, operatorv1alpha1.DeletionPolicyDelete, operatorv1alpha1.DeletionPolicySnapshot} {
			s := newScope(operandtest.New(t, "{spec: {etcd: {replicas: 3}, restoreFrom: {backupRef: {name: b, namespace: old}}}}", test.claims...))
			s.Registry.Spec.DeletionPolicy, s.Registry.DeletionTimestamp = policy, new(metav1.Now())
			s.Identity.Record, s.Before.Restored = test.record, test.restored
			if strings.Contains(reason, "can't be read") {
				s.Identity.Err = errors.New("no answer")
			}
			var err error
			if s.InTheWay, err = restoring.InTheWay(t.Context(), s.Pass); err != nil {
				t.Fatal(err)
			}
			if wants := policy == operatorv1alpha1.DeletionPolicyDelete && !test.stays; s.saving().DropsData() != wants {
				t.Errorf("%s, %s: drops the data: %v", reason, policy, s.saving().DropsData())
			}
			if s.saving().SavesFirst() {
				t.Errorf("%s, %s: a backup is waited for", reason, policy)
			}
			_, rest := s.toDelete(nil)
			if goes := slices.Contains(rest, identity.Reference(s.Objects)); goes != s.saving().DropsData() {
				t.Errorf("%s, %s: the record goes: %v", reason, policy, goes)
			}
			if restoring.Report(s.Pass); test.stays && s.Registry.Status.Restored != nil {
				t.Errorf("%s, %s: what an earlier registry restored is reported of this one", reason, policy)
			}
		}
	}
}
