package membership

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/volumes"
)

// ofClasses returns a registry with volumes of StorageClass slow that asks for another one; in
// its host there are the classes slow and fast.
func ofClasses(t *testing.T, members int, asked string) *world {
	t.Helper()
	w := newWorld(t, members)
	for _, name := range []string{"slow", "fast"} {
		w.must(w.host.Create(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	w.objects.Registry.Spec.Etcd.Storage = &operatorv1alpha1.Storage{StorageClassName: asked}
	w.objects.Now = w.objects.Now.Add(time.Minute)
	return w
}

// classes returns the StorageClasses of the members' claims.
func (w *world) classes() (out []string) {
	for ordinal := range w.list {
		claim := &corev1.PersistentVolumeClaim{}
		w.must(w.host.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: contract.EtcdMemberClaim(w.name(ordinal))}, claim))
		out = append(out, volumes.Class(claim))
	}
	return out
}

// TestMoveClass replaces members one at a time when the StorageClass changes, each with its old
// volume kept, after the StatefulSet makes claims of the new class.
func TestMoveClass(t *testing.T) {
	w := ofClasses(t, 3, "fast")
	old := []string{w.claim(0), w.claim(1), w.claim(2)}
	phases := w.settle()
	did := slices.DeleteFunc(slices.Clone(w.did), func(did string) bool { return strings.HasPrefix(did, "move leader") })
	want := []string{"remove fleet-etcd-0", "add fleet-etcd-0", "promote fleet-etcd-0", "remove fleet-etcd-1", "add fleet-etcd-1", "promote fleet-etcd-1", "remove fleet-etcd-2", "add fleet-etcd-2", "promote fleet-etcd-2"}
	if !slices.Equal(did, want) || w.recreated != 1 {
		t.Errorf("%q in %q, the StatefulSet is recreated %d times", w.did, phases, w.recreated)
	}
	if got := w.classes(); !slices.Equal(got, []string{"fast", "fast", "fast"}) {
		t.Errorf("%q", got)
	}
	for _, uid := range old {
		if pv := w.volume("pv-" + uid); pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			t.Errorf("%s has reclaim policy %s", pv.Name, pv.Spec.PersistentVolumeReclaimPolicy)
		}
	}
	w.did = nil
	if w.objects.Registry.Spec.Etcd.Storage.StorageClassName = ""; len(w.settle()) > 0 || len(w.did) > 0 {
		t.Errorf("no class is asked for: %q", w.did)
	}
}

// TestMoveClassBack changes its mind in the middle: what has moved comes back.
func TestMoveClassBack(t *testing.T) {
	for steps := 1; steps < 40; steps += 6 {
		w := ofClasses(t, 3, "fast")
		for range steps {
			w.reconcile()
		}
		w.objects.Registry.Spec.Etcd.Storage.StorageClassName = "slow"
		w.settle()
		record := identity.Read(t.Context(), w.objects).Record
		if got := w.classes(); !slices.Equal(got, []string{"slow", "slow", "slow"}) || record.Changing() {
			t.Errorf("after %d steps: %q", steps, got)
		}
	}
}

// TestMoveClassOfSingle refuses to move a single member, and says how to: with three, it is
// moved, and alone again on the new class.
func TestMoveClassOfSingle(t *testing.T) {
	w := ofClasses(t, 1, "fast")
	said := ""
	for range 5 {
		said, _ = w.reconcile()
	}
	if len(w.did) > 0 || w.objects.Registry.Status.Operation != nil || !strings.Contains(said, "fleet-etcd-0 can't be moved") || !strings.Contains(said, "set spec.etcd.replicas to 3, and back to 1") {
		t.Errorf("%q, it says %q", w.did, said)
	}
	for _, replicas := range []int32{3, 1} {
		w.objects.Registry.Spec.Etcd.Replicas = replicas
		w.settle()
		if got := w.classes(); slices.Contains(got, "slow") || len(got) != int(replicas) {
			t.Errorf("with %d members: %q", replicas, got)
		}
	}
}

// TestClassRefused moves no member to a class that there is not, by its name, nor one whose
// new claim would be of another class again; and none beside another operation.
func TestClassRefused(t *testing.T) {
	for _, test := range []struct {
		reason, asked string
		change        func(*world)
		says          string
	}{
		{"there is no such class", "gone", nil, "spec.etcd.storage.storageClassName is gone, and there is no StorageClass of that name"},
		{"its claims are of the class", "slow", nil, ""},
		{"a claim of another class was made since", "fast", func(w *world) {
			claim, set := &corev1.PersistentVolumeClaim{}, statefulSet("fast")
			w.must(w.host.Delete(t.Context(), set))
			w.tick()
			w.must(w.host.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: contract.EtcdMemberClaim(w.name(1))}, claim))
			w.must(w.host.Delete(t.Context(), claim))
			of := w.data[string(claim.UID)]
			w.forced = "slow"
			w.objects.Now = w.objects.Now.Add(time.Minute)
			w.tick()
			w.data[w.claim(1)] = of
			w.forced = "fast"
		}, `PersistentVolumeClaim data-fleet-etcd-1 is of StorageClass "slow", although it was made when StatefulSet fleet-etcd asked for fast already`},
	} {
		w := ofClasses(t, 3, test.asked)
		if test.change != nil {
			test.change(w)
		}
		said, before := "", w.recreated
		for range 5 {
			said, _ = w.reconcile()
		}
		if len(w.did) > 0 || w.recreated != before || w.objects.Registry.Status.Operation != nil || !strings.Contains(said, test.says) || (said == "") != (test.says == "") {
			t.Errorf("%s: %q, recreated %d times, it says %q", test.reason, w.did, w.recreated-before, said)
		}
	}
}

