package simulation

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// asks has a person make a change of the spec, or of the annotations.
func (w *world) asks(what string, how func(*operatorv1alpha1.ClusterRegistry)) {
	w.note("a person: %s", what)
	r := w.registry().DeepCopy()
	how(r)
	tree, err := treeOf(r)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.host.update(key, func(stored *unstructured.Unstructured) error {
		stored.Object["spec"] = tree.Object["spec"]
		stored.SetAnnotations(tree.GetAnnotations())
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
}

// begins has a person create the registry, with so many etcd members.
func (w *world) begins(replicas int64) { w.creates(w.spec(replicas)) }

// spec is that of a registry with so many etcd members.
func (w *world) spec(replicas int64) map[string]any {
	return map[string]any{"version": w.version, "mode": w.mode, "etcd": map[string]any{"replicas": replicas}, "server": map[string]any{"replicas": int64(2)}}
}

// creates has a person create the registry.
func (w *world) creates(spec map[string]any) {
	w.make(operatorv1alpha1.SchemeGroupVersion.String(), "ClusterRegistry", key.namespace, key.name, map[string]any{"spec": spec})
	w.writes = true
}
