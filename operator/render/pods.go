package render

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// safeToEvict names the volumes of a pod on a node's own disk that may be lost: without it,
// the cluster autoscaler keeps the node for ever
// (https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md).
const safeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"

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

// requireResources sets the resources of the container that a workload is about, or of all
// containers of a Job, which run one after the other.
func requireResources(template map[string]any, component string, resources operatorv1alpha1.Resources) error {
	wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&resources)
	if err != nil || len(wanted) == 0 {
		return err
	}
	for _, field := range []string{"initContainers", "containers"} {
		containers, _, err := unstructured.NestedSlice(template, field)
		if err != nil {
			return err
		}
		long := slices.Contains([]string{ComponentServer, ComponentEtcd, ComponentController}, component)
		if len(containers) == 0 || long && field == "initContainers" {
			continue
		}
		for i := range containers {
			container := containers[i].(map[string]any)
			for kind, amounts := range wanted {
				if err := unstructured.SetNestedField(container, amounts, "resources", kind); err != nil {
					return err
				}
			}
			if err := fit(container, resources); err != nil {
				return err
			}
		}
		if err := unstructured.SetNestedSlice(template, containers, field); err != nil {
			return err
		}
	}
	return nil
}

// fit raises the limits of a container to the requests of the spec, or lowers the requests to its
// limits, where the spec has only one of them: the host refuses a request above its limit.
func fit(container map[string]any, resources operatorv1alpha1.Resources) error {
	given, other, above := resources.Requests, "limits", 1
	if len(given) == 0 {
		given, other, above = resources.Limits, "requests", -1
	}
	if len(resources.Requests) > 0 && len(resources.Limits) > 0 {
		return nil
	}
	for name, amount := range given {
		text, found, err := unstructured.NestedString(container, "resources", other, string(name))
		if !found || err != nil {
			continue
		}
		standing, err := resource.ParseQuantity(text)
		if err != nil {
			return err
		}
		if amount.Cmp(standing) == above {
			if err := unstructured.SetNestedField(container, amount.String(), "resources", other, string(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// scratchVolume is the name that the manifests give the volume in which a Job works.
const scratchVolume = "scratch"

// provisionScratch has the scratch volume of a Job be one of a StorageClass in place of a part
// of the node's disk.
func provisionScratch(template map[string]any, class, size string) error {
	volumes, _, err := unstructured.NestedSlice(template, "volumes")
	if err != nil {
		return err
	}
	for i := range volumes {
		if volumes[i].(map[string]any)["name"] != scratchVolume {
			continue
		}
		quantity, err := resource.ParseQuantity(size)
		if err != nil {
			return err
		}
		spec := corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity}},
		}
		if class != "" {
			spec.StorageClassName = &class
		}
		claim, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
		if err != nil {
			return err
		}
		volumes[i] = map[string]any{"name": scratchVolume, "ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{"spec": claim}}}
	}
	return unstructured.SetNestedSlice(template, volumes, "volumes")
}

// localVolumes returns the names of the volumes that are a part of the node's disk.
func localVolumes(template map[string]any) string {
	volumes, _, _ := unstructured.NestedSlice(template, "volumes")
	var names []string
	for _, volume := range volumes {
		if volume, is := volume.(map[string]any); is && volume["emptyDir"] != nil {
			names = append(names, volume["name"].(string))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

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
