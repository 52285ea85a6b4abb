package simulation

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestRestored has the namespace be deleted and restored by a tool that saves objects and volumes:
// what it had is taken for its own, and the registry is ready with its data and its CAs.
func TestRestored(t *testing.T) {
	lives(t, func(w *world) {
		w.installed([]int64{3, 1}[w.random.IntN(2)])
		etcd, authorities := w.etcd.id, w.authorities()
		w.restores(true)
		w.faults = rough
		w.pass(2 * time.Minute)
		w.rests(20 * time.Minute)
		if w.etcd.id != etcd {
			w.fails("there is another etcd")
		}
		for name, before := range authorities {
			if now := w.authorities()[name]; now != before {
				w.fails("%s has another key", name)
			}
		}
	})
}

// TestRestoredWithoutVolumes restores the objects alone: nothing starts empty in place of what
// the record tells of, and that is said.
func TestRestoredWithoutVolumes(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(1)
		w.accepted = true
		w.restores(false)
		w.until("the loss is said", 10*time.Minute, func() bool {
			return w.condition("EtcdReady").Reason == operatorv1alpha1.ReasonQuorumLost
		})
		w.pass(15 * time.Minute)
		if w.process(0).runs {
			w.fails("an etcd without data serves")
		}
	})
}

// restores has all that is in the namespace be deleted while no operator runs, and restored:
// without statuses and owners, without pods and Jobs, and with the volumes or with empty ones.
func (w *world) restores(volumes bool) {
	w.note("the namespace is deleted, and restored")
	w.operator, w.starts = nil, time.Now().Add(24*time.Hour)
	var saved []*unstructured.Unstructured
	all := slices.SortedFunc(maps.Keys(w.host.objects), func(a, b id) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range all {
		object := w.host.objects[key]
		if key.namespace == "team" && key.kind != podKind && key.kind != jobKind {
			saved = append(saved, object.Unstructured)
		}
		if key.namespace == "team" || key.kind == apiServices {
			w.host.remove(object)
		}
	}
	w.pass(time.Minute)
	for _, tree := range saved {
		tree = tree.DeepCopy()
		tree.SetOwnerReferences(nil)
		delete(tree.Object, "status")
		if tree.GetKind() == claimKind.Kind && !volumes {
			unstructured.RemoveNestedField(tree.Object, "spec", "volumeName")
		}
		made, err := w.host.create(tree)
		if err != nil {
			w.t.Fatal(err)
		}
		if made.kind == claimKind && volumes {
			w.binds(made)
		}
	}
	w.starts = time.Now()
}

// binds has the volume of a claim be that of one that was made again.
func (w *world) binds(claim *stored) {
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
	_, err := w.host.update(id{volumeKind, "", name}, func(volume *unstructured.Unstructured) error {
		return unstructured.SetNestedField(volume.Object, string(claim.GetUID()), "spec", "claimRef", "uid")
	})
	must(err)
	w.status(claim, map[string]any{"phase": "Bound"})
}

// authorities returns the keys of the registry's CAs.
func (w *world) authorities() map[string]string {
	out := map[string]string{}
	for _, suffix := range []string{contract.EtcdCASuffix, contract.ServingCASuffix} {
		out[key.name+suffix] = string(w.secret(key.name+suffix, "tls.key"))
	}
	return out
}
