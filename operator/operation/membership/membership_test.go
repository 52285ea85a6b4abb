package membership

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/etcd/plan"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
)

// TestScale goes from one member to three, five and back. Each reconcile is that of an
// operator which knows nothing but what is recorded.
func TestScale(t *testing.T) {
	w := newWorld(t, 1)
	for _, test := range []struct {
		members int32
		did     []string
		phases  []string
	}{
		{3, []string{"add fleet-etcd-1", "promote fleet-etcd-1", "add fleet-etcd-2", "promote fleet-etcd-2"}, []string{"Scale Preflight", "Scale MemberAddition", "Scale ServerEndpoints"}},
		{5, []string{"add fleet-etcd-3", "promote fleet-etcd-3", "add fleet-etcd-4", "promote fleet-etcd-4"}, nil},
		{3, []string{"remove fleet-etcd-4", "remove fleet-etcd-3"}, []string{"Scale Preflight", "Scale ServerEndpoints", "Scale MemberRemoval", "Scale Preflight"}},
		{1, []string{"snapshot", "remove fleet-etcd-2", "remove fleet-etcd-1"}, []string{"Scale Preflight", "Scale ServerEndpoints", "Scale Snapshot", "Scale MemberRemoval", "Scale Preflight"}},
		{3, []string{"add fleet-etcd-1", "promote fleet-etcd-1", "add fleet-etcd-2", "promote fleet-etcd-2"}, nil},
	} {
		w.objects.Registry.Spec.Etcd.Replicas, w.did = test.members, nil
		phases := w.settle()
		if !slices.Equal(w.did, test.did) || test.phases != nil && !slices.Equal(phases, test.phases) {
			t.Errorf("to %d members: %q in %q", test.members, w.did, phases)
		}
		record := identity.Read(t.Context(), w.objects).Record
		if len(w.list) != int(test.members) || len(record.Members) != int(test.members) || record.Replicas != test.members || record.Endpoints != test.members || record.Claimed != test.members || record.Changing() {
			t.Errorf("to %d members: etcd has %+v, and %+v is recorded", test.members, w.list, record)
		}
		for ordinal := range Most {
			if claimed := w.claim(ordinal) != ""; claimed != (ordinal < int(test.members)) {
				t.Errorf("with %d members, member %d has a claim: %t", test.members, ordinal, claimed)
			}
		}
	}
}

// TestDifferentDataStays has no member go for fewer of them to be left as long as their data
// differs, or is not known to be the same.
func TestDifferentDataStays(t *testing.T) {
	for says, differs := range map[string]error{
		"hold different data at revision 7, and what is right might go with it": &etcd.DataDiffers{First: "fleet-etcd-0", Second: "fleet-etcd-1", Revision: 7},
		"when it is known that all members hold the same data: no answer":       errors.New("no answer"),
	} {
		w := newWorld(t, 3)
		w.objects.Registry.Spec.Etcd.Replicas, w.differs = 1, differs
		said := ""
		for range 20 {
			said, _ = w.reconcile()
		}
		if len(w.did) > 0 || len(w.list) != 3 || !strings.Contains(said, says) {
			t.Errorf("%v: it did %q and says %q", differs, w.did, said)
		}
		w.differs = nil
		if w.settle(); len(w.list) != 1 {
			t.Errorf("%v: when all is the same again, etcd has %+v", differs, w.list)
		}
	}
}

