package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/hack/cluster/addons"
)

// fieldOwner owns what is applied here.
const fieldOwner = client.FieldOwner("clusterregistry-install")

// up applies the objects and waits until the operator is rolled out. It puts no
// older definition of its API in the place of a newer one, unless downgrade is true.
func up(ctx context.Context, c client.Client, out io.Writer, objects []*unstructured.Unstructured, downgrade bool) error {
	if !downgrade {
		if err := noDowngrade(ctx, c, objects); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s: %w", describe(object), err)
		}
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := await(ctx, out, describe(object)+" to be served", func(ctx context.Context) error {
			return established(ctx, c, object)
		}); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d objects are applied\n", len(objects))
	installed, err := addons.CertManagerInstalled(ctx, c)
	if err != nil {
		return err
	}
	if !installed {
		fmt.Fprintln(out, "cert-manager is not installed: registries wait until it is (https://cert-manager.io/docs/installation)")
	}
	if err := await(ctx, out, "the operator to be rolled out", func(ctx context.Context) error {
		return rolledOut(ctx, c, objects)
	}); err != nil {
		return fmt.Errorf("%w\nsee what it says: kubectl --namespace=clusterregistry-system logs deployment/clusterregistry-operator", err)
	}
	fmt.Fprintln(out, "the operator runs")
	return nil
}

// await is addons.Wait that tells what is awaited, each thing once.
func await(ctx context.Context, out io.Writer, what string, check func(context.Context) error) error {
	told := map[string]bool{}
	return addons.Wait(ctx, what, func(ctx context.Context) error {
		err := check(ctx)
		if err != nil && !told[err.Error()] {
			told[err.Error()] = true
			fmt.Fprintf(out, "waiting for %s: %v\n", what, err)
		}
		return err
	})
}

// established returns nil when the API of a definition is served.
func established(ctx context.Context, c client.Client, crd *unstructured.Unstructured) error {
	live := crd.NewEmptyInstance().(*unstructured.Unstructured)
	if err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
		return err
	}
	for _, condition := range conditions(live) {
		if condition["type"] == "Established" && condition["status"] == "True" {
			return nil
		}
	}
	return errors.New("it is not Established yet")
}

// rolledOut returns nil when all pods of the Deployments' namespaces are as
// applied.
func rolledOut(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		if err := addons.Available(ctx, c, object.GetNamespace()); err != nil {
			return err
		}
	}
	return nil
}

// conditions returns the conditions of an object's status.
func conditions(object *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	var out []map[string]any
	for _, item := range list {
		if condition, ok := item.(map[string]any); ok {
			out = append(out, condition)
		}
	}
	return out
}

func describe(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}
