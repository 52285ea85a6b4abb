package informers

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Options limits the operator's memory to what it needs: registries of the
// namespaces that it watches (all when there are none named), its own objects by
// their label, the name of one CRD, namespaces, nodes, and all APIServices: one that
// has lost its labels still leads to a registry. Of each object it holds what onlyRead
// leaves.
func Options(namespaces []string) cache.Options {
	options := cache.Options{
		DefaultTransform: onlyRead,
		// For all kinds: those of cert-manager can't be named before they exist.
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy}),
		ByObject: map[client.Object]cache.ByObject{
			&operatorv1alpha1.ClusterRegistry{}: {Label: labels.Everything()},
			// People create these, without labels.
			&operatorv1alpha1.ClusterRegistryBackup{}: {Label: labels.Everything()},
			CertificatesCRD():                         {Label: labels.Everything(), Field: fields.OneTermEqualSelector(metav1.ObjectNameField, certificatesCRD)},
			Namespace():                               {Label: labels.Everything()},
			&corev1.Node{}:                            {Label: labels.Everything()},
			&apiregistrationv1.APIService{}:           {Label: labels.Everything()},
		},
	}
	if len(namespaces) == 0 {
		return options
	}
	// One permission of a registry's servers is elsewhere: to read in kube-system who the
	// host's aggregator is.
	bindings := map[string]cache.Config{metav1.NamespaceSystem: {}}
	for _, namespace := range namespaces {
		bindings[namespace] = cache.Config{}
	}
	options.ByObject[&rbacv1.RoleBinding{}] = cache.ByObject{Namespaces: bindings}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}
