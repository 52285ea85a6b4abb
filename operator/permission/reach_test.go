package permission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/pass/passtest"
)

func labelled(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// TestReach has namespaces that are open, closed, open to others and terminating, and
// registries that may reach others and may not.
func TestReach(t *testing.T) {
	terminating := labelled("ending", map[string]string{"registry.clusterregistry.io/fleet": "team"})
	terminating.Finalizers, terminating.DeletionTimestamp = []string{"a/b"}, &metav1.Time{Time: metav1.Now().Time}
	namespaces := []client.Object{
		labelled("open", map[string]string{"registry.clusterregistry.io/fleet": "team"}), labelled("closed", nil),
		labelled("other", map[string]string{"registry.clusterregistry.io/hub": "team"}), labelled("foreign", map[string]string{"registry.clusterregistry.io/fleet": "elsewhere"}), terminating,
	}
	for _, test := range []struct {
		reason, spec     string
		allowed, managed []string
		want, says       string
	}{
		{"no function", "{}", []string{"*"}, nil, "", ""},
		{"its own namespace needs nothing", "{exports: [{format: ClusterProfile, namespace: team}]}", nil, nil, "team", ""},
		{"an open namespace, of both functions", "{clusterAPI: {namespaces: [open]}, exports: [{format: ClusterProfile, namespace: open}, {format: ClusterProfile, namespace: team}]}", []string{"team"}, nil, "open team", ""},
		{"no administrator has said so", "{clusterAPI: {namespaces: [open, team]}}", []string{"elsewhere"}, nil, "team", "adds team to --aggregated-namespaces"},
		{"an operator of some namespaces", "{clusterAPI: {namespaces: [open]}}", []string{"*"}, []string{"team", "open"}, "", "this operator manages some namespaces only"},
		{"a closed one", "{clusterAPI: {namespaces: [open, closed]}}", []string{"*"}, nil, "open", "kubectl label namespace closed registry.clusterregistry.io/fleet=team"},
		{"open to another registry", "{clusterAPI: {namespaces: [other]}}", []string{"*"}, nil, "", "kubectl label namespace other registry.clusterregistry.io/fleet=team"},
		{"open to a registry of the name elsewhere", "{clusterAPI: {namespaces: [foreign]}}", []string{"*"}, nil, "", "kubectl label namespace foreign"},
		{"a terminating one, and none", "{clusterAPI: {namespaces: [gone, ending]}}", []string{"*"}, nil, "", "kubectl label namespace ending gone "},
	} {
		p := passtest.New(t, "{spec: {mode: Aggregated, etcd: {replicas: 1}, controllers: "+test.spec+"}}", namespaces...)
		found, err := Namespaces{Managed: test.managed, Aggregated: test.allowed}.Reach(t.Context(), p.Pass)
		if err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		if got := strings.Join(found.Namespaces, " "); got != test.want || !strings.Contains(found.Refused, test.says) || (found.Refused == "") != (test.says == "") {
			t.Errorf("%s: it reaches %q, %q", test.reason, got, found.Refused)
		}
	}
}
