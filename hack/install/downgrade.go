package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// downgradeVariable is the variable that lets an older definition take the place of
// a newer one.
const downgradeVariable = "DOWNGRADE"

// noDowngrade returns an error when the cluster's definition of an API has versions,
// fields or values that the one to be applied has not. The cluster would drop those
// fields from every object that is written, and refuse the values.
func noDowngrade(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		live := object.NewEmptyInstance().(*unstructured.Unstructured)
		err := c.Get(ctx, client.ObjectKeyFromObject(object), live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", describe(object), err)
		}
		if lost := missing(definedIn(live), definedIn(object)); len(lost) > 0 {
			return fmt.Errorf("the cluster has a newer %s than this checkout, which lacks %s: registries that use that could no longer be changed, or would lose it; "+
				"install from the checkout that it comes from, or, if you mean to go back, run \"make install %s=1\"", describe(object), few(lost), downgradeVariable)
		}
	}
	return nil
}

// missing returns what the cluster has and the checkout has not, sorted.
func missing(installed, wanted map[string]bool) []string {
	var out []string
	for what := range installed {
		if !wanted[what] {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	var short []string
	for _, what := range out {
		// A field that is missing stands for all that is in it.
		if len(short) == 0 || !strings.HasPrefix(what, short[len(short)-1]) {
			short = append(short, what)
		}
	}
	return short
}

// definedIn returns what a definition knows: each version, each field and each value
// of a list of values.
func definedIn(crd *unstructured.Unstructured) map[string]bool {
	out := map[string]bool{}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, one := range versions {
		version, _ := one.(map[string]any)
		name := fmt.Sprint(version["name"])
		out[name] = true
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		defined(out, name, schema)
	}
	return out
}

// defined adds what is below a schema.
func defined(out map[string]bool, path string, schema map[string]any) {
	values, _, _ := unstructured.NestedSlice(schema, "enum")
	for _, value := range values {
		out[fmt.Sprintf("%s = %v", path, value)] = true
	}
	properties, _, _ := unstructured.NestedMap(schema, "properties")
	for name, property := range properties {
		below := path + "." + name
		out[below] = true
		if schema, ok := property.(map[string]any); ok {
			defined(out, below, schema)
		}
	}
	for _, inside := range []string{"items", "additionalProperties"} {
		if schema, found, _ := unstructured.NestedMap(schema, inside); found {
			defined(out, path+"[]", schema)
		}
	}
}

// few joins what is missing, and counts the rest of a long list.
func few(all []string) string {
	const most = 5
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