// TestReplaceLost has a member whose data is gone replaced by a new one, after the time that
// it is waited for, with its old volume kept.
func TestReplaceLost(t *testing.T) {
	w := newWorld(t, 3)
	old := w.claim(1)
	w.data[old], w.exit[w.name(1)] = "", contract.GuardRefused
	w.tick()
	if _, done := w.reconcile(); done || len(w.did) > 0 || w.objects.Registry.Status.Operation != nil {
		t.Fatalf("it is not waited for: %q", w.did)
	}
	if since := w.objects.Registry.Status.Etcd.Members[1].LostTime; since == nil {
		t.Error("it is not noted since when it is lost")
	}
	since := w.objects.Registry.Status.Etcd.Members[1].LostTime.DeepCopy()
	delete(w.exit, w.name(1)) // kubelet starts it once more
	w.tick()
	w.reconcile()
	if now := w.objects.Registry.Status.Etcd.Members[1].LostTime; !now.Equal(since) {
		t.Errorf("it is lost since %s, and then since %s", since, now)
	}
	w.exit[w.name(1)] = contract.GuardRefused
	w.tick()
	w.objects.Now = w.objects.Now.Add(operatorv1alpha1.DefaultReplaceAfter)
	for range 200 {
		if w.claim(1) != old {
			delete(w.exit, w.name(1))
		}
		if _, done := w.reconcile(); done {
			break
		}
	}
	if want := []string{"remove fleet-etcd-1", "add fleet-etcd-1", "promote fleet-etcd-1"}; !slices.Equal(w.did, want) {
		t.Errorf("%q", w.did)
	}
	pv := &corev1.PersistentVolume{}
	w.must(w.host.Get(t.Context(), client.ObjectKey{Name: "pv-" + old}, pv))
	if w.claim(1) == old || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("its claim is %s, its old volume is %s", w.claim(1), pv.Spec.PersistentVolumeReclaimPolicy)
	}
	if since := w.objects.Registry.Status.Etcd.Members[1].LostTime; since != nil {
		t.Errorf("it is still lost since %s", since)
	}
}

// TestReplaceAsked has a member replaced that a person names by its ID, once.
func TestReplaceAsked(t *testing.T) {
	w := newWorld(t, 3)
	w.objects.Registry.Annotations = map[string]string{operatorv1alpha1.AnnotationReplaceMember: " " + w.list[0].ID}
	for range 2 {
		phases := w.settle()
		if want := []string{"move leader to fleet-etcd-1", "remove fleet-etcd-0", "add fleet-etcd-0", "promote fleet-etcd-0"}; !slices.Equal(w.did, want) {
			t.Errorf("%q in %q", w.did, phases)
		}
	}
}

// TestReplaceBesides replaces no member beside another operation while servers may use only that one:
// what they are to use was recorded, and they do not have it yet.
func TestReplaceBesides(t *testing.T) {
	w := newWorld(t, 3)
	w.objects.Registry.Annotations = map[string]string{operatorv1alpha1.AnnotationReplaceMember: w.list[0].ID}
	w.objects.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation}
	deployment := &appsv1.Deployment{}
	w.must(w.host.Get(t.Context(), w.objects.Key(contract.ServerSuffix), deployment))
	recorded := deployment.Spec.Template.Spec.Containers[0].Args[0]
	for args, leaves := range map[string]bool{"--etcd-servers=https://fleet-etcd-0": false, recorded: true} {
		deployment.Spec.Template.Spec.Containers[0].Args = []string{args}
		w.must(w.host.Update(t.Context(), deployment))
		change := &Change{Objects: w.objects, Identity: identity.Read(t.Context(), w.objects), State: w.state(), Etcd: w, Repair: true}
		operandtest.RenderServers(w.objects)
		w.objects.Rendered.Stages[render.StageEtcd] = []*unstructured.Unstructured{operandtest.Rendered(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "fleet-etcd")}
		if step, v := change.Next(t.Context()); (step.Action == plan.RecordLeaving) != leaves || !v.Complete() {
			t.Errorf("servers with %s: %+v, %+v", args, step, v)
		}
	}
}

// TestReplaceTwo replaces one after the other, and adds the first one again before the second
// one goes.
func TestReplaceTwo(t *testing.T) {
	w := newWorld(t, 5)
	w.objects.Registry.Annotations = map[string]string{operatorv1alpha1.AnnotationReplaceMember: w.list[3].ID + "," + w.list[1].ID}
	w.settle()
	if want := []string{"remove fleet-etcd-1", "add fleet-etcd-1", "promote fleet-etcd-1", "remove fleet-etcd-3", "add fleet-etcd-3", "promote fleet-etcd-3"}; !slices.Equal(w.did, want) {
		t.Errorf("%q", w.did)
	}
}

