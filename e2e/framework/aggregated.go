package framework

import (
	"context"
	"slices"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
)

// ServerUser is whom the registry's server is to the host.
const ServerUser = "registry-server"

// HostClient returns a client for the objects that the tests look at.
func HostClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: newScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newScheme knows the objects that the tests look at.
func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiregistrationv1.AddToScheme, apiextensionsv1.AddToScheme, certmanagerv1.AddToScheme, operatorv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// Delegation lets the server ask the host who a caller is and what he may.
func Delegation() []client.Object {
	user := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: ServerUser}}
	return []client.Object{
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "registry", Namespace: metav1.NamespaceSystem}, Subjects: user,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "registry-delegation"}, Subjects: user,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		},
	}
}

// AdmissionReads lets the server read what its admission plugins act on.
func AdmissionReads() []client.Object {
	verbs := []string{"get", "list", "watch"}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "registry"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: verbs},
			{APIGroups: []string{"admissionregistration.k8s.io"}, Verbs: verbs, Resources: []string{
				"mutatingwebhookconfigurations", "validatingwebhookconfigurations",
				"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}},
			{APIGroups: []string{"flowcontrol.apiserver.k8s.io"}, Resources: []string{"flowschemas", "prioritylevelconfigurations"}, Verbs: verbs},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "registry"}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: ServerUser}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "registry"},
		},
	}
}

// Create creates objects; the test fails when one is refused.
func Create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatalf("%T %s: %v", object, object.GetName(), err)
		}
	}
}

// StartReadyHost starts a host that lets a registry's server do what it must,
// and returns the flags for a server behind it; they name no etcd.
func StartReadyHost(t *testing.T, version string) (*Host, []string) {
	t.Helper()
	host := StartHost(t, version, "front-proxy-client")
	Create(t, HostClient(t, host.Config), append(Delegation(), AdmissionReads()...)...)
	return host, host.ServerFlags()
}

// ServerFlags are what a server behind this host's aggregator needs; they name
// no etcd.
func (h *Host) ServerFlags() []string {
	kubeconfig := h.Kubeconfig(ServerUser)
	return []string{"--mode=aggregated", "--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig}
}

// Aggregate puts a server on loopback behind the host's aggregator, as the service of the
// given name, for versions of an API group, the preferred one last. The CA signs the
// server's certificate, which is for NAME.default.svc.
func (h *Host) Aggregate(t *testing.T, name string, port int, ca []byte, group string, versions ...string) {
	t.Helper()
	const namespace = metav1.NamespaceDefault
	Create(t, HostClient(t, h.Config),
		// Only an external name leads from a bare host to loopback.
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Port: int32(port)}}}}) //nolint:gosec // a port
	for priority, version := range versions {
		Create(t, HostClient(t, h.Config), &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: version + "." + group}, Spec: apiregistrationv1.APIServiceSpec{
			Group: group, Version: version, GroupPriorityMinimum: 900, VersionPriority: int32(10 + priority), CABundle: ca, //nolint:gosec // a few
			Service: &apiregistrationv1.ServiceReference{Namespace: namespace, Name: name, Port: new(int32(port))}, //nolint:gosec // a port
		}})
	}
}

// AggregateRegistry puts a registry behind the host's aggregator, and waits until the host
// serves the registry's API.
func (h *Host) AggregateRegistry(t *testing.T, registry *Registry) {
	t.Helper()
	h.Aggregate(t, "registry", registry.Port, registry.CA.PEM, v1beta1.GroupName, "v1alpha1", "v1beta1")
	registryClient, err := versioned.NewForConfig(h.Config)
	if err != nil {
		t.Fatal(err)
	}
	Eventually(t, "the host to serve clusters", func(ctx context.Context) error {
		if _, err := registryClient.ClusterregistryV1alpha1().Clusters().List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
		_, err := registryClient.ClusterregistryV1beta1().Clusters().List(ctx, metav1.ListOptions{})
		return err
	})
}

// StartAggregated starts a host with a registry behind its aggregator, whose
// server gets the flags besides, and waits until the host serves the registry's API.
func StartAggregated(t *testing.T, version string, flags ...string) (*Host, *Registry) {
	t.Helper()
	host, common := StartReadyHost(t, version)
	registry := StartRegistry(t, slices.Concat(common, []string{"--etcd-servers=" + host.Etcd}, flags)...)
	registry.WaitReady(t)
	host.AggregateRegistry(t, registry)
	return host, registry
}
