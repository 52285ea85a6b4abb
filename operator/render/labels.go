package render

import operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"

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
