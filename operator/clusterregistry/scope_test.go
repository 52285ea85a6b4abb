package clusterregistry

import (
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// released are the releases of these tests.
var released = []version.Release{
	{Version: "v0.1.0", Etcd: "v3.6.14", Helper: "v0.1.0", Layout: "v1", Serves: []string{"v1alpha1"}, Reads: []string{"v1alpha1"}, Stores: "v1alpha1", Host: version.Range{From: "1.34", To: "1.37"}},
	{Version: "v0.2.0", Etcd: "v3.6.14", Helper: "v0.1.0", Layout: "v1", UpgradesFrom: []string{"v0.1.0"}, Serves: []string{"v1alpha1", "v1beta1"}, Reads: []string{"v1alpha1", "v1beta1"}, Stores: "v1alpha1", Host: version.Range{From: "1.35", To: "1.38"}},
	{Version: "v0.3.0", Etcd: "v3.7.3", Helper: "v0.3.0", Layout: "v1", UpgradesFrom: []string{"v0.2.0"}, Serves: []string{"v1beta1"}, Reads: []string{"v1alpha1", "v1beta1"}, Stores: "v1beta1", Host: version.Range{From: "1.35", To: "1.38"}},
	{Version: "v0.4.0", Etcd: "v3.7.3", Helper: "v0.4.0", Layout: "v2", UpgradesFrom: []string{"v0.3.0"}, Serves: []string{"v1beta1"}, Reads: []string{"v1beta1", "v1"}, Stores: "v1", Host: version.Range{From: "1.36", To: "1.39"}},
}

// look returns the scope of a registry with a spec and status in YAML.
func look(t *testing.T, text string) *scope {
	t.Helper()
	r := &operatorv1alpha1.ClusterRegistry{}
	if err := yaml.UnmarshalStrict([]byte(text), r); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	r.Name, r.Namespace, r.UID, r.Generation = "fleet", "team", "1", 7
	operatorv1alpha1.SetDefaults(r)
	return &scope{registry: r, members: memberNames(r, nil), before: *r.Status.DeepCopy(), now: time.Now(), host: "v1.37.1", release: released[0], rendered: &render.Result{}, results: map[string]verdict.Verdict{}}
}

// reading returns a reconciler that reads the given objects.
func reading(t *testing.T, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorv1alpha1.AddToScheme, certmanagerv1.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithStatusSubresource(&operatorv1alpha1.ClusterRegistry{}, &certmanagerv1.Certificate{}).WithObjects(objects...).Build()
	return &Reconciler{Client: c, Live: c, Releases: released, Applier: apply.New(c, c)}
}
