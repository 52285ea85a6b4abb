package informers

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Mapper returns a mapper for a cache with Options: a cache is not made where it is not known
// whether a kind that they name is namespaced. That is known of them while the host cluster does
// not answer: an operator that is started then waits for the host cluster, in place of ending, and
// of being started again later each time. And it is known of ClusterRegistryBackups before the
// host serves them. Until then, nothing may be read of them through the cache, which would wait
// for that.
func Mapper(host meta.RESTMapper) meta.RESTMapper { return mapper{host} }

type mapper struct{ meta.RESTMapper }

// RESTMapping is what the host says, and where it can't say it now, what it will say.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil || meta.IsNoMatchError(err) && kind != backups.GroupKind() {
		return mapping, err
	}
	if known, knownErr := named.RESTMapping(kind, versions...); knownErr == nil {
		return known, nil
	}
	return mapping, err
}

var backups = operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterRegistryBackup")

// named knows the kinds that Options names.
var named = func() meta.RESTMapper {
	out := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterRegistry"), backups, rbacv1.SchemeGroupVersion.WithKind("RoleBinding")} {
		out.Add(kind, meta.RESTScopeNamespace)
	}
	for _, kind := range []schema.GroupVersionKind{apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), namespaceKind, corev1.SchemeGroupVersion.WithKind("Node"), apiregistrationv1.SchemeGroupVersion.WithKind("APIService")} {
		out.Add(kind, meta.RESTScopeRoot)
	}
	return out
}()
