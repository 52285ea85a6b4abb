package removal

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
)

// Sweep removes what is left elsewhere of a registry that is gone, which happens
// when someone removed the finalizer or the CRD. What is in its namespace goes
// by owner references, or is retained. Every such object brings the registry
// here that it names, at the operator's start, too, and so does an APIService that
// leads to it.
func Sweep(ctx context.Context, host operand.HostCluster, key client.ObjectKey) error {
	services := &apiregistrationv1.APIServiceList{}
	if err := host.Client.List(ctx, services); err != nil {
		return err
	}
	var left []operatorv1alpha1.ObjectReference
	for i := range services.Items {
		service := &services.Items[i]
		if owner := apply.Owner(service); owner == key.String() || owner == "" && apply.Backend(service) == key.String()+contract.ServerSuffix {
			left = append(left, operatorv1alpha1.ObjectReference{Group: apiregistrationv1.GroupName, Kind: "APIService", Name: service.Name})
		}
	}
	labels := client.MatchingLabels{operatorv1alpha1.LabelNamespace: key.Namespace, operatorv1alpha1.LabelInstance: key.Name}
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := host.Client.List(ctx, list, labels); err != nil {
			return err
		}
		for i := range list.Items {
			left = append(left, operatorv1alpha1.ObjectReference{Group: rbacv1.GroupName, Kind: kind, Namespace: list.Items[i].Namespace, Name: list.Items[i].Name})
		}
	}
	_, err := deleteAll(ctx, host, left, key.String())
	return err
}
