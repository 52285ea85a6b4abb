package informers

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestMapper knows backups before the host does, and nothing else.
func TestMapper(t *testing.T) {
	host := meta.NewDefaultRESTMapper([]schema.GroupVersion{operatorv1alpha1.SchemeGroupVersion})
	backups := operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterRegistryBackup")
	early, err := Mapper(host).RESTMapping(backups.GroupKind(), backups.Version)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Mapper(host).RESTMapping(schema.GroupKind{Group: backups.Group, Kind: "ClusterRegistry"}); !meta.IsNoMatchError(err) {
		t.Errorf("another kind that the host does not serve: %v", err)
	}
	host.Add(backups, meta.RESTScopeNamespace)
	served, err := Mapper(host).RESTMapping(backups.GroupKind(), backups.Version)
	if err != nil || served.Resource != early.Resource || served.GroupVersionKind != early.GroupVersionKind || served.Scope.Name() != early.Scope.Name() {
		t.Errorf("the host serves %+v, and known before was %+v: %v", served, early, err)
	}
}
