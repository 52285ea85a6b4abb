package clusterregistry

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
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
	s := newScope(operandtest.New(t, text))
	s.HostVersion, s.Release = "v1.37.1", released[0]
	return s
}

// reading returns a reconciler in a host cluster with the given objects, which is that of
// a scope from then on, if there is one.
func reading(t *testing.T, s *scope, objects ...client.Object) *Reconciler {
	t.Helper()
	r := &Reconciler{HostCluster: operandtest.Host(t, objects...), Releases: released}
	if s != nil {
		s.HostCluster = r.HostCluster
	}
	return r
}

// ready returns the scope of a complete registry that is ready, in a mode.
func ready(t *testing.T, mode string) *scope {
	t.Helper()
	s := look(t, "{spec: {version: v0.1.0, mode: "+mode+", etcd: {replicas: 3}}, status: {version: v0.1.0"+operandtest.Complete+"}}")
	for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
		s.record(kind, done)
	}
	return s
}

// TestRegisteredFirst has a registry that was never complete be looked after as far as its
// registration with the host cluster, which may have to be taken back.
func TestRegisteredFirst(t *testing.T) {
	for text, want := range map[string]bool{
		"{spec: {mode: Aggregated}}": false,
		"{spec: {mode: Aggregated}, status: {inventory: [{kind: Service, name: fleet-server}]}}":                                                      false,
		"{spec: {mode: Aggregated}, status: {inventory: [{group: apiregistration.k8s.io, kind: APIService, name: v1alpha1.clusterregistry.k8s.io}]}}": true,
	} {
		s := look(t, text)
		s.Rendered = &render.Result{}
		if got := s.record(operatorv1alpha1.ConditionServerReady, verdict.Waiting("ReplicasNotReady", "0 of 2")); got != want {
			t.Errorf("%s: what follows the servers is reached: %t", text, got)
		}
	}
}
