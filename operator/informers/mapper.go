package informers

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Mapper returns a mapper for a cache with Options: they name ClusterRegistryBackups, and a cache
// is not made where it is not known whether a kind is namespaced. While the host does not serve
// them, nothing may be read of them through the cache, which would wait for that.
func Mapper(host meta.RESTMapper) meta.RESTMapper { return mapper{host} }

type mapper struct{ meta.RESTMapper }

// RESTMapping is what the host says, and for ClusterRegistryBackups, which it may not know yet,
// what it will say.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	backups := operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterRegistryBackup")
	if !meta.IsNoMatchError(err) || kind != backups.GroupKind() {
		return mapping, err
	}
	return &meta.RESTMapping{Resource: operatorv1alpha1.SchemeGroupVersion.WithResource("clusterregistrybackups"), GroupVersionKind: backups, Scope: meta.RESTScopeNamespace}, nil
}
