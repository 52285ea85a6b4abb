package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/errors"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
)

const root = "../../.."

// explained are the warnings of validators that stay, by a part of their text, and
// why. One that no longer comes up fails TestValidators.
var explained = map[string]string{
	`channel(s) ["alpha"] are not following`: "Early versions are in alpha alone, as the name says; the three names that are recommended have none for them.",
	"unable to inspect the image":            "A test asks no registry. The program that builds releases builds every image for each architecture that the labels name.",
	`["error/error"]`:                        "This follows from images that were not inspected: the Deployment has the affinity that is asked for.",
}

// bundle reads the bundle that is in the repository.
func bundle(t *testing.T) *manifests.Bundle {
	t.Helper()
	b, err := manifests.GetBundleFromDir(filepath.Join(root, "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestValidators has those judge that OperatorHub and "operator-sdk bundle
// validate" have: no error, and no warning but those explained.
func TestValidators(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // the multiarch one would have docker pull images
	b := bundle(t)
	seen := map[string]bool{}
	judge := func(name string, results []errors.ManifestResult) {
		for _, result := range results {
			for _, e := range result.Errors {
				t.Errorf("%s: %v", name, e)
			}
			for _, w := range result.Warnings {
				why, ok := explain(w.Detail)
				if !ok {
					t.Errorf("%s warns, and nothing explains it: %s", name, w.Detail)
				}
				seen[why] = true
			}
		}
	}
	for name, v := range map[string]validator.Validator{
		"bundle": validation.BundleValidator, "csv": validation.ClusterServiceVersionValidator, "crd": validation.CustomResourceDefinitionValidator,
		"operatorhub v2": validation.OperatorHubV2Validator, "good practices": validation.GoodPracticesValidator,
		"capabilities": validation.StandardCapabilitiesValidator, "categories": validation.StandardCategoriesValidator,
		"multiarch": validation.MultipleArchitecturesValidator, "deprecated APIs": validation.AlphaDeprecatedAPIsValidator, "objects": validation.ObjectValidator,
	} {
		objects := []any{b, b.CSV}
		for _, crd := range b.V1CRDs {
			objects = append(objects, crd)
		}
		for _, object := range b.Objects {
			objects = append(objects, object)
		}
		judge(name, v.Validate(append(objects, map[string]string{"k8s-version": "1.37", "container-tools": "none"})...))
	}
	for text, why := range explained {
		if !seen[why] {
			t.Errorf("nobody warns %q any more: take it out", text)
		}
	}
}

func explain(warning string) (why string, ok bool) {
	for text, why := range explained {
		if strings.Contains(warning, text) {
			return why, true
		}
	}
	return "", false
}

// TestComplete compares the bundle with what it is made of.
func TestComplete(t *testing.T) {
	csv := bundle(t).CSV
	if csv.Spec.Replaces == "" || csv.Annotations["olm.skipRange"] == "" || csv.Annotations["createdAt"] == "" {
		t.Errorf("it replaces %q and %q, created at %q", csv.Spec.Replaces, csv.Annotations["olm.skipRange"], csv.Annotations["createdAt"])
	}
	var examples []struct {
		Kind string
		Spec map[string]any
	}
	if err := json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &examples); err != nil {
		t.Fatal(err)
	}
	samples, err := options{source: root}.samples()
	if err != nil || len(samples) != len(examples) {
		t.Errorf("%d examples of %d samples: %v", len(examples), len(samples), err)
	}
	known, err := options{source: root}.releases()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range known {
		for _, image := range r.Runs() {
			name := "/" + image.Name + ":" + image.Tag
			if !slices.ContainsFunc(csv.Spec.RelatedImages, func(i operatorsv1alpha1.RelatedImage) bool { return strings.HasSuffix(i.Image, name) }) {
				t.Errorf("%s is not among the related images", name)
			}
		}
	}
	owned := csv.Spec.CustomResourceDefinitions.Owned[0]
	paths := []string{}
	for _, d := range owned.SpecDescriptors {
		paths = append(paths, d.Path)
	}
	for _, d := range owned.StatusDescriptors {
		paths = append(paths, "status "+d.Path)
	}
	for _, want := range []string{"version", "etcd.replicas", "etcd.storage.size", "images.repository", "status conditions", "status endpoint.url"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is not described, but %v", want, paths)
		}
	}
}

// TestEditorsMayNotAggregate expects that the bundle's operator lets no namespace
// have the host's API group: OLM gives every editor of a namespace the right to
// create registries there.
func TestEditorsMayNotAggregate(t *testing.T) {
	for _, deployment := range bundle(t).CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			for _, variable := range container.Env {
				if variable.Name == aggregatedNamespaces {
					t.Errorf("%s allows it in %q", container.Name, variable.Value)
				}
			}
			if slices.ContainsFunc(container.Args, func(argument string) bool { return strings.HasPrefix(argument, "--aggregated-namespaces") }) {
				t.Errorf("%s allows it by an argument, which a Subscription can't change: %v", container.Name, container.Args)
			}
		}
	}
}

// TestNothingThatOLMRefuses looks for what OLM v0 or v1 can't install.
func TestNothingThatOLMRefuses(t *testing.T) {
	b := bundle(t)
	supported := []string{"ClusterServiceVersion", "CustomResourceDefinition", "ClusterRole", "Service", "PodDisruptionBudget"}
	for _, object := range b.Objects {
		if !slices.Contains(supported, object.GetKind()) {
			t.Errorf("%s %s is in the bundle", object.GetKind(), object.GetName())
		}
		if object.GetNamespace() != "" {
			t.Errorf("%s %s names the namespace %s", object.GetKind(), object.GetName(), object.GetNamespace())
		}
	}
	if len(b.CSV.Spec.APIServiceDefinitions.Owned) > 0 || len(b.CSV.Spec.CustomResourceDefinitions.Required) > 0 {
		t.Error("it owns an APIService, or requires what others own")
	}
}