// TestClassWithoutVolumes moves to a class that exists and makes no volumes. Another class, and
// none, get the member out of it; the others keep their volumes.
func TestClassWithoutVolumes(t *testing.T) {
	for asked, want := range map[string]string{"slow": "slow", "other": "other", "": ""} {
		w := ofClasses(t, 3, "fast")
		w.must(w.host.Create(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}}))
		w.unprovisioned = "fast"
		said := ""
		for range 100 {
			said, _ = w.reconcile()
		}
		if !strings.Contains(said, `PersistentVolumeClaim data-fleet-etcd-0 is not bound, and it is of StorageClass "fast"`) {
			t.Errorf("it says %q", said)
		}
		if got := w.classes(); !slices.Equal(got, []string{"fast", "slow", "slow"}) || w.bound(0) {
			t.Fatalf("%q", got)
		}
		w.objects.Registry.Spec.Etcd.Storage.StorageClassName = asked
		w.settle()
		first := w.classes()[0]
		if record := identity.Read(t.Context(), w.objects).Record; first != want || !w.bound(0) || len(record.Members) != 3 || record.Changing() {
			t.Errorf("%q is asked for: %q, %+v", asked, w.classes(), record)
		}
		if asked == "" && !slices.Equal(w.classes(), []string{"", "slow", "slow"}) {
			t.Errorf("%q", w.classes())
		}
	}
}

// creating has the host cluster answer a creation that is only tried.
func (w *world) creating(answer func(client.Object) error) {
	w.objects.Applier = apply.New(interceptor.NewClient(w.host, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
		if slices.Contains(options, client.CreateOption(client.DryRunAll)) {
			if err := answer(object); err != nil {
				return err
			}
		}
		return c.Create(ctx, object, options...)
	}}), w.host)
}

// TestTried moves no member where the host cluster refuses what that needs.
func TestTried(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "", errors.New("exceeded quota"))
	for reason, test := range map[string]struct {
		answer    func(client.Object) error
		recreated int
		says      string
	}{
		"a quota refuses the claim": {func(object client.Object) error {
			if _, is := object.(*corev1.PersistentVolumeClaim); is {
				return forbidden
			}
			return nil
		}, 1, "the host cluster refuses a claim of that class: "},
		"a webhook changes its class": {func(object client.Object) error {
			if claim, is := object.(*corev1.PersistentVolumeClaim); is {
				claim.Spec.StorageClassName = new("slow")
			}
			return nil
		}, 1, `the host cluster makes claims of StorageClass "slow" of it`},
		"a webhook refuses the StatefulSet": {func(object client.Object) error {
			if _, is := object.(*appsv1.StatefulSet); is {
				return apierrors.NewBadRequest("no")
			}
			return nil
		}, 0, "StatefulSet fleet-etcd is not recreated to make claims of another StorageClass, since the host cluster refuses it: no"},
	} {
		w, said := ofClasses(t, 3, "fast"), ""
		w.creating(test.answer)
		for range 6 {
			said, _ = w.reconcile()
		}
		if len(w.did) > 0 || w.recreated != test.recreated || w.objects.Registry.Status.Operation != nil || !strings.Contains(said, test.says) {
			t.Errorf("%s: %q, recreated %d times, it says %q", reason, w.did, w.recreated, said)
		}
		if record := identity.Read(t.Context(), w.objects).Record; record.Changing() {
			t.Errorf("%s: %+v", reason, record)
		}
	}
}

// TestRecreating records that the StatefulSet is recreated before it is deleted, until it is
// there again.
func TestRecreating(t *testing.T) {
	w := ofClasses(t, 3, "fast")
	change := &Change{Objects: w.objects, Identity: identity.Read(t.Context(), w.objects), State: w.state(), Etcd: w}
	change.recreate(t.Context())
	record := identity.Read(t.Context(), w.objects)
	err := w.host.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet-etcd"}, &appsv1.StatefulSet{})
	if record.Record.Recreating != "set" || !record.Record.Changing() || !apierrors.IsNotFound(err) {
		t.Errorf("%+v, %v", record.Record, err)
	}
	again := &Change{Objects: w.objects, Identity: record}
	again.recreated(t.Context(), false)
	if !identity.Read(t.Context(), w.objects).Record.Changing() {
		t.Error("it is not there, and forgotten")
	}
	w.tick()
	again.recreated(t.Context(), false)
	if identity.Read(t.Context(), w.objects).Record.Changing() {
		t.Error("it is there, and recorded as deleted")
	}
}

// TestRecreateOnce leaves a StatefulSet alone that was recreated already, as where the cache has
// the one before.
func TestRecreateOnce(t *testing.T) {
	w := ofClasses(t, 3, "slow")
	change := &Change{Objects: w.objects, Identity: identity.Read(t.Context(), w.objects), State: w.state(), Etcd: w}
	if v := change.recreate(t.Context()); v.Complete() || v.Err != nil {
		t.Errorf("%+v", v)
	}
	if w.tick(); w.recreated > 0 {
		t.Error("it is deleted although it makes claims of the class")
	}
}
