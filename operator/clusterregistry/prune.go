package clusterregistry

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
)

// prune deletes what the registry no longer consists of.
func (s *scope) prune(ctx context.Context) error {
	mounted, err := s.mounted(ctx)
	if err != nil {
		return err
	}
	return apply.IgnoreReadOnly(s.Prune(ctx, append(s.made(), mounted...)...))
}

// mounted returns the bundles of CAs that are no longer rendered, and that pods have, or would
// have which are made now: without its bundle no pod starts. There are such while members or
// servers are replaced by those with another one.
func (s *scope) mounted(ctx context.Context) ([]operatorv1alpha1.ObjectReference, error) {
	rendered := s.Rendered.Objects()
	var bundles []operatorv1alpha1.ObjectReference
	for _, reference := range s.Registry.Status.Inventory {
		bundle := strings.HasPrefix(reference.Name, s.Name(contract.EtcdTrustSuffix)+"-") || strings.HasPrefix(reference.Name, s.Name(contract.EtcdClientTrustSuffix)+"-")
		if reference.Kind == "ConfigMap" && bundle && !slices.ContainsFunc(rendered, func(o *unstructured.Unstructured) bool { return apply.Reference(o) == reference }) {
			bundles = append(bundles, reference)
		}
	}
	if len(bundles) == 0 {
		return nil, nil
	}
	used, err := s.podSpecs(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(bundles, func(bundle operatorv1alpha1.ObjectReference) bool {
		return !slices.ContainsFunc(used, func(pod corev1.PodSpec) bool {
			return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == bundle.Name })
		})
	}), nil
}

// podSpecs returns the specs of all pods of the registry, and those of which servers and
// members are made now. Not from the cache, which has no volumes.
func (s *scope) podSpecs(ctx context.Context) ([]corev1.PodSpec, error) {
	pods := &corev1.PodList{}
	err := s.Live.List(ctx, pods, client.InNamespace(s.Registry.Namespace), client.MatchingLabels{
		operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: s.Registry.Name})
	if err != nil {
		return nil, err
	}
	var out []corev1.PodSpec
	for i := range pods.Items {
		out = append(out, pods.Items[i].Spec)
	}
	deployment, set := &appsv1.Deployment{}, &appsv1.StatefulSet{}
	if err := s.Live.Get(ctx, s.Key(contract.ServerSuffix), deployment); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err := s.Live.Get(ctx, s.Key(contract.EtcdSuffix), set); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	return append(out, deployment.Spec.Template.Spec, set.Spec.Template.Spec), nil
}
