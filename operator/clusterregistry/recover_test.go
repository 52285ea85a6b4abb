package clusterregistry

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/encryption/encryptiontest"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/operation/recovery"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/stage/restoring"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// s3Store is a store of the tests.
var s3Store = operatorv1alpha1.BackupStore{S3: &operatorv1alpha1.S3Store{Bucket: "b", SecretRef: &operatorv1alpha1.LocalObjectReference{Name: "store"}}}

// lostScope returns the scope of a registry whose etcd has lost its quorum, with an approval in
// YAML, and what was said of the loss before.
func lostScope(t *testing.T, approval string) (*Reconciler, *scope, *operatorv1alpha1.RecoveryStatus) {
	t.Helper()
	objects := []client.Object{&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-fleet-etcd-0", UID: "u0"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-fleet-etcd-1", UID: "u1"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-fleet-etcd-2", UID: "u2"}}}
	s := newScope(operandtest.New(t, "{spec: {mode: Aggregated, etcd: {replicas: 3}, recovery: "+approval+"}, status: {version: v0.4.0, etcd: {}, inventory: [{kind: ConfigMap, namespace: team, name: fleet-etcd-identity}]"+operandtest.Complete+"}}", objects...))
	s.Release, s.HostVersion = version.Release{Version: "v0.4.0", Members: version.Members{Etcd: "v3.7.3"}}, "v1.37.1"
	record := etcd.NewRecord(3, "ca", etcd.Identity{ClusterID: "c1", Members: map[string]string{"fleet-etcd-0": "a0", "fleet-etcd-1": "a1", "fleet-etcd-2": "a2"}}, true)
	record.Lineage, record.Joining = "one", "fleet-etcd-2"
	if err := s.Identity.Write(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	found := &operatorv1alpha1.RecoveryStatus{ID: "c1-1", LastRevision: 100, Members: []operatorv1alpha1.RecoveryMember{
		{Name: "fleet-etcd-0", Revision: 90, RevisionsLost: 10}, {Name: "fleet-etcd-1", DataGone: true, Message: "its volume is gone"}, {Name: "fleet-etcd-2"}}}
	s.Before.Recovery, s.Registry.Status.Recovery = found, found.DeepCopy()
	return &Reconciler{HostCluster: s.HostCluster}, s, found
}

// TestApprove begins the recovery that is approved of this loss, and says of any other approval
// why it does nothing.
func TestApprove(t *testing.T) {
	for reason, test := range map[string]struct {
		approval string
		change   func(*scope)
		says     string
		begins   bool
	}{
		"it is approved":                 {"{from: Member, name: fleet-etcd-0, acceptDataLossUpTo: 10, approvedFor: c1-1}", nil, "", true},
		"too much is lost":               {"{from: Member, name: fleet-etcd-0, acceptDataLossUpTo: 9, approvedFor: c1-1}", nil, "lacks 10 known revisions", false},
		"it is another loss":             {"{from: Member, name: fleet-etcd-0, acceptDataLossUpTo: 10, approvedFor: c1-0}", nil, "is approved for the loss c1-0", false},
		"a member that joined":           {"{from: Member, name: fleet-etcd-2, acceptDataLossUpTo: 100, approvedFor: c1-1}", nil, "was being added to etcd", false},
		"it is paused":                   {"{from: Member, name: fleet-etcd-0, acceptDataLossUpTo: 10, approvedFor: c1-1}", func(s *scope) { s.Freeze("spec.paused is false") }, "nothing is recovered until spec.paused is false", false},
		"nothing is approved":            {"null", nil, "", false},
		"a backup that is not looked up": {"{from: Backup, name: b, acceptDataLossUpTo: 10, approvedFor: c1-1}", nil, "looked up next", false},
		"a backup that does not fit":     {"{from: Backup, name: b, acceptDataLossUpTo: 10, approvedFor: c1-1}", func(s *scope) { s.restore.Recovery.Verdict = recovery.Held("it does not fit") }, "it does not fit", false},
		"a backup that fits": {"{from: Backup, name: b, acceptDataLossUpTo: 10, approvedFor: c1-1}", func(s *scope) {
			s.restore.Recovery.Restored = &etcd.Restored{From: "f", Store: &s3Store, Lineage: "one"}
		}, "", true},
	} {
		r, s, found := lostScope(t, test.approval)
		if test.change != nil {
			test.change(s)
		}
		v := r.recovery(s).Approve(t.Context(), found)
		if v.Err != nil || v.Complete() != (test.says == "") || !strings.Contains(v.Message, test.says) {
			t.Errorf("%s: %+v, want %q", reason, v, test.says)
		}
		recovered := s.Recovering()
		if (recovered != nil) != test.begins || recovery.Stopped(s.Pass) != (render.Stopped{Servers: test.begins, Members: test.begins}) {
			t.Errorf("%s: %+v, stopped %+v", reason, recovered, recovery.Stopped(s.Pass))
		}
		if stored := identity.Read(t.Context(), s.Objects).Record; stored.Recovered.Pending() != test.begins || stored.ClusterID != "c1" {
			t.Errorf("%s: recorded is %+v", reason, stored)
		}
		if test.begins && recovered.Abandoned["fleet-etcd-1"].UID != "u1" {
			t.Errorf("%s: abandoned is %+v", reason, recovered.Abandoned)
		}
	}
}

// TestRecover says how far a recovery is, also where the ClusterRegistry is another one than the
// one that approved it, and what becomes of a changed approval.
func TestRecover(t *testing.T) {
	const approval = "{from: Member, name: fleet-etcd-0, acceptDataLossUpTo: 10, approvedFor: c1-1}"
	r, s, found := lostScope(t, approval)
	if v := r.recovery(s).Approve(t.Context(), found); !v.Complete() {
		t.Fatal(v)
	}
	says := func(text string) {
		t.Helper()
		v := r.recover(t.Context(), s)
		status := s.Registry.Status.Recovery
		ready, _ := s.Verdict(operatorv1alpha1.ConditionEtcdReady)
		if v.Err != nil || status == nil || status.ID != "c1-1" || status.Phase != operatorv1alpha1.RecoveryStopping || !strings.Contains(status.Message, text) || ready.Reason != operatorv1alpha1.ReasonRecovering || ready.Message != status.Message {
			t.Errorf("%+v: %+v, %+v, want %q", v, status, ready, text)
		}
	}
	s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationScale}
	if says("are being stopped"); s.Registry.Status.Operation != nil {
		t.Error("a change of members that are no more is under way still")
	}
	s.Registry.Status.Recovery = nil // as of another ClusterRegistry
	says("are being stopped")
	s.Registry.Status.Recovery, s.Registry.Spec.Recovery.AcceptDataLossUpTo = found.DeepCopy(), 3
	says("spec.recovery does nothing yet: fleet-etcd-0 lacks 10 known revisions")
	s.Registry.Spec.Recovery.ApprovedFor = "c1-7"
	says("are being stopped")
	if strings.Contains(s.Registry.Status.Recovery.Message, "c1-7") {
		t.Errorf("an approval of another loss is mentioned: %s", s.Registry.Status.Recovery.Message)
	}
	s.Registry.Spec.Recovery = nil
	says("are being stopped")
	lineage := s.Recovering().Lineage
	s.Registry.Spec.Recovery = &operatorv1alpha1.Recovery{From: "Member", Name: "fleet-etcd-2", AcceptDataLossUpTo: 60, ApprovedFor: "c1-1"}
	s.Identity.Record.Joining = ""
	says("are being stopped")
	if now := s.Recovering(); now.Name != "fleet-etcd-2" || now.Revision != 40 || now.Lineage == lineage {
		t.Errorf("another copy is approved: %+v", now)
	}
	s.Registry.Spec.Recovery.AcceptDataLossUpTo = 80
	says("are being stopped")
	if now := s.Recovering(); now.Revision != 20 {
		t.Errorf("more may be lost: %+v", now)
	}
}

// TestRecovered reports what was recovered, once it was.
func TestRecovered(t *testing.T) {
	_, s, _ := lostScope(t, "null")
	recovery.Report(s.Pass)
	s.Identity.Record.Recovered = &etcd.Recovered{ID: "c1-1", From: "Member", Name: "fleet-etcd-0", LastRevision: 100}
	if recovery.Report(s.Pass); s.Registry.Status.Recovered != nil {
		t.Errorf("it is reported too early: %+v", s.Registry.Status.Recovered)
	}
	s.Identity.Record.Recovered = s.Identity.Record.Recovered.Done(90, s.Now)
	if recovery.Report(s.Pass); s.Registry.Status.Recovered == nil || s.Registry.Status.Recovered.Revision != 90 || s.Recovering() != nil {
		t.Errorf("%+v", s.Registry.Status.Recovered)
	}
	s.Identity.Record.Members = map[string]string{"fleet-etcd-2": "b"}
	if got := restoring.Growing(s.Pass); !strings.Contains(got, "grows from 1 to 3 members") {
		t.Errorf("%s", got)
	}
}

// TestReadClear has servers that encrypt read what a backup may have in clear, from a Secret that
// is there before the record names it.
func TestReadClear(t *testing.T) {
	r, s, _ := lostScope(t, "null")
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	s.Release = releases[len(releases)-1]
	if err := s.Client.Create(t.Context(), s.Registry.DeepCopy()); err != nil { // its status has the inventory
		t.Fatal(err)
	}
	s.Keys.InUse = encryptiontest.Key(t, "a")
	if err := r.keyChange(s).ReadClear(t.Context()); err != nil {
		t.Fatal(err)
	}
	record := identity.Read(t.Context(), s.Objects).Record
	if strings.Join(record.KeyIDs, " ") != "secretbox/a identity" {
		t.Errorf("recorded is %v", record.KeyIDs)
	}
	if err := s.Live.Get(t.Context(), s.Named("fleet-encryption-"+record.Keys), &corev1.Secret{}); err != nil {
		t.Error(err)
	}
}

// TestOtherSource never takes a change of the source alone for the recovery that is under way: a
// merge patch leaves the name as it was.
func TestOtherSource(t *testing.T) {
	r, s, found := lostScope(t, "{from: Member, name: fleet-etcd-0, acceptDataLossUpTo: 10, approvedFor: c1-1}")
	if v := r.recovery(s).Approve(t.Context(), found); !v.Complete() {
		t.Fatal(v)
	}
	s.Registry.Spec.Recovery.From = operatorv1alpha1.RecoverFromBackup
	s.restore = r.restoring(s).ObserveRecovery(t.Context())
	r.recover(t.Context(), s)
	if now := identity.Read(t.Context(), s.Objects); now.Err != nil || now.Record.Recovered.From != operatorv1alpha1.RecoverFromMember {
		t.Errorf("%v, %+v", now.Err, now.Record)
	}
	if got := s.Registry.Status.Recovery.Message; !strings.Contains(got, "there is no ClusterRegistryBackup of that name") {
		t.Errorf("%s", got)
	}
}

// TestAdoptedRecovery drives a recovery, and finds a lost quorum, of a registry that was created
// again: it was never complete, and all of its parts wait for etcd.
func TestAdoptedRecovery(t *testing.T) {
	r, s, found := lostScope(t, "{from: Member, name: fleet-etcd-0, acceptDataLossUpTo: 10, approvedFor: c1-1}")
	if v := r.recovery(s).Approve(t.Context(), found); !v.Complete() {
		t.Fatal(v)
	}
	s.Registry.Status.History, s.Rendered = nil, &render.Result{}
	if s.Installed() || !s.record(operatorv1alpha1.ConditionEtcdReady, verdict.Waiting("MembersNotReady", "0 of 3")) {
		t.Error("what follows etcd is not reached, and with it the recovery")
	}
	s.Registry.Status.Recovery = nil
	r.recover(t.Context(), s)
	if left := s.Registry.Status.Recovery; left == nil || len(left.Members) != 3 || left.Members[0].Name != "fleet-etcd-0" {
		t.Errorf("%+v", left)
	}
	_, s, _ = lostScope(t, "null")
	s.Registry.Status.History, s.Rendered = nil, &render.Result{}
	if s.record(operatorv1alpha1.ConditionEtcdReady, verdict.Waiting("MembersNotReady", "0 of 3")) {
		t.Error("servers are made although etcd is not ready")
	}
}
