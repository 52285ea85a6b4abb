package integration

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
)

// serverUser is whom the registry's server is to the host.
const serverUser = "registry-server"

// hostClient returns a client for the objects that register a server.
func hostClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// delegation lets the server ask the host who a caller is and what he may.
func delegation() []client.Object {
	user := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: serverUser}}
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

// admissionReads lets the server read what its admission plugins act on.
func admissionReads() []client.Object {
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
			ObjectMeta: metav1.ObjectMeta{Name: "registry"}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: serverUser}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "registry"},
		},
	}
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatalf("%T %s: %v", object, object.GetName(), err)
		}
	}
}

// readyHost starts a host that lets a registry's server do what it must, and
// returns the flags for a server behind it; they name no etcd.
func readyHost(t *testing.T, version string) (*framework.Host, []string) {
	t.Helper()
	host := framework.StartHost(t, version, "front-proxy-client")
	create(t, hostClient(t, host.Config), append(delegation(), admissionReads()...)...)
	return host, hostFlags(host)
}

func hostFlags(host *framework.Host) []string {
	kubeconfig := host.Kubeconfig(serverUser)
	return []string{"--mode=aggregated", "--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig}
}

// aggregated starts a host with a registry behind its aggregator, and waits
// until the host serves the registry's API.
func aggregated(t *testing.T, version string, flags ...string) (*framework.Host, *framework.Registry) {
	t.Helper()
	host, common := readyHost(t, version)
	registry := framework.StartRegistry(t, slices.Concat(common, []string{"--etcd-servers=" + host.Etcd}, flags)...)
	registry.WaitReady(t)
	create(t, hostClient(t, host.Config),
		// Only an external name leads from a bare host to loopback.
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "registry", Namespace: "default"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Port: int32(registry.Port)}}}}, //nolint:gosec // a port
		&apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.clusterregistry.k8s.io"}, Spec: apiregistrationv1.APIServiceSpec{
			Group: "clusterregistry.k8s.io", Version: "v1alpha1", GroupPriorityMinimum: 900, VersionPriority: 10, CABundle: registry.CA.PEM,
			Service: &apiregistrationv1.ServiceReference{Namespace: "default", Name: "registry", Port: new(int32(registry.Port))}, //nolint:gosec // a port
		}})
	registryClient, err := versioned.NewForConfig(host.Config)
	if err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the host to serve clusters", func(ctx context.Context) error {
		_, err := registryClient.ClusterregistryV1alpha1().Clusters().List(ctx, metav1.ListOptions{})
		return err
	})
	return host, registry
}

func TestServerRefusesMissingPermissions(t *testing.T) {
	host := framework.StartHost(t, newest, "front-proxy-client")
	flags := append(hostFlags(host), "--etcd-servers="+host.Etcd)
	says := func(want string, flags ...string) {
		t.Helper()
		if said := framework.StartRegistry(t, flags...).WaitRefused(t); !strings.Contains(said, want) {
			t.Errorf("%q is missing in: %s", want, said)
		}
	}
	says("bind the server's ServiceAccount to the Role extension-apiserver-authentication-reader", flags...)
	create(t, hostClient(t, host.Config), delegation()...)
	says(`\"list\" on \"validatingadmissionpolicies\" in API group \"admissionregistration.k8s.io\"`, flags...)
	framework.StartRegistry(t, append(flags, "--tolerate-missing-admission-permissions")...).WaitReady(t)
}

func TestServerRefusesAnyFrontProxy(t *testing.T) {
	host := framework.StartHost(t, newest)
	create(t, hostClient(t, host.Config), append(delegation(), admissionReads()...)...)
	said := framework.StartRegistry(t, append(hostFlags(host), "--etcd-servers="+host.Etcd)...).WaitRefused(t)
	if !strings.Contains(said, "requestheader-allowed-names is empty") || !strings.Contains(said, "--requestheader-allowed-names=NAME") {
		t.Errorf("it said: %s", said)
	}
}
