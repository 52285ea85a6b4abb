package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// down removes the objects: the operator first, then what it may do, the
// definition of its API and its namespace. It refuses while a registry exists,
// which only the operator can take apart. What is gone already is no error.
func down(ctx context.Context, c client.Client, out io.Writer, objects []*unstructured.Unstructured) error {
	if err := noRegistries(ctx, c); err != nil {
		return err
	}
	for _, object := range removalOrder(objects) {
		if object.GetKind() == "CustomResourceDefinition" {
			// One may have been created since, and nobody is left to act on it:
			// removing the definition would wait for its finalizer forever.
			if err := noRegistries(ctx, c); err != nil {
				return fmt.Errorf("%w; run make install first, because the operator is removed already", err)
			}
		}
		if object.GetKind() == "Namespace" {
			keep, err := claims(ctx, c, object.GetName())
			if err != nil {
				return err
			}
			if len(keep) > 0 {
				fmt.Fprintf(out, "the namespace %s stays, because the data of deleted registries is in it: %s\n", object.GetName(), strings.Join(keep, ", "))
				continue
			}
		}
		if err := remove(ctx, c, out, object); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "the operator is not installed any more")
	return nil
}

// removalOrder returns the objects in the order in which to remove them.
func removalOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	// Between first and last, nothing depends on the order.
	ranks := map[string]int{"Deployment": -1, "CustomResourceDefinition": 1, "Namespace": 2}
	return slices.SortedStableFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int {
		return ranks[a.GetKind()] - ranks[b.GetKind()]
	})
}

// noRegistries returns an error that lists the registries of all namespaces.
func noRegistries(ctx context.Context, c client.Client) error {
	var registries operatorv1alpha1.ClusterRegistryList
	err := c.List(ctx, &registries)
	// Without the definition there can be none.
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the registries: %w", err)
	}
	if len(registries.Items) == 0 {
		return nil
	}
	var text strings.Builder
	for _, r := range registries.Items {
		fmt.Fprintf(&text, "\n  kubectl delete creg --namespace=%s %s", r.Namespace, r.Name)
	}
	return fmt.Errorf("registries exist, and only the operator can take them apart; delete them first, and wait until they are gone:%s", text.String())
}

// claims returns the names of the volume claims in a namespace.
func claims(ctx context.Context, c client.Client, namespace string) ([]string, error) {
	var list corev1.PersistentVolumeClaimList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the volume claims in %s: %w", namespace, err)
	}
	var names []string
	for _, claim := range list.Items {
		names = append(names, "PersistentVolumeClaim "+claim.Name)
	}
	return names, nil
}

// remove deletes an object, a Deployment with its pods, and waits until it is
// gone.
func remove(ctx context.Context, c client.Client, out io.Writer, object *unstructured.Unstructured) error {
	what := describe(object)
	policy := metav1.DeletePropagationBackground
	if object.GetKind() == "Deployment" {
		policy = metav1.DeletePropagationForeground
	}
	err := c.Delete(ctx, object, client.PropagationPolicy(policy))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", what, err)
	}
	if err := await(ctx, out, what+" to be gone", func(ctx context.Context) error {
		return gone(ctx, c, object)
	}); err != nil {
		return err
	}
	if err == nil {
		fmt.Fprintf(out, "%s is removed\n", what)
	}
	return nil
}

// gone returns nil when an object does not exist, and, of a Deployment, no pod
// either. The error says what holds it up.
func gone(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	live := object.NewEmptyInstance().(*unstructured.Unstructured)
	err := c.Get(ctx, client.ObjectKeyFromObject(object), live)
	if err == nil {
		reasons := []string{"it still exists"}
		for _, condition := range conditions(live) {
			kind := fmt.Sprint(condition["type"])
			if condition["status"] == "True" && (kind == "Terminating" || strings.HasPrefix(kind, "Namespace")) {
				reasons = append(reasons, fmt.Sprint(condition["message"]))
			}
		}
		return errors.New(strings.Join(reasons, "; "))
	}
	if client.IgnoreNotFound(err) != nil || object.GetKind() != "Deployment" {
		return client.IgnoreNotFound(err)
	}
	labels, _, err := unstructured.NestedStringMap(object.Object, "spec", "selector", "matchLabels")
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(object.GetNamespace()), client.MatchingLabels(labels)); err != nil {
		return err
	}
	if n := len(pods.Items); n > 0 {
		return fmt.Errorf("%d pods still end", n)
	}
	return nil
}
