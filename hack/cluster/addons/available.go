package addons

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WaitAvailable waits until every Deployment and DaemonSet of the namespaces
// runs all its pods, in their newest form.
func WaitAvailable(ctx context.Context, c client.Client, namespaces ...string) error {
	for _, namespace := range namespaces {
		if err := Wait(ctx, "workloads of "+namespace, func(ctx context.Context) error {
			return Available(ctx, c, namespace)
		}); err != nil {
			return err
		}
	}
	return nil
}

// Available returns nil when every Deployment and DaemonSet of a namespace runs
// all its pods, in their newest form and no other; else what is missing, and
// why pods don't run.
func Available(ctx context.Context, c client.Client, namespace string) error {
	var deployments appsv1.DeploymentList
	var daemonSets appsv1.DaemonSetList
	for _, list := range []client.ObjectList{&deployments, &daemonSets} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	var waiting []string
	for _, d := range deployments.Items {
		if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas < *d.Spec.Replicas || s.AvailableReplicas < *d.Spec.Replicas || s.Replicas > s.UpdatedReplicas {
			waiting = append(waiting, fmt.Sprintf("Deployment %s: %d of %d pods are up to date, %d of %d available", d.Name, s.UpdatedReplicas, *d.Spec.Replicas, s.AvailableReplicas, s.Replicas))
		}
	}
	for _, d := range daemonSets.Items {
		if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedNumberScheduled < s.DesiredNumberScheduled || s.NumberAvailable < s.DesiredNumberScheduled || s.DesiredNumberScheduled == 0 {
			waiting = append(waiting, fmt.Sprintf("DaemonSet %s: %d of %d pods available", d.Name, s.NumberAvailable, s.DesiredNumberScheduled))
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	return fmt.Errorf("%s%s", strings.Join(waiting, "; "), podTrouble(ctx, c, namespace))
}

// podTrouble lists the pods' own words on why they don't run.
func podTrouble(ctx context.Context, c client.Client, namespace string) string {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return ""
	}
	var out strings.Builder
	for _, p := range pods.Items {
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				fmt.Fprintf(&out, "\n  pod %s: %s", p.Name, condition.Message)
			}
		}
		for _, s := range p.Status.ContainerStatuses {
			if w := s.State.Waiting; w != nil {
				fmt.Fprintf(&out, "\n  pod %s: %s %s", p.Name, w.Reason, w.Message)
			}
		}
	}
	return out.String()
}

// CertManagerInstalled reports whether the cluster knows cert-manager's
// Certificates.
func CertManagerInstalled(ctx context.Context, c client.Client) (bool, error) {
	crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	err := c.Get(ctx, client.ObjectKey{Name: "certificates.cert-manager.io"}, crd)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// WaitCertManager waits until cert-manager's webhook admits an Issuer: its
// pods are available some seconds before the API server trusts them.
func WaitCertManager(ctx context.Context, c client.Client) error {
	return Wait(ctx, "cert-manager to admit an Issuer", func(ctx context.Context) error {
		issuer := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cert-manager.io/v1",
			"kind":       "Issuer",
			"metadata":   map[string]any{"name": "probe", "namespace": "default"},
			"spec":       map[string]any{"selfSigned": map[string]any{}},
		}}
		return c.Create(ctx, issuer, client.DryRunAll)
	})
}
