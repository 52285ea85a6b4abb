package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/pages"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/verdict"
)

// loss is one that is found in an etcd with three members.
var loss = operatorv1alpha1.RecoveryStatus{ID: "c1-1", LastRevision: 100, Members: []operatorv1alpha1.RecoveryMember{
	{Name: "fleet-etcd-0", DataGone: true}, {Name: "fleet-etcd-1", DataGone: true}, {Name: "fleet-etcd-2", Revision: 100}}}

// lostRegistry returns a registry whose etcd has three members, of which each has a claim.
func lostRegistry(t *testing.T) (*operand.Objects, *identity.Store) {
	t.Helper()
	deployment, _ := operandtest.Servers(2)
	objects := []client.Object{deployment, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}}}
	for ordinal := range 3 {
		uid := types.UID(fmt.Sprintf("u%d", ordinal))
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: contract.EtcdMemberClaim(contract.EtcdMember("fleet", ordinal)), UID: uid}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + string(uid)}}
		objects = append(objects, claim, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + string(uid)}, Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: "team", Name: claim.Name, UID: uid}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete}})
	}
	o := operandtest.New(t, "{spec: {version: v0.4.0, mode: Aggregated, etcd: {replicas: 3}}, status: {inventory: [{kind: ConfigMap, namespace: team, name: fleet-etcd-identity}]"+operandtest.Complete+"}}", objects...)
	store := identity.New(o)
	record := etcd.NewRecord(3, "ca", etcd.Identity{ClusterID: "c1", Members: map[string]string{"fleet-etcd-0": "a0", "fleet-etcd-1": "a1", "fleet-etcd-2": "a2"}}, true)
	record.Lineage = "old"
	if err := store.Write(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	return o, store
}

// approved begins the recovery with the data of a member.
func approved(t *testing.T, o *operand.Objects, store *identity.Store, name string) {
	t.Helper()
	if err := Begin(t.Context(), o, store, restore.Approval{Recovery: operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromMember, Name: name}, Lost: loss}, nil); err != nil {
		t.Fatal(err)
	}
}

// stop has the host cluster's controllers scale the registry down, as it is rendered then.
func stop(t *testing.T, o *operand.Objects) {
	t.Helper()
	set, deployment := &appsv1.StatefulSet{}, &appsv1.Deployment{}
	for name, object := range map[string]client.Object{"fleet-etcd": set, "fleet-server": deployment} {
		if err := o.Live.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: name}, object); err != nil {
			t.Fatal(err)
		}
	}
	set.Spec.Replicas, deployment.Spec.Replicas = new(int32(0)), new(int32(0))
	if err := errors.Join(o.Client.Update(t.Context(), set), o.Client.Update(t.Context(), deployment)); err != nil {
		t.Fatal(err)
	}
	set.Status, deployment.Status = appsv1.StatefulSetStatus{}, appsv1.DeploymentStatus{}
	if err := errors.Join(o.Client.Status().Update(t.Context(), set), o.Client.Status().Update(t.Context(), deployment)); err != nil {
		t.Fatal(err)
	}
}

// podOf returns a pod of a part of the registry.
func podOf(name, component string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelComponent: component}}, Spec: corev1.PodSpec{NodeName: "n1"}}
}

// again returns the recovery as an operator finds it that was started just now.
func again(t *testing.T, o *operand.Objects, state etcd.State) *Recovery {
	t.Helper()
	store := identity.Read(t.Context(), o)
	if store.Err != nil {
		t.Fatal(store.Err)
	}
	return &Recovery{Objects: o, Identity: store, State: state, Members: verdict.Waiting("MembersNotReady", "as the stage says")}
}

