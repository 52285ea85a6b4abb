// Package platforms installs registries, and has them save a backup, under policies that act as
// platforms and organizations do. Nothing of it is the platform itself.
package platforms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestOpenShift has the platform choose the users of pods. Nothing is said of that in the spec.
func TestOpenShift(t *testing.T) {
	e := framework.New(t).WithOperator()
	served, err := e.Kubernetes.Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == "mutatingadmissionpolicies" }) {
		t.Skip("nothing can choose the users: MutatingAdmissionPolicy is served since Kubernetes 1.36")
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace}}
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
		t.Fatal(err)
	}
	e.Update(namespace, func() {
		namespace.Annotations = map[string]string{"openshift.io/sa.scc.uid-range": "1000680000/10000"}
	})
	e.Apply("openshift.yaml", e.Namespace)
	refuses(t, e, "runAsUser must be in the range")
	saves(t, e, registry(e))
}

// TestOrganization has labels, annotations, requests and quotas be asked of all pods, and the
// network be closed.
func TestOrganization(t *testing.T) {
	e := framework.New(t).WithOperator()
	e.Apply("organization.yaml", e.Namespace)
	refuses(t, e, "the label cost-center is required")
	pods := operatorv1alpha1.Pods{
		PodLabels:      map[string]operatorv1alpha1.LabelValue{"cost-center": "42"},
		PodAnnotations: map[string]operatorv1alpha1.AnnotationValue{"sidecar.istio.io/inject": "false"},
	}
	wanted := registry(e)
	wanted.Spec.Server.Pods, wanted.Spec.Etcd.Pods = pods, pods
	wanted.Spec.Controllers = &operatorv1alpha1.Controllers{Health: &operatorv1alpha1.HealthController{}, Pods: pods}
	wanted.Spec.Jobs = &operatorv1alpha1.Jobs{Pods: pods, Scratch: &operatorv1alpha1.Scratch{}}
	saves(t, e, wanted)
}

// TestClosedSystem has no one write in kube-system: an aggregated registry says that it can't be had
// and which mode can, and one of that mode saves a backup.
func TestClosedSystem(t *testing.T) {
	e := framework.New(t).WithOperator()
	e.Apply("closed.yaml", e.Namespace)
	e.Eventually("the policy to refuse a RoleBinding", func(ctx context.Context) error {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "clusterregistry:" + e.Namespace + ":any", Namespace: metav1.NamespaceSystem}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"}}
		err := e.Client.Create(ctx, binding, client.DryRunAll)
		if err == nil {
			return errors.New("it is accepted")
		}
		if !strings.Contains(err.Error(), "is managed") {
			return err
		}
		return nil
	})
	aggregated := e.Sample("aggregated-single.yaml")
	e.Install(aggregated)
	e.WaitCondition(aggregated, operatorv1alpha1.ConditionServerReady, metav1.ConditionFalse, operatorv1alpha1.ReasonHostRefused, "is managed", "mode Independent")
	e.Remove(aggregated)
	saves(t, e, registry(e))
}

// refuses waits until policies are followed that were just applied: one refuses a pod that has
// nothing of what it asks for.
func refuses(t *testing.T, e *framework.Env, why string) {
	t.Helper()
	e.Eventually("the policies to refuse a pod", func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: e.Namespace}, Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1)), FSGroup: new(int64(1)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(bool), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Mi")}}}}}}
		err := e.Client.Create(ctx, pod, client.DryRunAll)
		if err == nil {
			return fmt.Errorf("a pod is accepted that should be refused: %s", why)
		}
		if !strings.Contains(err.Error(), why) {
			return fmt.Errorf("a pod should be refused because %s: %w", why, err)
		}
		return nil
	})
}

// registry returns a small registry that keeps backups on a claim.
func registry(e *framework.Env) *operatorv1alpha1.ClusterRegistry {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "backups"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	e.Create(claim)
	out := e.Sample("independent-nodeport.yaml")
	out.Spec.Server.Service.NodePort, out.Spec.Etcd.Replicas = 0, 1
	out.Spec.Backup = &operatorv1alpha1.Backup{Schedule: "0 0 29 2 *", Store: operatorv1alpha1.BackupStore{PersistentVolumeClaim: &operatorv1alpha1.VolumeStore{ClaimName: claim.Name}}}
	return out
}

// saves installs a registry, and expects it to be ready and to save a backup that is verified:
// pods of all kinds have run then.
func saves(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	e.Install(registry)
	e.WaitReady(registry)
	backup := &operatorv1alpha1.ClusterRegistryBackup{
		ObjectMeta: metav1.ObjectMeta{Name: "first"},
		Spec:       operatorv1alpha1.ClusterRegistryBackupSpec{RegistryRef: operatorv1alpha1.LocalObjectReference{Name: registry.Name}},
	}
	e.Create(backup)
	e.Eventually("the backup to be verified", func(ctx context.Context) error {
		if err := e.Get(ctx, backup.Name, backup); err != nil {
			return err
		}
		if backup.Status.VerifiedTime == nil {
			return fmt.Errorf("it is %s: %s", backup.Status.Phase, backup.Status.Message)
		}
		return nil
	})
	e.Remove(registry)
}
