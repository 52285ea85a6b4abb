// Package operandtest makes registries for the tests of what works on their objects.
package operandtest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/pages/pagestest"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
)

// Complete is appended to the fields of a status in YAML, and says that the registry was
// complete once.
const Complete = ", history: [{version: v0.1.0, state: Completed, startTime: null}]"

// InstalledAggregated is a registry in mode Aggregated that was complete once, with its
// APIService in the inventory.
const InstalledAggregated = `{spec: {mode: Aggregated, etcd: {replicas: 1}}, status: {history: [{version: v0.1.0, state: Completed, startTime: null}],
  inventory: [{group: apiregistration.k8s.io, kind: APIService, name: v1alpha1.clusterregistry.k8s.io}]}}`

// New returns the registry team/fleet with a spec and status in YAML, of which nothing is
// rendered, in a host cluster with the given objects.
func New(t *testing.T, text string, objects ...client.Object) *operand.Objects {
	t.Helper()
	r := &operatorv1alpha1.ClusterRegistry{}
	if err := yaml.UnmarshalStrict([]byte(text), r); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	r.Name, r.Namespace, r.UID, r.Generation = "fleet", "team", "1", 7
	operatorv1alpha1.SetDefaults(r)
	return &operand.Objects{HostCluster: Host(t, objects...), Registry: r, Before: *r.Status.DeepCopy(), Now: time.Now(), Rendered: &render.Result{}}
}

// kinds are those that registries are made of. The client that is a fake looks through all
// kinds of its scheme in each write, and all of Kubernetes' would take most of a test's time.
var kinds = runtime.NewSchemeBuilder(
	corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, networkingv1.AddToScheme, discoveryv1.AddToScheme,
	coordinationv1.AddToScheme, storagev1.AddToScheme, admissionregistrationv1.AddToScheme, operatorv1alpha1.AddToScheme, certmanagerv1.AddToScheme, apiregistrationv1.AddToScheme,
)

// Host returns a host cluster with the given objects.
func Host(t *testing.T, objects ...client.Object) operand.HostCluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := kinds.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithStatusSubresource(&operatorv1alpha1.ClusterRegistry{}, &operatorv1alpha1.ClusterRegistryBackup{}, &certmanagerv1.Certificate{}).WithObjects(objects...).Build()
	return operand.HostCluster{Client: c, Live: pagestest.Reader(t, c), Applier: apply.New(c, c), Events: events.NewFakeRecorder(20)}
}

// Rendered returns an object of which only the kind and the name matter.
func Rendered(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace("team")
	object.SetName(name)
	return object
}

// Secret returns a Secret of the registry with a certificate, in PEM, as cert-manager makes it.
func Secret(name string, certificate []byte) *corev1.Secret {
	labels := map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: "fleet"}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: labels}, Data: map[string][]byte{corev1.TLSCertKey: certificate}}
}

// Servers returns a Deployment of servers that was rolled out, and a pod of it.
func Servers(replicas int32) (*appsv1.Deployment, *corev1.Pod) {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "server:v0.1.0"}}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-server"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: template},
		Status: appsv1.DeploymentStatus{Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-server-x", Labels: map[string]string{operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelComponent: operand.ComponentServer}}, Spec: template.Spec}
	return deployment, pod
}

// RenderServers has a registry's servers rendered as a Deployment, and nothing else.
func RenderServers(o *operand.Objects) {
	deployment := Rendered(appsv1.SchemeGroupVersion.WithKind("Deployment"), "fleet-server")
	o.Rendered = &render.Result{Stages: map[render.Stage][]*unstructured.Unstructured{render.StageServer: {deployment}}}
}

// Serving returns how to reach a host cluster through which a registry serves v1alpha1 and
// v1beta1, or fails.
func Serving(t *testing.T, serves bool) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		group, resource, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/apis/"), "/clusters")
		switch {
		case !serves:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "ServiceUnavailable", "code": 503, "message": "no"}`)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"kind": "Cluster", "apiVersion": %q, "metadata": {"name": "a"}}`, group)
		case strings.HasSuffix(r.URL.Path, "/clusters"+resource) && strings.Contains(r.URL.Path, "/clusters"):
			fmt.Fprintf(w, `{"kind": "ClusterList", "apiVersion": %q, "metadata": {}, "items": []}`, group)
		default:
			fmt.Fprintf(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": %q, "resources": [{"name": "clusters", "kind": "Cluster", "verbs": ["get"]}]}`, group)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}
