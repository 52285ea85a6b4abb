package operand

import (
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Secret returns a Secret by its name in the registry's namespace, nil when there is none.
// Secrets are not cached: the operator may not list them, and is to keep none. Each reconcile
// reads those that it needs, once.
func (o *Objects) Secret(ctx context.Context, name string) (*corev1.Secret, error) {
	if secret, read := o.Secrets.get(name); read {
		return secret, nil
	}
	return o.SecretNow(ctx, name)
}

// SecretNow reads a Secret as Secret does, even if it was read before: for what must not be
// decided by how it was a moment ago.
func (o *Objects) SecretNow(ctx context.Context, name string) (*corev1.Secret, error) {
	if name == "" {
		return nil, nil // past the schema; the host cluster would call it an error
	}
	secret := &corev1.Secret{}
	err := o.Live.Get(ctx, client.ObjectKey{Namespace: o.Registry.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		secret, err = nil, nil
	}
	if err == nil {
		o.Secrets.keep(name, secret)
	}
	return secret, err
}

// SecretValue returns a value of a Secret, nil when there is none.
func (o *Objects) SecretValue(ctx context.Context, name, key string) ([]byte, error) {
	secret, err := o.Secret(ctx, name)
	if err != nil || secret == nil {
		return nil, err
	}
	return secret.Data[key], nil
}

// Pods returns the pods of a component, by name, as the cache has them now.
func (o *Objects) Pods(ctx context.Context, component string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := o.Client.List(ctx, list, client.InNamespace(o.Registry.Namespace), client.MatchingLabels{
		operatorv1alpha1.LabelInstance: o.Registry.Name, operatorv1alpha1.LabelComponent: component})
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, err
}

// Running returns the pods that have not ended for good, as those have that were evicted
// for want of a node's resources: the host cluster keeps them for a while.
func Running(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	})
}

// Ready returns the pods that kubelet finds ready, at an address, and that are not terminating.
func Ready(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		return !diagnose.Ready(&pod) || pod.DeletionTimestamp != nil || pod.Status.PodIP == ""
	})
}

// Staying returns the pods but for those that are terminating: one that ends has been
// replaced already.
func Staying(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// Deployment returns the Deployment of the servers, nil when there is none.
func (o *Objects) Deployment(ctx context.Context) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	err := o.Client.Get(ctx, o.Key(contract.ServerSuffix), deployment)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return deployment, err
}

// Applied reads the only rendered object of a stage that has the kind of into, as it is
// after it was applied, and is done when that is known. Until the cache has that, it would
// report what was before; and there may be none, when nothing may be made at the moment,
// which may last: what ends that is said.
func (o *Objects) Applied(ctx context.Context, stage render.Stage, into client.Object) verdict.Verdict {
	kind, err := apiutil.GVKForObject(into, o.Client.Scheme())
	if err != nil {
		return verdict.Failed(err)
	}
	i := slices.IndexFunc(o.Rendered.Stages[stage], func(u *unstructured.Unstructured) bool { return u.GroupVersionKind() == kind })
	desired := o.Rendered.Stages[stage][i]
	err = o.Client.Get(ctx, client.ObjectKeyFromObject(desired), into)
	switch {
	case apierrors.IsNotFound(err) && o.ReadOnly():
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "%s %s does not exist, and nothing is made until %s", kind.Kind, desired.GetName(), o.ReadOnlyUntil()).In(verdict.Vigil)
	case apierrors.IsNotFound(err):
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "%s %s does not exist yet", kind.Kind, desired.GetName()).In(verdict.Soon)
	case err != nil:
		return verdict.Failed(err)
	case o.Applier.Behind(desired, into):
		return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "%s %s was changed just now", kind.Kind, desired.GetName()).In(time.Second).DegradedIf(o.Installed())
	}
	return verdict.Verdict{}
}
