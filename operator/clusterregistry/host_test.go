package clusterregistry

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
)

// TestHostFlaps observes an aggregated registry while the host's control plane is
// upgraded, and any of its API servers may answer: the servers are not replaced
// with each answer.
func TestHostFlaps(t *testing.T) {
	s := look(t, "{spec: {mode: Aggregated, version: v0.1.0, etcd: {external: {tlsSecretRef: {name: etcd}}}}}")
	deployment, _ := operandtest.Servers(2)
	deployment.Spec.Template.Annotations = map[string]string{operatorv1alpha1.AnnotationHostVersion: "1.36"}
	r := reading(t, s, s.Registry, deployment)
	host := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	r.Discovery = host
	for _, answer := range []string{"v1.36.3", "v1.37.1", "v1.36.3", "v1.37.1", "v1.37.1", "v1.36.3"} {
		host.FakedServerVersion = &version.Info{GitVersion: answer}
		seen, err := r.observe(t.Context(), client.ObjectKeyFromObject(s.Registry))
		if err != nil {
			t.Fatal(err)
		}
		if got := seen.input(render.Environment{}).HostVersion; got != "1.36" || seen.HostVersion != answer || seen.Registry.Status.HostVersion != answer {
			t.Errorf("the host says %s, and servers are made for %s", answer, got)
		}
	}
}

// TestHostToRender says when servers follow the host.
func TestHostToRender(t *testing.T) {
	type heard struct {
		minutes int
		answer  string
	}
	for _, test := range []struct {
		reason, mode, made string
		answers            []heard
		want               string
	}{
		{"the first servers", "Aggregated", "", []heard{{0, "v1.37.1"}}, "1.37"},
		{"nothing has changed", "Aggregated", "1.37", []heard{{0, "v1.37.1"}}, "1.37"},
		{"a patch release", "Aggregated", "1.37", []heard{{0, "v1.37.1"}, {30, "v1.37.2"}}, "1.37"},
		{"the host may be newer", "Aggregated", "1.36", []heard{{0, "v1.37.1"}, {9, "v1.37.1"}}, "1.36"},
		{"the host is newer", "Aggregated", "1.36", []heard{{0, "v1.37.1"}, {10, "v1.37.1"}}, "1.37"},
		{"the old one has answered in between", "Aggregated", "1.36", []heard{{0, "v1.37.1"}, {5, "v1.36.3"}, {6, "v1.37.1"}, {11, "v1.37.1"}}, "1.36"},
		{"an old one answers for a while", "Aggregated", "1.37", []heard{{0, "v1.36.3"}, {59, "v1.36.3"}}, "1.37"},
		{"the host was turned back", "Aggregated", "1.37", []heard{{0, "v1.36.3"}, {60, "v1.36.3"}}, "1.36"},
		{"somebody has written nonsense", "Aggregated", "new", []heard{{0, "v1.37.1"}}, "1.37"},
		{"a registry of its own does not depend on it", "Independent", "1.36", []heard{{0, "v1.37.1"}}, "1.37"},
	} {
		s := look(t, "{spec: {mode: "+test.mode+"}}")
		r := reading(t, s)
		if test.made != "" {
			deployment, _ := operandtest.Servers(2)
			deployment.Spec.Template.Annotations = map[string]string{operatorv1alpha1.AnnotationHostVersion: test.made}
			r = reading(t, s, deployment)
		}
		begin, got := s.Now, ""
		for _, a := range test.answers {
			var err error
			s.HostVersion, s.Now = a.answer, begin.Add(time.Duration(a.minutes)*time.Minute)
			if got, err = r.hostToRender(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.reason, got, test.want)
		}
	}
}