// TestStopsFirst changes nothing of who etcd is before the last pod has terminated, and says
// which one is waited for.
func TestStopsFirst(t *testing.T) {
	o, store := lostRegistry(t)
	approved(t, o, store, "fleet-etcd-2")
	for i := range pages.Size { // evicted, which stay for long, and are listed before the others
		pod := podOf(fmt.Sprintf("a-%d", i), operand.ComponentServer)
		pod.Status.Phase = corev1.PodFailed
		if err := o.Client.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	step := func(says string) {
		t.Helper()
		v := again(t, o, etcd.State{}).Step(t.Context())
		if v.Err != nil || !strings.Contains(v.Message, says) || v.Reason != operatorv1alpha1.ReasonRecovering {
			t.Errorf("%+v, want %q", v, says)
		}
		if record := identity.Read(t.Context(), o).Record; record.ClusterID != "c1" || record.Recovered.Phase != operatorv1alpha1.RecoveryStopping {
			t.Errorf("%s: %+v", says, record)
		}
	}
	step("are being stopped")
	for _, pod := range []*corev1.Pod{podOf("fleet-server-x", operand.ComponentServer), podOf("fleet-etcd-1", operand.ComponentEtcd)} {
		if err := o.Client.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		stop(t, o)
		step("pod " + pod.Name + " terminates next")
		pod.Finalizers = []string{"kubelet/holds"}
		if err := errors.Join(o.Client.Update(t.Context(), pod), o.Client.Delete(t.Context(), pod), o.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)); err != nil {
			t.Fatal(err)
		}
		step("pod " + pod.Name + " terminates next")
		now := o.Now
		o.Now = pod.DeletionTimestamp.Add(time.Hour)
		step("pod " + pod.Name + " does not terminate: node n1, on which it is, may be gone")
		o.Now, pod.Finalizers = now, nil
		if err := o.Client.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	v := again(t, o, etcd.State{}).Step(t.Context())
	record := identity.Read(t.Context(), o).Record
	if v.Err != nil || record.Recovered.Phase != operatorv1alpha1.RecoveryRestoring || record.ClusterID == "c1" || len(record.Members) != 1 || record.Replicas != 3 || record.Abandons("fleet-etcd-0").UID != "u0" || record.Abandons("fleet-etcd-2").UID != "" {
		t.Errorf("%+v: %+v", v, record)
	}
}

// TestRestores ends when the member serves as the one that was recorded, and not before.
func TestRestores(t *testing.T) {
	o, store := lostRegistry(t)
	approved(t, o, store, "fleet-etcd-2")
	stop(t, o)
	again(t, o, etcd.State{}).Step(t.Context())
	record := identity.Read(t.Context(), o).Record
	serves := func(cluster string, err error) etcd.State {
		id := record.Members["fleet-etcd-2"]
		return etcd.State{Members: []etcd.Member{{Name: "fleet-etcd-2", ID: id, ClusterID: cluster, Err: err, Revision: 142 + contract.RevisionBump}}, List: []etcd.Listed{{ID: id, Name: "fleet-etcd-2"}}}
	}
	for reason, state := range map[string]etcd.State{"nothing answers": {}, "it has no leader": serves(record.ClusterID, errors.New("no leader")), "it is of the etcd of before": serves("c1", nil)} {
		if v := again(t, o, state).Step(t.Context()); v.Complete() || !strings.Contains(v.Message, "etcd begins with the data of member fleet-etcd-2: as the stage says") {
			t.Errorf("%s: %+v", reason, v)
		}
	}
	// A change of the template meanwhile is rolled out later: a pod may not be evicted now.
	rolls := again(t, o, serves(record.ClusterID, nil))
	rolls.Rolling = "etcd: 0 of 1 members updated"
	if v := rolls.Step(t.Context()); !v.Complete() {
		t.Errorf("%+v", v)
	}
	if done := identity.Read(t.Context(), o).Record.Recovered; done.Pending() || done.Ended != 142 || done.LastRevision != 100 {
		t.Errorf("%+v", done)
	}
}

// TestKilled goes through a recovery with an operator that is killed at each of its writes,
// before it took effect or after, and ends in the same etcd: what was recorded decides.
func TestKilled(t *testing.T) {
	backup := &etcd.Restored{From: "recovery", Store: &operatorv1alpha1.BackupStore{}, Lineage: "old"}
	for _, test := range []struct {
		asked    operatorv1alpha1.Recovery
		backup   *etcd.Restored
		member   string
		replicas int32
		writes   int
	}{
		{operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromMember, Name: "fleet-etcd-1"}, nil, "fleet-etcd-1", 2, 2},
		{operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromBackup, Name: "b"}, backup, "fleet-etcd-0", 1, 5},
	} {
		for kill := range 2 * test.writes {
			o, store := lostRegistry(t)
			if err := Begin(t.Context(), o, store, restore.Approval{Recovery: test.asked, Lost: loss}, test.backup); err != nil {
				t.Fatal(err)
			}
			lineage := store.Record.Recovered.Lineage
			stop(t, o)
			writes := 0
			killed := killing(o, &writes, kill/2, kill%2 == 1)
			for range 12 {
				r := again(t, killed, etcd.State{})
				record := r.Identity.Record
				if !record.Recovered.Pending() {
					break
				}
				if record.Recovered.Phase == operatorv1alpha1.RecoveryRestoring {
					id := record.Members[test.member]
					r.State = etcd.State{Members: []etcd.Member{{Name: test.member, ID: id, ClusterID: record.ClusterID}}, List: []etcd.Listed{{ID: id, Name: test.member}}}
					served := *record
					if served.Restored.Pending() { // as the stage of etcd records it
						served.Restored = served.Restored.Done(o.Now)
						if err := identity.Read(t.Context(), o).Write(t.Context(), &served); err != nil {
							t.Fatal(err)
						}
						continue
					}
				}
				r.Step(t.Context())
			}
			record := identity.Read(t.Context(), o).Record
			if record.Recovered.Pending() || record.Lineage != lineage || record.Replicas != test.replicas || len(record.Members) != 1 || len(record.Kept) > 1 {
				t.Errorf("%s, killed at write %d: %+v", test.asked.From, kill, record)
			}
			if want := test.writes + 1 - kill%2; writes != want {
				t.Errorf("%s, killed at write %d: there were %d writes, want %d: what took effect is not done again", test.asked.From, kill, writes, want)
			}
		}
	}
}

