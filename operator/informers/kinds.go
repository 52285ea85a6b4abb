package informers

import (
	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owned returns an object of each kind that registries consist of and that the host
// always serves.
func Owned() []client.Object {
	kinds := []client.Object{&corev1.Service{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &batchv1.Job{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &apiregistrationv1.APIService{}}
	for _, kind := range unread {
		kinds = append(kinds, MetadataOf(kind))
	}
	return kinds
}

// Lease returns the metadata of a Lease of a controller. It is owned, too, but what
// changes every two seconds is of no interest: see Reported.
func Lease() *metav1.PartialObjectMetadata { return MetadataOf(leaseKind) }

var leaseKind = coordinationv1.SchemeGroupVersion.WithKind("Lease")

// Issued returns an object of each kind that registries consist of and that cert-manager
// brings. Before it is installed, none can be watched.
func Issued() []client.Object {
	return []client.Object{&certmanagerv1.Certificate{}, MetadataOf(issuerKind)}
}

// unread are the kinds of objects of which nothing is read but whether they have
// changed. The operator holds no more than their metadata: the label that its cache
// selects by is for anyone to set, and a ConfigMap can have a megabyte.
var unread = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
}

var issuerKind = certmanagerv1.SchemeGroupVersion.WithKind(certmanagerv1.IssuerKind)

// MetadataOnly returns the owned and issued kinds of which the cache has no more than
// the metadata, for apply.New: what they contain is read from the host.
func MetadataOnly() []schema.GroupKind {
	out := []schema.GroupKind{issuerKind.GroupKind(), leaseKind.GroupKind()}
	for _, kind := range unread {
		out = append(out, kind.GroupKind())
	}
	return out
}

// MetadataOf returns an empty object that stands for a kind of which only the metadata
// is watched or read.
func MetadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// Namespace returns the metadata of a namespace, which is all that is read of one.
func Namespace() *metav1.PartialObjectMetadata { return MetadataOf(namespaceKind) }

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// certificatesCRD is what tells that cert-manager is installed.
const certificatesCRD = "certificates.cert-manager.io"

// CertificatesCRD returns the metadata, with its name set, of the only CRD that is
// watched: the one that tells that cert-manager is installed.
func CertificatesCRD() *metav1.PartialObjectMetadata {
	crd := MetadataOf(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.Name = certificatesCRD
	return crd
}
