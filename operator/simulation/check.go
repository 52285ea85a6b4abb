package simulation

import (
	"bytes"
	"encoding/base64"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

var apiServices = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}

// check holds the world to what must be true at every moment.
func (w *world) check() {
	if w.broken != "" {
		w.fails("%s", w.broken)
	}
	w.checkData()
	w.checkLoss()
	w.checkDeleted()
	w.checkBackend()
	if w.checked == w.host.revision { // nothing of what follows is new
		return
	}
	w.checked = w.host.revision
	for _, service := range w.host.list(apiServices, "") { // invariants 2 and 9
		bundle, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
		skips, _, _ := unstructured.NestedBool(service.Object, "spec", "insecureSkipTLSVerify")
		content, err := base64.StdEncoding.DecodeString(bundle)
		if skips || err != nil || !bytes.Contains(content, []byte("BEGIN CERTIFICATE")) {
			w.fails("%s is registered without a CA", service.id)
		}
	}
	if r := w.registry(); r == nil || r.DeletionTimestamp != nil { // invariant 8
		return
	}
	for _, object := range w.host.objects {
		if object.namespace == key.namespace {
			continue
		}
		for _, owner := range object.GetOwnerReferences() {
			if owner.Kind == "ClusterRegistry" {
				w.fails("%s is elsewhere and has the registry as its owner", object.id)
			}
		}
	}
}

// longest is how long the host cluster may be led to servers of which none answers.
const longest = 3 * time.Minute

// checkBackend expects that the host cluster is not led for long to servers of which none
// answers: its namespaces could not be deleted (invariant 2).
func (w *world) checkBackend() {
	registry := w.registry()
	led := len(w.host.list(apiServices, "")) > 0 && registry != nil && registry.DeletionTimestamp == nil
	if !led || w.backend() != nil || w.operator == nil || registry.Spec.Paused {
		w.silent = time.Now()
	}
	if time.Since(w.silent) > longest {
		w.fails("no server has answered since %s, and the registry is registered", w.silent.UTC().Format(time.TimeOnly))
	}
}

// checkData expects that nothing that was acknowledged is lost (invariant 1): there is a majority
// of volumes with it, and that etcd has one history.
func (w *world) checkData() {
	if w.accepted || w.acked == 0 {
		return
	}
	if w.etcd.leader != 0 && w.etcd.last().revision < w.acked {
		w.fails("etcd is at revision %d, and acknowledged %d", w.etcd.last().revision, w.acked)
	}
	learners := 0
	for _, m := range w.etcd.last().members {
		learners += int(boolean(m.learner))
	}
	if learners > 1 {
		w.fails("etcd has %d learners", learners)
	}
	if !w.holdsAll() {
		w.fails("no volume has revision %d, which was acknowledged", w.acked)
	}
}

// holdsAll reports whether there is a volume with all that was acknowledged.
func (w *world) holdsAll() bool {
	for _, d := range w.disks {
		if d.cluster == w.etcd.id && d.index <= len(w.etcd.log) && d.index > 0 && w.etcd.log[d.index-1].revision >= w.acked && d.other == 0 {
			return true
		}
	}
	return false
}

// checkWrite expects of a write of the operator that it may be made.
func (w *world) checkWrite(verb string, key id) {
	w.checkUndecided(verb, key)
	if verb == "evict" {
		w.checkEviction(key)
	}
	if verb == "patch status" || verb == "delete" || verb == "evict" {
		return
	}
	if key.kind == apiServices && w.host.objects[key] == nil && !slices.ContainsFunc(sorted(w.pods), func(uid string) bool { return w.pods[uid].answers() }) { // invariant 2
		w.fails("%s is registered while no server answers", key)
	}
	if verb == "patch " || w.host.objects[key] != nil || key.kind.Group == operatorv1alpha1.GroupName {
		return
	}
	// Invariant 8, after any crash: what is made is in the inventory before.
	reference := operatorv1alpha1.ObjectReference{Group: key.kind.Group, Kind: key.kind.Kind, Namespace: key.namespace, Name: key.name}
	if r := w.registry(); r == nil || !slices.Contains(r.Status.Inventory, reference) {
		w.fails("%s is made before the inventory has it", key)
	}
}

// checkApplied expects of what is applied that the host cluster is not led to servers that are
// taken away (invariant 2).
func (w *world) checkApplied(wanted *unstructured.Unstructured) {
	replicas, is, _ := unstructured.NestedInt64(wanted.Object, "spec", "replicas")
	if wanted.GetKind() == "Deployment" && is && replicas == 0 && len(w.host.list(apiServices, "")) > 0 {
		w.fails("all servers are stopped while the host cluster is led to them")
	}
}

// checkEviction expects that one member is taken down at a time (invariant 6), and none of which
// the claim goes with the pod (invariant 1).
func (w *world) checkEviction(key id) {
	if pod := w.host.objects[key]; pod != nil && component(pod) == "etcd" && w.terminating(key.name) {
		if _, member := w.voter(ordinalOf(key.name)); member {
			w.fails("%s is evicted, and its claim was deleted", key.name)
		}
	}
	for _, pod := range w.host.list(podKind, key.namespace) {
		if w.host.objects[key] != nil && ready(w.host.objects[key]) && component(w.host.objects[key]) == "etcd" && component(pod) == "etcd" && pod.name != key.name && w.pods[string(pod.GetUID())] != nil && !w.pods[string(pod.GetUID())].serves() {
			if voter, _ := w.voter(ordinalOf(pod.name)); voter {
				w.fails("%s is evicted while %s does not run", key.name, pod.name)
			}
		}
	}
}

// retained reports whether the volume of a claim outlives it.
func (w *world) retained(claim types.UID) bool {
	for _, volume := range w.host.list(schema.GroupKind{Kind: "PersistentVolume"}, "") {
		uid, _, _ := unstructured.NestedString(volume.Object, "spec", "claimRef", "uid")
		policy, _, _ := unstructured.NestedString(volume.Object, "spec", "persistentVolumeReclaimPolicy")
		if uid == string(claim) {
			return policy == "Retain"
		}
	}
	return false
}

// checkRemoval expects of a voter that is removed that those which are left have what it has:
// not only other data (invariant 1). It is asked where the world can't fail, and has that fail
// later.
func (w *world) checkRemoval(m member, left []*process) {
	w.note("  member %s is removed", m.name)
	p := w.holder(m.id)
	same := func(other *process) bool { return other.disk.other == p.disk.other }
	if p != nil && p.disk.other == 0 && len(left) > 0 && !slices.ContainsFunc(left, same) {
		w.broken = m.name + " is removed, and those that are left have other data"
	}
}