// killing returns the registry of an operator that gets no answer to one of its writes, which
// took effect or not.
func killing(o *operand.Objects, writes *int, kill int, after bool) *operand.Objects {
	lost := errors.New("the operator was killed")
	write := func(do func() error) error {
		at := *writes
		*writes++
		if at == kill && !after {
			return lost
		}
		if err := do(); err != nil || at != kill {
			return err
		}
		return lost
	}
	c := interceptor.NewClient(o.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return write(func() error { return c.Patch(ctx, object, patch, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return write(func() error { return c.Update(ctx, object, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, object, options...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			return write(func() error { return c.Apply(ctx, object, options...) })
		},
	})
	copied := *o
	copied.Client, copied.Live, copied.Applier = c, c, apply.New(c, c)
	return &copied
}

// TestBackup restores to the first member, whose volume is kept before its claim goes.
func TestBackup(t *testing.T) {
	o, store := lostRegistry(t)
	restored := &etcd.Restored{From: "recovery", Store: &operatorv1alpha1.BackupStore{}, Lineage: "old", Report: contract.BackupReport{Backup: contract.Backup{Name: "b"}}}
	approval := restore.Approval{Recovery: operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromBackup, Name: "b"}, Lost: loss}
	if err := Begin(t.Context(), o, store, approval, restored); err != nil {
		t.Fatal(err)
	}
	stop(t, o)
	for range 4 {
		if v := again(t, o, etcd.State{}).Step(t.Context()); v.Err != nil {
			t.Fatal(v.Err)
		}
	}
	record, pv := identity.Read(t.Context(), o).Record, &corev1.PersistentVolume{}
	if err := o.Live.Get(t.Context(), client.ObjectKey{Name: "pv-u0"}, pv); err != nil || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("%+v, %v", pv, err)
	}
	kept := etcd.KeptVolume{Name: "pv-u0", Claim: "u0", Policy: "Delete", Cluster: "c1"}
	if err := o.Live.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "data-fleet-etcd-0"}, &corev1.PersistentVolumeClaim{}); err == nil || len(record.Kept) != 1 || record.Kept[0] != kept {
		t.Errorf("the claim %v, kept %+v", err, record.Kept)
	}
	if !record.Restored.Pending() || record.Recovered.Phase != operatorv1alpha1.RecoveryRestoring || record.Replicas != 1 || record.Claimed != 3 {
		t.Errorf("%+v", record)
	}
	if v := again(t, o, etcd.State{}).Step(t.Context()); v.Complete() || !strings.Contains(v.Message, "backup b") {
		t.Errorf("%+v", v)
	}
	// Its pod is replaced by one that does not restore before the servers start.
	served := *record
	served.Restored = served.Restored.Done(o.Now)
	if err := identity.Read(t.Context(), o).Write(t.Context(), &served); err != nil {
		t.Fatal(err)
	}
	id := record.Members["fleet-etcd-0"]
	rolls := again(t, o, etcd.State{Members: []etcd.Member{{Name: "fleet-etcd-0", ID: id, ClusterID: record.ClusterID}}, List: []etcd.Listed{{ID: id, Name: "fleet-etcd-0"}}})
	rolls.Rolling = "etcd: 0 of 1 members updated"
	if v := rolls.Step(t.Context()); v.Complete() || !strings.Contains(v.Message, rolls.Rolling+": as the stage says") {
		t.Errorf("%+v", v)
	}
}