// TestVerify compares a member that has joined with those that serve: one that does not answer
// must not keep it from being complete, and other data is for a person.
func TestVerify(t *testing.T) {
	w := newWorld(t, 5)
	w.objects.Registry.Annotations = map[string]string{operatorv1alpha1.AnnotationReplaceMember: w.list[1].ID}
	said := ""
	for range 60 {
		if slices.Contains(w.did, "promote fleet-etcd-1") {
			w.dead[w.name(3)] = true
		}
		var done bool
		if said, done = w.reconcile(); done {
			break
		}
	}
	if record := identity.Read(t.Context(), w.objects).Record; record.Changing() || w.objects.Registry.Status.Operation != nil {
		t.Errorf("it is not complete: %q, %+v", said, record)
	}

	w = newWorld(t, 1)
	w.objects.Registry.Spec.Etcd.Replicas, w.differs = 3, &etcd.DataDiffers{First: w.name(0), Second: w.name(1), Revision: 7}
	for range 20 {
		said, _ = w.reconcile()
	}
	if !slices.Equal(w.did, []string{"add fleet-etcd-1", "promote fleet-etcd-1"}) || !strings.Contains(said, "members fleet-etcd-0 and fleet-etcd-1 hold different data at revision 7, after fleet-etcd-1 has joined") {
		t.Errorf("%q, it says %q", w.did, said)
	}
}

// TestReplaceCorrupt has the member replaced at once whose data is not that of all others, and
// none while that is not known of one.
func TestReplaceCorrupt(t *testing.T) {
	for _, test := range []struct {
		reason  string
		corrupt int // the member, of three; more where there is none
		alarms  func(*world) []etcd.Alarm
		want    []string
	}{
		{"a follower", 2, func(w *world) []etcd.Alarm { return []etcd.Alarm{{MemberID: w.list[2].ID, Type: "CORRUPT"}} }, []string{"remove fleet-etcd-2", "disarm", "add fleet-etcd-2", "promote fleet-etcd-2"}},
		{"the leader", 0, func(w *world) []etcd.Alarm { return []etcd.Alarm{{MemberID: w.list[0].ID, Type: "CORRUPT"}} }, []string{"remove fleet-etcd-0", "disarm", "add fleet-etcd-0", "promote fleet-etcd-0"}},
		{"no majority is known", 2, func(*world) []etcd.Alarm { return []etcd.Alarm{{Type: "CORRUPT"}} }, nil},
		{"two of them", 2, func(w *world) []etcd.Alarm {
			return []etcd.Alarm{{MemberID: w.list[1].ID, Type: "CORRUPT"}, {MemberID: w.list[2].ID, Type: "CORRUPT"}}
		}, nil},
		{"it is full, too", 2, func(w *world) []etcd.Alarm {
			return []etcd.Alarm{{MemberID: w.list[1].ID, Type: "NOSPACE"}, {MemberID: w.list[2].ID, Type: "CORRUPT"}}
		}, nil},
		{"it has the same data as the others", Most, func(w *world) []etcd.Alarm { return []etcd.Alarm{{MemberID: w.list[2].ID, Type: "CORRUPT"}} }, nil},
		{"full is not corrupt", 2, func(w *world) []etcd.Alarm { return []etcd.Alarm{{MemberID: w.list[2].ID, Type: "NOSPACE"}} }, nil},
	} {
		w := newWorld(t, 3)
		w.alarms, w.corrupt = test.alarms(w), w.name(test.corrupt)
		for range 60 {
			if len(w.list) == 2 {
				w.corrupt = "" // it is gone
			}
			if _, done := w.reconcile(); done {
				break
			}
		}
		if !slices.Equal(w.did, test.want) {
			t.Errorf("%s: %q", test.reason, w.did)
		}
	}
}

// TestReplaceHealed removes no member that is found to hold the data of the others right before
// that, whatever was found a short while ago.
func TestReplaceHealed(t *testing.T) {
	w := newWorld(t, 3)
	w.alarms, w.corrupt, w.healed = []etcd.Alarm{{MemberID: w.list[2].ID, Type: "CORRUPT"}}, w.name(2), true
	said := ""
	for range 20 {
		v, done := w.reconcile()
		if said += v; done {
			break
		}
	}
	if len(w.did) > 0 || !strings.Contains(said, "member fleet-etcd-2 holds the same data as the others at revision 7") {
		t.Errorf("%q, it says %s", w.did, said)
	}
}

