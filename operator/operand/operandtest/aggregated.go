package operandtest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// APIService returns the APIService of v1alpha1 that a registry in namespace team owns, and
// that leads to the servers of team/fleet, whose CAs are given in PEM.
func APIService(registry string, ca []byte) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.clusterregistry.k8s.io", Labels: map[string]string{
			operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: registry}},
		Spec: apiregistrationv1.APIServiceSpec{Group: "clusterregistry.k8s.io", Version: "v1alpha1", CABundle: ca, Service: &apiregistrationv1.ServiceReference{Namespace: "team", Name: "fleet-server"}},
	}
}