// TestLostAgain restores a backup where a recovered etcd has lost its only member before another
// one joined: each claim is known as of the etcd whose data it has, and only one is replaced.
func TestLostAgain(t *testing.T) {
	o, store := lostRegistry(t)
	record := *store.Record
	record.Identity, record.Lineage, record.Replicas = etcd.Identity{ClusterID: "c2", Members: map[string]string{"fleet-etcd-2": "b2"}}, "second", 3
	before := etcd.Recovered{ID: "c1-1", Abandoned: map[string]etcd.Claim{"fleet-etcd-0": {UID: "u0", Cluster: "c1"}, "fleet-etcd-1": {UID: "gone", Cluster: "c1"}}}
	record.Recovered = before.Done(100, o.Now)
	if err := store.Write(t.Context(), &record); err != nil {
		t.Fatal(err)
	}
	lost := operatorv1alpha1.RecoveryStatus{ID: "c2-1", Members: []operatorv1alpha1.RecoveryMember{{Name: "fleet-etcd-2", DataGone: true}}}
	approval := restore.Approval{Recovery: operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromBackup, Name: "b"}, Lost: lost}
	if err := Begin(t.Context(), o, store, approval, &etcd.Restored{Store: &operatorv1alpha1.BackupStore{}, Lineage: "second"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]etcd.Claim{"fleet-etcd-0": {UID: "u0", Cluster: "c1"}, "fleet-etcd-1": {UID: "u1", Cluster: "c2"}, "fleet-etcd-2": {UID: "u2", Cluster: "c2"}}
	if got := store.Record.Recovered; !maps.Equal(got.Abandoned, want) || got.Member != "fleet-etcd-0" || got.Before != "second" || got.Cluster != "c2" {
		t.Errorf("%+v", got)
	}
	stop(t, o)
	for range 4 {
		if v := again(t, o, etcd.State{}).Step(t.Context()); v.Err != nil {
			t.Fatal(v.Err)
		}
	}
	now := identity.Read(t.Context(), o).Record
	kept := etcd.KeptVolume{Name: "pv-u0", Claim: "u0", Policy: "Delete", Cluster: "c1"}
	if now.Recovered.Phase != operatorv1alpha1.RecoveryRestoring || now.Replicas != 1 || now.Claimed != 3 || now.Members["fleet-etcd-0"] == "" || len(now.Members) != 1 || !slices.Equal(now.Kept, []etcd.KeptVolume{kept}) {
		t.Errorf("%+v", now)
	}
	for _, name := range []string{"data-fleet-etcd-1", "data-fleet-etcd-2"} {
		if err := o.Live.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: name}, &corev1.PersistentVolumeClaim{}); err != nil {
			t.Errorf("claim %s: %v", name, err)
		}
	}
}

// TestRetain has all volumes outlive their claims before anything is stopped, and refuses a copy
// whose claim goes with its pod. That of the member whose data is used has its policy back in the
// end.
func TestRetain(t *testing.T) {
	o, store := lostRegistry(t)
	approval := operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromMember, Name: "fleet-etcd-2"}
	policy := func(name string) corev1.PersistentVolumeReclaimPolicy {
		t.Helper()
		pv := &corev1.PersistentVolume{}
		if err := o.Live.Get(t.Context(), client.ObjectKey{Name: name}, pv); err != nil {
			t.Fatal(err)
		}
		return pv.Spec.PersistentVolumeReclaimPolicy
	}
	for range 2 { // once more after a kill
		if v := Retain(t.Context(), o, store, approval); !v.Complete() {
			t.Fatalf("%+v", v)
		}
	}
	for _, name := range []string{"pv-u0", "pv-u1", "pv-u2"} {
		if policy(name) != corev1.PersistentVolumeReclaimRetain {
			t.Errorf("%s is not kept", name)
		}
	}
	if kept := store.Record.Kept; len(kept) != 2 || kept[0].Name != "pv-u0" || kept[1].Name != "pv-u1" || kept[0].Cluster != "c1" {
		t.Errorf("kept are %+v", kept)
	}
	approved(t, o, store, "fleet-etcd-2")
	stop(t, o)
	again(t, o, etcd.State{}).Step(t.Context())
	record := identity.Read(t.Context(), o).Record
	id := record.Members["fleet-etcd-2"]
	if v := again(t, o, etcd.State{Members: []etcd.Member{{Name: "fleet-etcd-2", ID: id, ClusterID: record.ClusterID}}, List: []etcd.Listed{{ID: id, Name: "fleet-etcd-2"}}}).Step(t.Context()); !v.Complete() {
		t.Fatalf("%+v", v)
	}
	if policy("pv-u2") != corev1.PersistentVolumeReclaimDelete || policy("pv-u0") != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("in the end, pv-u2 is %s and pv-u0 %s", policy("pv-u2"), policy("pv-u0"))
	}

	o, store = lostRegistry(t)
	claim := &corev1.PersistentVolumeClaim{}
	if err := o.Live.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "data-fleet-etcd-2"}, claim); err != nil {
		t.Fatal(err)
	}
	claim.Finalizers = []string{"kubernetes.io/pvc-protection"}
	if err := errors.Join(o.Client.Update(t.Context(), claim), o.Client.Delete(t.Context(), claim)); err != nil {
		t.Fatal(err)
	}
	if v := Retain(t.Context(), o, store, approval); v.Complete() || !strings.Contains(v.Message, "data-fleet-etcd-2 of fleet-etcd-2, which spec.recovery names, was deleted") {
		t.Errorf("%+v", v)
	}
}

