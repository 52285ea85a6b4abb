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
	"github.com/clusterregistry/operator/operator/inventory"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/stage/restoring"
)

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
		_, rest := inventory.Goes(s.Pass, s.saving().DropsData(), nil)
		if slices.Contains(rest, keys) != goes || slices.Contains(rest, identity) != (policy != operatorv1alpha1.DeletionPolicyRetain) {
			t.Errorf("%s: there go %v", policy, rest)
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
			_, rest := inventory.Goes(s.Pass, s.saving().DropsData(), nil)
			if goes := slices.Contains(rest, identity.Reference(s.Objects)); goes != s.saving().DropsData() {
				t.Errorf("%s, %s: the record goes: %v", reason, policy, goes)
			}
			if restoring.Report(s.Pass); test.stays && s.Registry.Status.Restored != nil {
				t.Errorf("%s, %s: what an earlier registry restored is reported of this one", reason, policy)
			}
		}
	}
}
