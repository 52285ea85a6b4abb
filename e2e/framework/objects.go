package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Objects returns all objects of every kind that the test's registries consist
// of, what controllers made for them included: all in the test's namespace but
// for the registries themselves, events and what the host puts into each
// namespace; and elsewhere, by their labels. It fails when the host can't
// tell of an API, which is so when an APIService has no backend.
func (e *Env) Objects(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	lists, err := e.Kubernetes.Discovery().ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("ask the host what it serves: %w", err)
	}
	var out []metav1.PartialObjectMetadata
	for _, kind := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		group, err := schema.ParseGroupVersion(kind.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range kind.APIResources {
			if resource.Kind == "Event" || resource.Kind == "ClusterRegistry" {
				continue
			}
			found, err := e.objectsOf(ctx, group.WithKind(resource.Kind), resource.Namespaced)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	slices.SortFunc(out, func(a, b metav1.PartialObjectMetadata) int { return strings.Compare(Name(a), Name(b)) })
	return out, nil
}

func (e *Env) objectsOf(ctx context.Context, kind schema.GroupVersionKind, namespaced bool) ([]metav1.PartialObjectMetadata, error) {
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(kind)
	if err := e.Client.List(ctx, &all, client.MatchingLabels{operatorv1alpha1.LabelNamespace: e.Namespace}); err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
	}
	out := slices.DeleteFunc(all.Items, func(o metav1.PartialObjectMetadata) bool { return o.Namespace == e.Namespace })
	if namespaced {
		all.Items = nil
		if err := e.Client.List(ctx, &all, client.InNamespace(e.Namespace)); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		out = append(out, all.Items...)
	}
	out = slices.DeleteFunc(out, func(o metav1.PartialObjectMetadata) bool {
		return kind.Kind == "ServiceAccount" && o.Name == "default" || kind.Kind == "ConfigMap" && o.Name == "kube-root-ca.crt"
	})
	for i := range out {
		out[i].SetGroupVersionKind(kind)
	}
	return out, nil
}

// Name returns kind, namespace and name of an object, as a person would say it.
func Name(o metav1.PartialObjectMetadata) string {
	return operatorv1alpha1.ObjectReference{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.String()
}
