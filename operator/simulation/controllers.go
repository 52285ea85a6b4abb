package simulation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/internal/contract"
)

var (
	setKind        = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	jobKind        = schema.GroupKind{Group: "batch", Kind: "Job"}
)

// collect removes what the owner of is gone.
func (w *world) collect() {
	owners := map[types.UID]bool{}
	for _, object := range w.host.objects {
		owners[object.GetUID()] = true
	}
	for _, kind := range []schema.GroupKind{podKind, setKind, deploymentKind, jobKind, configKind, secretKind, claimKind} {
		for _, object := range w.host.list(kind, "") {
			if owner := object.owner(); owner != "" && !owners[owner] {
				_ = w.host.delete(object.id, nil, false) // refused is later
			}
		}
	}
}

// revisionOf is a digest of what pods are made from.
func revisionOf(owner *stored) string {
	return once(owner, "revision", func() string {
		template, _, _ := unstructured.NestedFieldNoCopy(owner.Object, "spec", "template")
		text, err := json.Marshal(template)
		must(err) // a tree that came from JSON
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:5])
	})
}

// pod makes a pod of a StatefulSet, a Deployment or a Job.
func (w *world) pod(owner *stored, name, revision string, ordinal int) {
	template, _, _ := unstructured.NestedMap(owner.Object, "spec", "template")
	tree := &unstructured.Unstructured{Object: template}
	tree.SetAPIVersion("v1")
	tree.SetKind("Pod")
	tree.SetNamespace(owner.namespace)
	tree.SetName(name)
	labels := tree.GetLabels()
	if labels["app.kubernetes.io/managed-by"] == "" {
		w.t.Fatalf("pods of %s are not labeled", owner.id)
	}
	labels["controller-revision-hash"] = revision
	tree.SetLabels(labels)
	tree.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	must(unstructured.SetNestedField(tree.Object, fmt.Sprintf("n%d", ordinal%nodes), "spec", "nodeName"))
	if _, err := w.host.create(tree); err != nil {
		w.t.Fatalf("make pod %s: %v", name, err)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// children returns the pods of an owner, by ordinal or name.
func (w *world) children(owner *stored) (out []*stored) {
	for _, pod := range w.host.list(podKind, owner.namespace) {
		if pod.owner() == owner.GetUID() {
			out = append(out, pod)
		}
	}
	return out
}

// runSet is the controller of StatefulSets: pods are made at once, and replaced by others.
func (w *world) runSet() {
	for _, set := range w.host.list(setKind, "") {
		if set.GetDeletionTimestamp() != nil {
			continue
		}
		replicas, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
		revision, readies, updated := revisionOf(set), int64(0), int64(0)
		for ordinal := range replicas {
			w.claim(set, ordinal)
			name := fmt.Sprintf("%s-%d", set.name, ordinal)
			if found := w.host.objects[id{podKind, set.namespace, name}]; found == nil {
				w.pod(set, name, revision, int(ordinal))
			} else if found.owner() == "" { // it is adopted
				tree := found.DeepCopy()
				tree.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())})
				w.host.store(found, tree)
			}
		}
		pods := w.children(set)
		for _, pod := range pods {
			if ordinal := ordinalOf(pod.name); int64(ordinal) >= replicas {
				must(w.host.delete(pod.id, nil, false))
			}
			readies += boolean(ready(pod))
			updated += boolean(pod.GetLabels()["controller-revision-hash"] == revision)
		}
		w.status(w.host.objects[set.id], map[string]any{"observedGeneration": set.GetGeneration(), "replicas": int64(len(pods)), "readyReplicas": readies, "updatedReplicas": updated, "updateRevision": revision, "currentRevision": revision})
	}
}

func ordinalOf(name string) int {
	ordinal := 0
	_, err := fmt.Sscanf(name, "fleet-etcd-%d", &ordinal)
	must(err)
	return ordinal
}

// claim makes the claim of a pod of a StatefulSet.
func (w *world) claim(set *stored, ordinal int64) {
	name := contract.EtcdMemberClaim(fmt.Sprintf("%s-%d", set.name, ordinal))
	if w.host.objects[id{claimKind, set.namespace, name}] != nil {
		return
	}
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	template := templates[0].(map[string]any)
	tree := &unstructured.Unstructured{Object: template}
	tree.SetAPIVersion("v1")
	tree.SetKind("PersistentVolumeClaim")
	tree.SetNamespace(set.namespace)
	tree.SetName(name)
	labels := tree.GetLabels()
	selector, _, _ := unstructured.NestedStringMap(set.Object, "spec", "selector", "matchLabels")
	for name, value := range selector {
		labels[name] = value
	}
	tree.SetLabels(labels)
	_, err := w.host.create(tree)
	must(err)
}

// runDeployment is the controller of Deployments: one pod more than desired at a time, and none
// fewer.
func (w *world) runDeployment() {
	for _, deployment := range w.host.list(deploymentKind, "") {
		replicas, _, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
		revision := revisionOf(deployment)
		var newer, older []*stored
		readies, leaving := int64(0), int64(0)
		for _, pod := range w.children(deployment) {
			switch {
			case pod.GetDeletionTimestamp() != nil:
				leaving++
				continue
			case pod.GetLabels()["controller-revision-hash"] == revision:
				newer = append(newer, pod)
			default:
				older = append(older, pod)
			}
			readies += boolean(ready(pod))
		}
		all := int64(len(newer) + len(older))
		switch {
		case int64(len(newer)) < replicas && all <= replicas:
			w.host.uids++
			w.pod(deployment, fmt.Sprintf("%s-%s-%d", deployment.name, revision, w.host.uids), revision, w.random.IntN(nodes))
		case len(older) > 0 && (readies > replicas || replicas == 0 || !ready(older[0])):
			must(w.host.delete(older[0].id, nil, false))
		case int64(len(newer)) > replicas:
			must(w.host.delete(newer[0].id, nil, false))
		}
		if current := w.host.objects[deployment.id]; current != nil {
			w.status(current, map[string]any{"observedGeneration": deployment.GetGeneration(), "replicas": all, "updatedReplicas": int64(len(newer)), "readyReplicas": readies, "availableReplicas": readies, "unavailableReplicas": max(0, replicas-readies)})
		}
	}
}
