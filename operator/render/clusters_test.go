package render

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
)

// customGroup is the priority that a host cluster gives each group of a
// CustomResourceDefinition (autoregister_controller.go of kube-apiserver), and customVersion that
// of its versions.
const customGroup, customVersion = 1000, 100

// TestClustersOfOthers has a registry beside other projects that have a kind Cluster: kubectl finds
// theirs by "clusters" and "cluster", which people and scripts there type, and never the registry's,
// whose group comes after that of any CustomResourceDefinition. Those have the name crc.
func TestClustersOfOthers(t *testing.T) {
	for _, release := range allReleases(t) {
		ours := map[string]bool{}
		var services []*apiregistrationv1.APIService
		for _, objects := range rendered(t, inputOf(t, release, "aggregated-single")).Stages {
			for _, object := range objects {
				if object.GetKind() != "APIService" {
					continue
				}
				service := &apiregistrationv1.APIService{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, service); err != nil {
					t.Fatal(err)
				}
				services, ours[service.Spec.Group] = append(services, service), true
			}
		}
		if len(ours) != 1 {
			t.Fatalf("%s registers %v", release.Version, ours)
		}
		for _, of := range []schema.GroupVersion{{Group: "cluster.x-k8s.io", Version: "v1beta2"}, {Group: "management.cattle.io", Version: "v3"}, {Group: "postgresql.cnpg.io", Version: "v1"}, {Group: "a.example", Version: "v1alpha1"}} {
			with := append([]*apiregistrationv1.APIService{{ObjectMeta: metav1.ObjectMeta{Name: of.Version + "." + of.Group}, Spec: apiregistrationv1.APIServiceSpec{Group: of.Group, Version: of.Version, GroupPriorityMinimum: customGroup, VersionPriority: customVersion}}}, services...)
			mapper := restmapper.NewDiscoveryRESTMapper(discovered(with))
			for _, typed := range []string{"clusters", "cluster"} {
				if found, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: typed}); err != nil || found.Group != of.Group {
					t.Errorf("%s: beside %s, %q is %v, %v", release.Version, of.Group, typed, found, err)
				}
			}
		}
	}
}

// discovered is what a host cluster tells of its groups, in the order that it has them in.
func discovered(services []*apiregistrationv1.APIService) (out []*restmapper.APIGroupResources) {
	for _, group := range helper.SortedByGroupAndVersion(services) {
		of := &restmapper.APIGroupResources{Group: metav1.APIGroup{Name: group[0].Spec.Group}, VersionedResources: map[string][]metav1.APIResource{}}
		for _, service := range group {
			version := metav1.GroupVersionForDiscovery{GroupVersion: service.Spec.Group + "/" + service.Spec.Version, Version: service.Spec.Version}
			of.Group.Versions = append(of.Group.Versions, version)
			of.VersionedResources[service.Spec.Version] = []metav1.APIResource{{Name: "clusters", SingularName: "cluster", Kind: "Cluster"}}
		}
		of.Group.PreferredVersion = of.Group.Versions[0]
		out = append(out, of)
	}
	return out
}
