package membership

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
)

// volume returns a PersistentVolume, nil when there is none.
func (w *world) volume(name string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{}
	if err := client.IgnoreNotFound(w.host.Get(w.t.Context(), client.ObjectKey{Name: name}, pv)); err != nil {
		w.t.Fatal(err)
	}
	if pv.Name == "" {
		return nil
	}
	return pv
}

// replaced replaces member 1, which a person asks for, and returns the name of its old volume.
func (w *world) replaced() string {
	old := "pv-" + w.claim(1)
	i := slices.IndexFunc(w.list, func(l etcd.Listed) bool { return l.Name == w.name(1) })
	w.objects.Registry.Annotations = map[string]string{operatorv1alpha1.AnnotationReplaceMember: w.list[i].ID}
	w.settle()
	return old
}

// TestKeptVolume replaces a member. Its old volume is kept, and noted, before the claim goes. As
// long as data outlives the registry, it stays; once it does not, the volume gets its policy
// back, but never before the new member has the data.
func TestKeptVolume(t *testing.T) {
	w := newWorld(t, 3)
	old := w.replaced()
	pv, record := w.volume(old), identity.Read(t.Context(), w.objects).Record
	if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || pv.Annotations[operatorv1alpha1.AnnotationReclaimPolicy] != "Delete" || len(record.Kept) != 1 || record.Kept[0].Name != old {
		t.Fatalf("%+v, recorded is %+v", pv, record.Kept)
	}
	w.objects.Registry.Spec.DeletionPolicy = operatorv1alpha1.DeletionPolicyDelete
	w.dead[w.name(1)] = true
	for range 3 {
		w.reconcile()
	}
	if pv := w.volume(old); pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Error("the old volume goes while the new member does not serve")
	}
	delete(w.dead, w.name(1))
	w.settle()
	pv, record = w.volume(old), identity.Read(t.Context(), w.objects).Record
	if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || len(pv.Annotations) > 0 || len(record.Kept) > 0 {
		t.Errorf("%+v, recorded is %+v", pv, record.Kept)
	}
}

// TestKeptVolumeStays is about volumes that are not given their policy back, whatever is
// recorded: no one waits for them either.
func TestKeptVolumeStays(t *testing.T) {
	other := func(change func(*etcd.Record)) func(*world, *corev1.PersistentVolume) {
		return func(w *world, _ *corev1.PersistentVolume) {
			store := identity.Read(t.Context(), w.objects)
			record := *store.Record
			record.Kept = slices.Clone(record.Kept)
			change(&record)
			w.must(store.Write(t.Context(), &record))
		}
	}
	volume := func(change func(*corev1.PersistentVolume)) func(*world, *corev1.PersistentVolume) {
		return func(_ *world, pv *corev1.PersistentVolume) { change(pv) }
	}
	for reason, change := range map[string]func(*world, *corev1.PersistentVolume){
		"it is bound to another claim":         volume(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "other" }),
		"a person has freed it":                volume(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }),
		"it is of another namespace":           volume(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Namespace = "other" }),
		"it is of another registry":            volume(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Name = "data-other-etcd-1" }),
		"it was to be kept from the beginning": volume(func(pv *corev1.PersistentVolume) { pv.Annotations = nil }),
		"its annotation was changed": volume(func(pv *corev1.PersistentVolume) {
			pv.Annotations[operatorv1alpha1.AnnotationReclaimPolicy] = "Recycle"
		}),
		"another policy is recorded":      other(func(record *etcd.Record) { record.Kept[0].Policy = "Recycle" }),
		"it was of the cluster of before": other(func(record *etcd.Record) { record.Kept[0].Cluster = "d" }),
		"no one recorded which cluster":   other(func(record *etcd.Record) { record.Kept[0].Cluster = "" }),
		"its policy was Recycle, as is said": func(w *world, pv *corev1.PersistentVolume) {
			pv.Annotations[operatorv1alpha1.AnnotationReclaimPolicy] = "Recycle"
			other(func(record *etcd.Record) { record.Kept[0].Policy = "Recycle" })(w, pv)
		},
		"a webhook refuses it": func(w *world, _ *corev1.PersistentVolume) {
			w.objects.Applier = apply.New(interceptor.NewClient(w.host, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if _, is := object.(*corev1.PersistentVolume); is {
					return apierrors.NewBadRequest("no")
				}
				return c.Patch(ctx, object, patch, options...)
			}}), w.host)
		},
	} {
		w := newWorld(t, 3)
		old := w.replaced()
		pv := w.volume(old)
		change(w, pv)
		w.must(w.host.Update(t.Context(), pv))
		w.objects.Registry.Spec.DeletionPolicy = operatorv1alpha1.DeletionPolicyDelete
		w.settle()
		if pv := w.volume(old); pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			t.Errorf("%s: its policy is %s", reason, pv.Spec.PersistentVolumeReclaimPolicy)
		}
		if record := identity.Read(t.Context(), w.objects).Record; len(record.Kept) > 0 {
			t.Errorf("%s: recorded is %+v", reason, record.Kept)
		}
	}
	w := newWorld(t, 3)
	old := w.replaced()
	w.must(w.host.Delete(t.Context(), w.volume(old)))
	w.objects.Registry.Spec.DeletionPolicy = operatorv1alpha1.DeletionPolicyDelete
	w.settle()
	if record := identity.Read(t.Context(), w.objects).Record; len(record.Kept) > 0 {
		t.Errorf("it is gone: recorded is %+v", record.Kept)
	}
}

// TestKeep records a volume once, before it is kept: an operator that is killed in between
// finds it.
func TestKeep(t *testing.T) {
	w := newWorld(t, 3)
	for range 2 {
		if err := Keep(t.Context(), identity.Read(t.Context(), w.objects), etcd.KeptVolume{Name: "pv", Claim: "1", Policy: "Delete", Cluster: "c"}); err != nil {
			t.Fatal(err)
		}
	}
	if kept := identity.Read(t.Context(), w.objects).Record.Kept; len(kept) != 1 {
		t.Errorf("%+v", kept)
	}
	pv := &corev1.PersistentVolume{}
	pv.Name, pv.Spec.ClaimRef = "pv", &corev1.ObjectReference{Namespace: "team", Name: "data-fleet-etcd-1", UID: types.UID("1")}
	if !wasOf(w.objects, pv, etcd.KeptVolume{Name: "pv", Claim: "1"}) {
		t.Error("its own volume is taken for that of another registry")
	}
}
