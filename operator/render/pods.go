package render

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// The components of a registry that have pods, as the label of each names them.
const (
	ComponentEtcd       = "etcd"
	ComponentServer     = "server"
	ComponentSnapshot   = "snapshot"
	ComponentController = "controller"
	ComponentBackup     = "backup"
	ComponentRestore    = "restore"
)

// podsOf returns what the spec says of the pods of a component, and of their resources.
func podsOf(spec operatorv1alpha1.ClusterRegistrySpec, component string) (operatorv1alpha1.Pods, operatorv1alpha1.Resources) {
	switch component {
	case ComponentServer:
		return spec.Server.Pods, spec.Server.Resources
	case ComponentEtcd:
		return spec.Etcd.Pods, spec.Etcd.Resources
	case ComponentController:
		return spec.Controllers.Pods, spec.Controllers.Resources
	}
	jobs, etcd := operatorv1alpha1.Jobs{}, spec.Etcd.Pods
	if spec.Jobs != nil {
		jobs = *spec.Jobs
	}
	// They use volumes of etcd's kind, and so run as and where etcd does. Its pods may be kept
	// apart from others, which is nothing to them.
	if jobs.Affinity == nil && etcd.Affinity != nil {
		jobs.Affinity = &corev1.Affinity{NodeAffinity: etcd.Affinity.NodeAffinity}
	}
	if len(jobs.NodeSelector) == 0 {
		jobs.NodeSelector = etcd.NodeSelector
	}
	if len(jobs.Tolerations) == 0 {
		jobs.Tolerations = etcd.Tolerations
	}
	jobs.PriorityClassName = cmp.Or(jobs.PriorityClassName, etcd.PriorityClassName)
	jobs.RuntimeClassName = cmp.Or(jobs.RuntimeClassName, etcd.RuntimeClassName)
	jobs.PodSecurityContext = cmp.Or(jobs.PodSecurityContext, etcd.PodSecurityContext)
	return jobs.Pods, jobs.Resources
}

// dress gives the pods of a workload, whose names are filled in, what the spec says of them
// and what the platform asks for. It changes nothing else.
func dress(in Input, object *unstructured.Unstructured) error {
	template, found, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
	if !found || err != nil {
		return err
	}
	component := object.GetLabels()[operatorv1alpha1.LabelComponent]
	pods, resources := podsOf(in.Registry.Spec, component)
	settings, err := runtime.DefaultUnstructuredConverter.ToUnstructured(podSettings(in.Registry, component, pods))
	if err != nil {
		return err
	}
	delete(settings, "containers")
	maps.Copy(template, settings)
	if err := runAs(template, in.UIDRange, pods.PodSecurityContext); err != nil {
		return err
	}
	if err := requireResources(template, component, resources); err != nil {
		return err
	}
	if jobs := in.Registry.Spec.Jobs; object.GetKind() == "Job" && jobs != nil && jobs.Scratch != nil {
		if err := provisionScratch(template, jobs.Scratch.StorageClassName, backupScratch(in.Registry, in.Volumes)); err != nil {
			return err
		}
	}
	if err := unstructured.SetNestedMap(object.Object, template, "spec", "template", "spec"); err != nil {
		return err
	}
	return mark(in, object, component, pods, localVolumes(template))
}

// podSettings returns the settings of pods that are the same in all of them or come from the
// spec: what is empty is left as the manifests have it.
func podSettings(r *operatorv1alpha1.ClusterRegistry, component string, pods operatorv1alpha1.Pods) *corev1.PodSpec {
	spread := slices.Clone(pods.TopologySpreadConstraints)
	for i := range spread {
		if spread[i].LabelSelector == nil {
			spread[i].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{
				"app.kubernetes.io/name": "clusterregistry", operatorv1alpha1.LabelInstance: r.Name, operatorv1alpha1.LabelComponent: component,
			}}
		}
	}
	var pullSecrets []corev1.LocalObjectReference
	for _, secret := range r.Spec.Images.PullSecrets {
		pullSecrets = append(pullSecrets, corev1.LocalObjectReference{Name: secret.Name})
	}
	out := &corev1.PodSpec{
		Affinity:                  Affinity(pods),
		NodeSelector:              pods.NodeSelector,
		Tolerations:               pods.Tolerations,
		TopologySpreadConstraints: spread,
		PriorityClassName:         pods.PriorityClassName,
		DNSConfig:                 pods.DNSConfig,
		ImagePullSecrets:          pullSecrets,
		// Variables for each Service of the namespace are of no use, can be more than a process
		// may begin with, and could be taken for settings of etcd.
		EnableServiceLinks: new(bool),
	}
	if pods.RuntimeClassName != "" {
		out.RuntimeClassName = &pods.RuntimeClassName
	}
	return out
}

// runAs says as which user pods run: as the manifests say, unless the platform gives a range
// to the namespace; and in any case as the spec says.
func runAs(template map[string]any, uidRange string, wanted *operatorv1alpha1.PodSecurityContext) error {
	if uidRange != "" {
		for _, field := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
			unstructured.RemoveNestedField(template, "securityContext", field)
		}
	}
	if wanted == nil {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err != nil {
		return err
	}
	if wanted.RunAsUser != nil || wanted.RunAsGroup != nil {
		// The files of a volume may be another user's, who ran the pods before. kubelet gives them
		// to the group, unless it goes by the directory alone.
		fields["fsGroupChangePolicy"] = string(corev1.FSGroupChangeAlways)
	}
	for field, value := range fields {
		if err := unstructured.SetNestedField(template, value, "securityContext", field); err != nil {
			return err
		}
	}
	return nil
}
