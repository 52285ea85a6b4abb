package render

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// annotationStage says with which stage an object is applied.
const annotationStage = operatorv1alpha1.GroupName + "/stage"

// Labels returns the labels of everything that belongs to a registry, pods and
// claims included. They never change, as pods of etcd must not.
func Labels(r *operatorv1alpha1.ClusterRegistry) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":        "clusterregistry",
		"app.kubernetes.io/part-of":     "clusterregistry",
		operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy,
		operatorv1alpha1.LabelInstance:  r.Name,
		operatorv1alpha1.LabelNamespace: r.Namespace,
	}
}

// safeToEvict names the volumes of a pod on a node's own disk that may be lost: without it,
// the cluster autoscaler keeps the node for ever
// (https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md).
const safeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"

// mark sets the labels and annotations of pods. Those of the manifests come first: past the
// schema, a label of the spec must not make a pod another's.
func mark(in Input, object *unstructured.Unstructured, component string, pods operatorv1alpha1.Pods, local string) error {
	labels, annotations := map[string]string{}, map[string]string{}
	for key, value := range pods.PodLabels {
		labels[key] = string(value)
	}
	for key, value := range pods.PodAnnotations {
		if !ours(key) {
			annotations[key] = string(value)
		}
	}
	if local != "" && annotations[safeToEvict] == "" {
		annotations[safeToEvict] = local
	}
	if azureIdentity(in, component) {
		labels["azure.workload.identity/use"] = "true"
	}
	for field, wanted := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		given, _, err := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", field)
		if err != nil {
			return err
		}
		maps.Copy(wanted, given)
		if len(wanted) == 0 {
			continue
		}
		if err := unstructured.SetNestedStringMap(object.Object, wanted, "spec", "template", "metadata", field); err != nil {
			return err
		}
	}
	return nil
}

// azureIdentity reports whether the pods of a component sign in to a store by the identity of
// their ServiceAccount in Azure, whose webhook looks at pods with a label of its own.
func azureIdentity(in Input, component string) bool {
	signsIn := func(store operatorv1alpha1.BackupStore) bool {
		return store.Azure != nil && store.ServiceAccountName != ""
	}
	switch component {
	case ComponentBackup:
		return in.Registry.Spec.Backup != nil && signsIn(in.Registry.Spec.Backup.Store)
	case ComponentRestore, ComponentEtcd:
		return in.Restore != nil && signsIn(in.Restore.Store) && (component == ComponentRestore || in.Restore.Lineage != "")
	}
	return false
}
