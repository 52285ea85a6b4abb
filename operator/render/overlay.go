package render

import (
	"maps"
	"path"
	"slices"

	kustomize "sigs.k8s.io/kustomize/api/types"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// overlay returns the kustomization that composes a registry of a layout.
func overlay(in Input, layout string) (kustomize.Kustomization, error) {
	r := in.Registry
	k := kustomize.Kustomization{
		TypeMeta:    kustomize.TypeMeta{APIVersion: kustomize.KustomizationVersion, Kind: kustomize.KustomizationKind},
		Resources:   []string{path.Join(root, layout, "base")},
		Components:  components(in, layout),
		Labels:      []kustomize.Label{{Pairs: Labels(r), IncludeTemplates: true}, {Pairs: map[string]string{"app.kubernetes.io/version": in.Release.Version}}},
		SortOptions: &kustomize.SortOptions{Order: kustomize.LegacySortOrder},
		Images:      images(in),
	}
	if r.Spec.Mode == operatorv1alpha1.ModeAggregated {
		for _, version := range in.Release.Serves {
			k.Resources = append(k.Resources, path.Join(root, layout, "apiservices", version+".yaml"))
		}
	}
	// In one order: what kustomize made of this text is found by it.
	operations := patches(in, layout)
	for _, target := range slices.SortedFunc(maps.Keys(operations), target.compare) {
		if len(operations[target]) == 0 {
			continue
		}
		patch, err := literal(operations[target])
		if err != nil {
			return kustomize.Kustomization{}, err
		}
		k.Patches = append(k.Patches, kustomize.Patch{Patch: string(patch), Target: target.selector()})
	}
	return k, nil
}

func components(in Input, layout string) []string {
	r := in.Registry
	var names []string
	include := func(name string, when bool) {
		if when {
			names = append(names, path.Join(root, layout, "components", name))
		}
	}
	include("serving-ca", r.Spec.TLS.IssuerRef == nil)
	include("managed-etcd", r.Spec.Etcd.External == nil)
	include("snapshot", in.Snapshot != "")
	if backed(in, layout) {
		backupComponents(in, include)
	}
	if restores(in, layout) {
		restoreComponents(in, include)
	}
	include("several-members", len(in.Members) > 1)
	include("several-servers", r.Spec.Server.Replicas > 1)
	include("aggregated", r.Spec.Mode == operatorv1alpha1.ModeAggregated)
	include("independent", r.Spec.Mode == operatorv1alpha1.ModeIndependent)
	include("audit", in.Audit != nil)
	include("encryption", in.Encryption != nil)
	on, aggregated := functions(in), r.Spec.Mode == operatorv1alpha1.ModeAggregated
	if len(on) == 0 {
		exportsComponents(in, include)
		return names
	}
	include("controller", true)
	include("several-controllers", r.Spec.Server.Replicas > 1)
	include("controller-host", aggregated || !in.Environment.Namespaced)
	include("controller-metrics", aggregated)
	include("controller-health", aggregated && slices.Contains(on, contract.HealthFunction))
	include("controller-register-host", aggregated && slices.Contains(on, contract.RegisterHostFunction))
	include("controller-cluster-api", slices.Contains(on, contract.ClusterAPIFunction))
	include("controller-cluster-api-aggregated", aggregated && slices.Contains(on, contract.ClusterAPIFunction))
	exportsComponents(in, include)
	include("controller-exports-aggregated", aggregated && slices.Contains(on, contract.ExportsFunction))
	include("controller-cluster-selections", slices.Contains(on, contract.ClusterSelectionsFunction))
	include("controller-cluster-selections-aggregated", aggregated && slices.Contains(on, contract.ClusterSelectionsFunction))
	include("controller-feed", slices.Contains(on, contract.FeedFunction))
	include("controller-independent", !aggregated)
	return names
}

// exportsComponents includes the bindings by which the controller publishes clusters. What it has
// written goes with them: they stay while a selector is not valid, and nothing is published anew.
func exportsComponents(in Input, include func(name string, when bool)) {
	if ControllerNotAllowed(in.Registry.Namespace, in.Environment) != "" {
		return
	}
	to := Asked(in.Registry).ExportsTo
	include("controller-exports-cluster-profiles", len(to(operatorv1alpha1.ExportClusterProfile)) > 0)
	include("controller-exports-secrets", len(to(operatorv1alpha1.ExportArgoCDSecret)) > 0)
	include("controller-exports-config-maps", len(to(operatorv1alpha1.ExportFluxConfigMap, operatorv1alpha1.ExportKubeconfig)) > 0)
}
