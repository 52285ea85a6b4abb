package informers

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/history"
)

// onlyRead strips an object of all that is not read through the cache: the label that
// selects what the operator holds is for anyone to set, and an object can have more
// than a megabyte. What was applied is compared with the object as the host has it
// (apply.Applier). APIServices stay whole; only administrators make them.
func onlyRead(object any) (any, error) {
	switch o := object.(type) {
	case *unstructured.Unstructured:
		return onlyReadTree(o)
	default:
		out := onlyFields(o)
		if out == nil {
			return cache.TransformStripManagedFields()(object)
		}
		bound(out)
		return out, nil
	}
}

// onlyFields leaves of an object the fields that are read, and returns nil for one that
// stays whole.
func onlyFields(object any) any {
	switch o := object.(type) {
	case *metav1.PartialObjectMetadata:
		switch o.GroupVersionKind() {
		case leaseKind:
			return onlyReport(o)
		case namespaceKind:
			return onlyOpened(o)
		}
		return &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: onlyIdentity(o.ObjectMeta)}
	case *operatorv1alpha1.ClusterRegistry:
		out := &operatorv1alpha1.ClusterRegistry{ObjectMeta: onlyIdentity(o.ObjectMeta)}
		out.Annotations = digests(o.Annotations, operatorv1alpha1.AnnotationReplaceMember, operatorv1alpha1.AnnotationDefragment)
		return onlyPlace(o, out)
	case *corev1.Node:
		return &corev1.Node{ObjectMeta: onlyIdentity(o.ObjectMeta), Status: corev1.NodeStatus{Addresses: o.Status.Addresses}}
	case *corev1.Pod:
		return onlyState(o)
	case *corev1.Service:
		ports := o.Spec.Ports[:min(1, len(o.Spec.Ports))]
		return &corev1.Service{ObjectMeta: onlyIdentity(o.ObjectMeta), Spec: corev1.ServiceSpec{Type: o.Spec.Type, Ports: append([]corev1.ServicePort(nil), ports...)}, Status: o.Status}
	case *corev1.PersistentVolumeClaim:
		return &corev1.PersistentVolumeClaim{ObjectMeta: onlyIdentity(o.ObjectMeta), Status: o.Status}
	case *batchv1.Job:
		out := &batchv1.Job{ObjectMeta: onlyIdentity(o.ObjectMeta), Status: o.Status}
		out.Annotations = only(o.Annotations, operatorv1alpha1.AnnotationSnapshot, operatorv1alpha1.AnnotationBackup)
		return out
	case *operatorv1alpha1.ClusterRegistryBackup:
		out := &operatorv1alpha1.ClusterRegistryBackup{ObjectMeta: onlyIdentity(o.ObjectMeta), Spec: o.Spec, Status: o.Status}
		out.Annotations = only(o.Annotations, operatorv1alpha1.AnnotationBackupReason, operatorv1alpha1.AnnotationVerify)
		if controllerutil.ContainsFinalizer(o, operatorv1alpha1.FinalizerBackup) {
			out.Finalizers = []string{operatorv1alpha1.FinalizerBackup} // anyone may add others
		}
		return out
	case *appsv1.Deployment:
		return onlyRollout(o)
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: onlyIdentity(o.ObjectMeta), Spec: appsv1.StatefulSetSpec{Replicas: o.Spec.Replicas}, Status: o.Status}
	case *certmanagerv1.Certificate:
		return &certmanagerv1.Certificate{ObjectMeta: onlyIdentity(o.ObjectMeta), Spec: certmanagerv1.CertificateSpec{IsCA: o.Spec.IsCA}, Status: o.Status}
	}
	return nil
}

// onlyPlace adds to what is left of a registry what keeps its place in the host cluster's API: its
// mode, and whether it was complete once.
func onlyPlace(registry, out *operatorv1alpha1.ClusterRegistry) *operatorv1alpha1.ClusterRegistry {
	out.Spec.Mode = registry.Spec.Mode
	if history.Installed(registry) {
		out.Status.History = []operatorv1alpha1.Transition{{State: operatorv1alpha1.TransitionCompleted}}
	}
	return out
}

// onlyReport leaves of a Lease what tells whether its controller has reported anything
// new.
func onlyReport(lease *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{TypeMeta: lease.TypeMeta, ObjectMeta: onlyIdentity(lease.ObjectMeta)}
	out.Annotations = digests(lease.Annotations, contract.ControllerStatusAnnotation)
	return out
}

// digests leaves of some annotations what tells whether they have changed: whoever may
// write the object chooses how long they are.
func digests(annotations map[string]string, keys ...string) map[string]string {
	out := only(annotations, keys...)
	for key, value := range out {
		out[key] = fmt.Sprintf("%x", sha256.Sum256([]byte(value)))
	}
	return out
}

// opened is to how many registries a namespace may be opened for the operator to see that
// at once. One with more labels has the operator see others of them when it next looks at
// their registries.
const opened = 100

// onlyOpened leaves of a namespace which registries it is opened to.
func onlyOpened(namespace *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{TypeMeta: namespace.TypeMeta, ObjectMeta: onlyIdentity(namespace.ObjectMeta)}
	var keys []string
	for key := range namespace.Labels {
		if strings.HasPrefix(key, contract.NamespaceLabel("")) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys[:min(opened, len(keys))] {
		metav1.SetMetaDataLabel(&out.ObjectMeta, key, namespace.Labels[key])
	}
	return out
}

// Reported tells changes of a Lease that matter from its renewals, which come every two
// seconds: what its controller reports, and whose the Lease is. That it is not renewed
// any more, no change tells.
func Reported(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() || !maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil)
}

// onlyIdentity leaves of metadata who an object is, whose, and in which state.
func onlyIdentity(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion, Generation: meta.Generation,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
		Labels: only(meta.Labels, operatorv1alpha1.LabelManagedBy, operatorv1alpha1.LabelNamespace, operatorv1alpha1.LabelInstance, operatorv1alpha1.LabelComponent, appsv1.ControllerRevisionHashLabelKey, batchv1.ControllerUidLabel)}
}

// only leaves some keys of a map.
func only(all map[string]string, keys ...string) map[string]string {
	var out map[string]string
	for _, key := range keys {
		if value, has := all[key]; has {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// onlyState leaves of a pod what it runs and how that goes.
func onlyState(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: onlyIdentity(pod.ObjectMeta), Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName}, Status: pod.Status}
	for _, container := range pod.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Name: container.Name, Image: container.Image, Resources: container.Resources})
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			out.Spec.Volumes = append(out.Spec.Volumes, corev1.Volume{Name: volume.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: volume.PersistentVolumeClaim}})
		}
	}
	return out
}

// onlyRollout leaves of a Deployment what its servers are made for, and how far they
// are rolled out.
func onlyRollout(deployment *appsv1.Deployment) *appsv1.Deployment {
	out := &appsv1.Deployment{ObjectMeta: onlyIdentity(deployment.ObjectMeta), Spec: appsv1.DeploymentSpec{Replicas: deployment.Spec.Replicas}, Status: deployment.Status}
	template := deployment.Spec.Template
	out.Spec.Template.Annotations = only(template.Annotations, operatorv1alpha1.AnnotationHostVersion)
	for _, container := range template.Spec.Containers[:min(1, len(template.Spec.Containers))] {
		left := corev1.Container{Name: container.Name, Image: container.Image}
		if slices.Contains(container.Args, contract.HidingFlag) {
			left.Args = []string{contract.HidingFlag}
		}
		out.Spec.Template.Spec.Containers = []corev1.Container{left}
	}
	return out
}
