package simulation

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// bind gives claims their volumes, and takes what is released.
func (w *world) bind() {
	for _, claim := range w.host.list(claimKind, "") {
		volume := volumeOf(claim)
		switch {
		case claim.GetDeletionTimestamp() != nil && !w.mounted(claim):
			w.released(claim, volume)
		case volume == "" && claim.GetDeletionTimestamp() == nil && w.chance(70):
			w.provision(claim)
		}
	}
}

// provision makes a volume for a claim.
func (w *world) provision(claim *stored) {
	name := "pv-" + string(claim.GetUID())
	requested, _, _ := unstructured.NestedString(claim.Object, "spec", "resources", "requests", "storage")
	w.make("v1", "PersistentVolume", "", name, map[string]any{"spec": map[string]any{
		"capacity": map[string]any{"storage": requested}, "persistentVolumeReclaimPolicy": "Delete",
		"claimRef": map[string]any{"namespace": claim.namespace, "name": claim.name, "uid": string(claim.GetUID())}}})
	w.disks[name] = &disk{}
	tree := claim.DeepCopy()
	if err := unstructured.SetNestedField(tree.Object, name, "spec", "volumeName"); err != nil {
		w.t.Fatal(err)
	}
	tree.Object["status"] = map[string]any{"phase": "Bound", "capacity": map[string]any{"storage": requested}}
	w.host.store(claim, tree)
}

// released removes a claim that is used no more, and its volume unless that is retained.
func (w *world) released(claim *stored, volume string) {
	retained := w.retained(claim.GetUID())
	w.note("claim %s is gone, its volume retained: %t", claim.name, retained)
	w.host.remove(claim)
	if found := w.host.objects[id{volumeKind, "", volume}]; found != nil && !retained {
		w.host.remove(found)
		delete(w.disks, volume)
	}
}