// TestNotReplaced is about members that nothing replaces.
func TestNotReplaced(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(*world)
		says   string
	}{
		{"it does not answer", func(w *world) { w.dead[w.name(1)] = true }, ""},
		{"its guard waits", func(w *world) { w.dead[w.name(1)], w.exit[w.name(1)] = true, contract.GuardWaits }, ""},
		{"it has the data of another one", func(w *world) { w.dead[w.name(1)], w.exit[w.name(1)] = true, contract.GuardForeign }, ""},
		{"no member is replaced without a person", func(w *world) {
			w.dead[w.name(1)], w.exit[w.name(1)] = true, contract.GuardRefused
			w.objects.Registry.Spec.Etcd.ReplaceAfter = &metav1.Duration{}
		}, ""},
		{"a second one is down", func(w *world) {
			w.dead[w.name(1)], w.dead[w.name(2)], w.exit[w.name(1)] = true, true, contract.GuardRefused
		}, "no majority of etcd's members answers"},
		{"it is asked for, and a second one is down", func(w *world) {
			w.dead[w.name(2)] = true
			w.objects.Registry.Annotations = map[string]string{operatorv1alpha1.AnnotationReplaceMember: w.list[1].ID}
		}, "a person asked for it"},
	} {
		w := newWorld(t, 3)
		test.change(w)
		w.tick()
		said := ""
		for range 3 {
			said, _ = w.reconcile()
			w.objects.Now = w.objects.Now.Add(operatorv1alpha1.DefaultReplaceAfter)
		}
		if len(w.did) > 0 || w.objects.Registry.Status.Operation != nil || !strings.Contains(said, test.says) || (said == "") != (test.says == "") {
			t.Errorf("%s: %q, it says %q", test.reason, w.did, said)
		}
	}
}

// TestMindChanges goes back from wherever a change is.
func TestMindChanges(t *testing.T) {
	for steps := range 25 {
		w := newWorld(t, 3)
		for i, replicas := range []int32{5, 1} {
			w.objects.Registry.Spec.Etcd.Replicas = replicas
			for range steps {
				w.reconcile()
			}
			w.objects.Registry.Spec.Etcd.Replicas = 3
			w.settle()
			if record := identity.Read(t.Context(), w.objects).Record; len(w.list) != 3 || len(record.Members) != 3 || record.Replicas != 3 || w.claim(3) != "" || w.claim(4) != "" {
				t.Fatalf("after %d steps of change %d: %+v, %+v", steps, i, w.list, record)
			}
		}
	}
}

// TestAfterRecovery grows an etcd that was recovered with the data of one member: each volume
// with data of before is kept before its claim goes, and no such data joins.
func TestAfterRecovery(t *testing.T) {
	for _, members := range []int{3, 5} {
		for survivor := range members {
			w := newWorld(t, members)
			store := identity.Read(t.Context(), w.objects)
			record := *store.Record
			record.Recovered = &etcd.Recovered{ID: "c0-1", Completed: &w.objects.Now, Abandoned: map[string]etcd.Claim{}}
			var claims []string
			for ordinal := range members {
				if ordinal != survivor {
					record.Recovered.Abandoned[w.name(ordinal)] = etcd.Claim{UID: w.claim(ordinal), Cluster: "c0"}
					claims = append(claims, w.claim(ordinal))
				}
			}
			w.list = w.list[survivor : survivor+1]
			record.Members = map[string]string{w.name(survivor): w.list[0].ID}
			record.Replicas, record.Endpoints, record.Names = int32(survivor)+1, int32(survivor)+1, nil
			w.must(store.Write(t.Context(), &record))
			w.tick()
			for _, phase := range w.settle() {
				if !strings.HasPrefix(phase, string(operatorv1alpha1.OperationScale)) {
					t.Errorf("%d of %d survived: it has the phase %s", survivor, members, phase)
				}
			}
			now := identity.Read(t.Context(), w.objects).Record
			if len(w.list) != members || len(now.Members) != members || now.Endpoints != int32(members) || now.Changing() || now.ClusterID != "c" {
				t.Errorf("%d of %d survived: %+v, %+v", survivor, members, w.list, now)
			}
			for _, claim := range claims {
				pv := &corev1.PersistentVolume{}
				w.must(w.host.Get(t.Context(), client.ObjectKey{Name: "pv-" + claim}, pv))
				kept := etcd.KeptVolume{Name: pv.Name, Claim: claim, Policy: "Delete", Cluster: "c0"}
				if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || !slices.Contains(now.Kept, kept) {
					t.Errorf("%d of %d survived: %s is not kept: %+v", survivor, members, pv.Name, now.Kept)
				}
			}
			if len(now.Recovered.Abandoned) > 0 {
				t.Errorf("%d of %d survived: %+v is abandoned still", survivor, members, now.Recovered.Abandoned)
			}
		}
	}
}