// TestNotBegun records no backup that is not known: no one could read that record.
func TestNotBegun(t *testing.T) {
	o, store := lostRegistry(t)
	if err := Begin(t.Context(), o, store, restore.Approval{Recovery: operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromBackup, Name: "b"}, Lost: loss}, nil); err == nil || store.Record.Recovered != nil {
		t.Errorf("%v, %+v", err, store.Record.Recovered)
	}
}

// TestEnded is not held by pods that have ended, as those that a node has evicted.
func TestEnded(t *testing.T) {
	o, store := lostRegistry(t)
	approved(t, o, store, "fleet-etcd-2")
	stop(t, o)
	evicted := podOf("fleet-server-x", operand.ComponentServer)
	evicted.Status.Phase = corev1.PodFailed
	if err := o.Client.Create(t.Context(), evicted); err != nil {
		t.Fatal(err)
	}
	again(t, o, etcd.State{}).Step(t.Context())
	if record := identity.Read(t.Context(), o).Record; record.Recovered.Phase != operatorv1alpha1.RecoveryRestoring {
		t.Errorf("%+v", record.Recovered)
	}
}

// TestOtherCopy begins again with another copy while nothing serves yet, and knows the etcd that
// was lost still.
func TestOtherCopy(t *testing.T) {
	o, store := lostRegistry(t)
	approved(t, o, store, "fleet-etcd-2")
	stop(t, o)
	again(t, o, etcd.State{}).Step(t.Context())
	first := identity.Read(t.Context(), o)
	approved(t, o, first, "fleet-etcd-1")
	r := identity.Read(t.Context(), o).Record.Recovered
	if r.Phase != operatorv1alpha1.RecoveryStopping || r.Cluster != "c1" || r.Members["fleet-etcd-1"] != "a1" || r.Before != "old" || r.Abandoned["fleet-etcd-2"].UID != "u2" || r.Abandoned["fleet-etcd-2"].Cluster != "c1" || r.Abandoned["fleet-etcd-1"].UID != "" {
		t.Errorf("%+v", r)
	}
	if err := Bound(t.Context(), first, 40); err != nil || identity.Read(t.Context(), o).Record.Recovered.Revision != 40 {
		t.Errorf("%v", err)
	}
}

// TestClaimGone says that the data which was approved is not there any more.
func TestClaimGone(t *testing.T) {
	o, store := lostRegistry(t)
	approved(t, o, store, "fleet-etcd-2")
	stop(t, o)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-fleet-etcd-2"}}
	if err := o.Client.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if v := again(t, o, etcd.State{}).Step(t.Context()); !strings.Contains(v.Message, "data-fleet-etcd-2 of member fleet-etcd-2, with whose data etcd is to continue, was deleted") {
		t.Errorf("%+v", v)
	}
}

// TestPaused changes nothing.
func TestPaused(t *testing.T) {
	o, store := lostRegistry(t)
	approved(t, o, store, "fleet-etcd-2")
	stop(t, o)
	o.Freeze("spec.paused is false")
	if v := again(t, o, etcd.State{}).Step(t.Context()); !strings.Contains(v.Message, "nothing is changed until spec.paused is false") {
		t.Errorf("%+v", v)
	}
}
