package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/hack/install/render"
	releases "github.com/clusterregistry/operator/operator/version"
)

// csvName is the name of the ClusterServiceVersion of a version of the operator.
func csvName(version string) string { return packageName + "." + version }

// csv returns the ClusterServiceVersion: what manifests/olm says of the operator,
// completed from its objects.
func (o options) csv(objects []*unstructured.Unstructured) (map[string]any, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	text, err := os.ReadFile(filepath.Join(o.texts, "clusterserviceversion.yaml"))
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(text, csv); err != nil {
		return nil, fmt.Errorf("clusterserviceversion.yaml: %w", err)
	}
	number, err := semver.Parse(strings.TrimPrefix(o.version, "v"))
	if err != nil {
		return nil, fmt.Errorf("version %q of the operator: %w; write one such as v0.2.0", o.version, err)
	}
	csv.Name = csvName(o.version)
	csv.Spec.Version = version.OperatorVersion{Version: number}
	if o.replaces != "" {
		csv.Spec.Replaces = csvName(o.replaces)
		csv.Annotations["olm.skipRange"] = fmt.Sprintf(">=%s <%s", strings.TrimPrefix(o.replaces, "v"), number)
	}
	csv.Annotations["createdAt"] = o.createdAt
	return o.complete(csv, objects)
}

// complete fills in what follows from the operator's own files.
func (o options) complete(csv *operatorsv1alpha1.ClusterServiceVersion, objects []*unstructured.Unstructured) (map[string]any, error) {
	icon, err := os.ReadFile(filepath.Join(o.texts, "icon.svg"))
	if err != nil {
		return nil, err
	}
	csv.Spec.Icon[0].Data = base64.StdEncoding.EncodeToString(icon)

	known, err := o.releases()
	if err != nil {
		return nil, err
	}
	csv.Spec.MinKubeVersion = minKubeVersion(known)
	csv.Spec.RelatedImages = o.images(known)
	csv.Annotations["containerImage"] = o.operatorImage()
	if csv.Annotations["alm-examples"], err = o.examples(); err != nil {
		return nil, err
	}
	if csv.Spec.InstallStrategy, err = o.strategy(objects); err != nil {
		return nil, err
	}
	for i, kind := range [][2]string{{"clusterregistries", "ClusterRegistry"}, {"clusterregistrybackups", "ClusterRegistryBackup"}, {"clusterselections", "ClusterSelection"}} {
		owned := &csv.Spec.CustomResourceDefinitions.Owned[i]
		owned.Name, owned.Kind, owned.Version = kind[0]+".operator.clusterregistry.io", kind[1], "v1alpha1"
		if err := describe(filepath.Join(o.source, "apis", "operator", "v1alpha1"), owned); err != nil {
			return nil, err
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(csv)
	if err != nil {
		return nil, err
	}
	delete(content, "status") // a bundle reports nothing
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "cleanup")
	return content, nil
}

// minKubeVersion is the oldest host that any release runs on.
func minKubeVersion(known []releases.Release) string {
	oldest := semver.MustParse("999.0.0")
	for _, r := range known {
		if v := semver.MustParse(r.Host.From + ".0"); v.LT(oldest) {
			oldest = v
		}
	}
	return oldest.String()
}

// samples are the files of all samples: those of registries, and of what goes with one.
func (o options) samples() ([]string, error) {
	registries, err := filepath.Glob(filepath.Join(o.source, "manifests", "samples", "*.yaml"))
	if err != nil {
		return nil, err
	}
	others, err := filepath.Glob(filepath.Join(o.source, "manifests", "samples", "*", "*.yaml"))
	return append(registries, others...), err
}

// examples returns the samples as a catalog shows them.
func (o options) examples() (string, error) {
	paths, err := o.samples()
	if err != nil {
		return "", err
	}
	var all []any
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		var example map[string]any
		if err := yaml.Unmarshal(text, &example); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, example)
	}
	out, err := json.MarshalIndent(all, "", "  ")
	return string(out), err
}

// aggregatedNamespaces is the operator's variable with the namespaces whose
// registries may be a part of the host's API.
const aggregatedNamespaces = "AGGREGATED_NAMESPACES"

// notAggregated takes the permission to be a part of the host's API from all
// namespaces: OLM lets every editor of a namespace create registries, and whoever
// installs the operator says in the Subscription where they may be aggregated.
func notAggregated(deployment *appsv1.Deployment) {
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Env = slices.DeleteFunc(container.Env, func(variable corev1.EnvVar) bool { return variable.Name == aggregatedNamespaces })
}

// strategy returns how OLM installs the operator: its Deployment, and what it may
// do.
func (o options) strategy(objects []*unstructured.Unstructured) (operatorsv1alpha1.NamedInstallStrategy, error) {
	var strategy operatorsv1alpha1.NamedInstallStrategy
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		var deployment appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment); err != nil {
			return strategy, err
		}
		delete(deployment.Spec.Template.Annotations, render.DigestAnnotation) // the image itself names what it is
		notAggregated(&deployment)
		rights, err := rightsOf(objects)
		if err != nil {
			return strategy, err
		}
		strategy.StrategyName = operatorsv1alpha1.InstallStrategyNameDeployment
		strategy.StrategySpec = operatorsv1alpha1.StrategyDetailsDeployment{
			DeploymentSpecs:    []operatorsv1alpha1.StrategyDeploymentSpec{{Name: deployment.Name, Spec: deployment.Spec, Label: deployment.Labels}},
			Permissions:        []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: deployment.Spec.Template.Spec.ServiceAccountName, Rules: rights.own}},
			ClusterPermissions: []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: deployment.Spec.Template.Spec.ServiceAccountName, Rules: rights.cluster}},
		}
		return strategy, nil
	}
	return strategy, errors.New("the operator's objects have no Deployment")
}
