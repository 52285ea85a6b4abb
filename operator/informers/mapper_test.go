package informers

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestMapper knows backups before the host does, and nothing else.
func TestMapper(t *testing.T) {
	host := meta.NewDefaultRESTMapper([]schema.GroupVersion{operatorv1alpha1.SchemeGroupVersion})
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

// TestCacheWithoutHost makes a cache with all options while the host cluster does not answer.
func TestCacheWithoutHost(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorv1alpha1.AddToScheme, apiregistrationv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	for _, namespaces := range [][]string{nil, {"team"}} {
		options := Options(namespaces)
		options.Scheme, options.Mapper = scheme, Mapper(silent{})
		if _, err := cache.New(&rest.Config{Host: "https://127.0.0.1:1"}, options); err != nil {
			t.Errorf("for the namespaces %q: %v", namespaces, err)
		}
	}
}

// silent is the mapper of a host cluster that does not answer.
type silent struct{ meta.RESTMapper }

var errSilent = errors.New("dial tcp: connection refused")

// RESTMapping implements meta.RESTMapper.
func (silent) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errSilent
}
