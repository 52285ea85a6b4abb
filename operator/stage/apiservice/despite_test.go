package apiservice

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestDespite is about what keeps a registry without a backend registered of all for which nothing
// else is changed, whichever came first, and wherever it is unregistered.
func TestDespite(t *testing.T) {
	const etcd, cas = operatorv1alpha1.ConditionEtcdReady, operatorv1alpha1.ConditionCertificatesReady
	const stopping, ended = "before all servers are stopped", "where the reconcile has ended before"
	unregisters := map[string]func(*Stage, pass.Pass) string{
		"in its stage": func(s *Stage, _ pass.Pass) string { return s.Run(t.Context()).Message },
		stopping: func(s *Stage, _ pass.Pass) string {
			s.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{}
			return Unregister(t.Context(), s.Objects, "v0.2.0").Message
		},
		ended: func(s *Stage, p pass.Pass) string { return s.Left(t.Context(), p).Message },
	}
	for _, test := range []struct {
		reason            string
		paused, forbidden bool
		// found are the parts that make the reconcile read-only, in this order.
		found []string
		// keeps is what it waits for that keeps it registered, if anything does.
		keeps string
	}{
		{reason: "nothing"},
		{reason: "it is paused", paused: true, keeps: "spec.paused is false"},
		{reason: "it may no longer be aggregated", forbidden: true},
		{reason: "it may not, and is paused", paused: true, forbidden: true, keeps: "spec.paused is false"},
		{reason: "etcd is away", found: []string{etcd}},
		{reason: "it may not, and etcd is away", forbidden: true, found: []string{etcd}},
		{reason: "its CAs are not known", found: []string{cas}, keeps: "CertificatesReady"},
		{reason: "it may not, and its CAs are not known", forbidden: true, found: []string{cas}, keeps: "CertificatesReady"},
		{reason: "etcd is away, and its CAs are not known", found: []string{etcd, cas}, keeps: "CertificatesReady"},
	} {
		for where, unregister := range unregisters {
			o := outage(t, operandtest.InstalledAggregated, "False", time.Hour, "v1alpha1", "v1beta1")
			o.Registry.Spec.Paused, o.Registry.Status.Inventory = test.paused, registered()
			p := pass.New(o, pass.Found{}.Verdict)
			p.Authorities.Etcd.Current, p.Authorities.Serving.Current = []byte("CA"), []byte("CA")
			if test.forbidden {
				p.Aggregation = verdict.Waiting(operatorv1alpha1.ReasonAggregationNotAllowed, "no one has allowed it")
			}
			if condition, until := p.Paused(); until != "" && where != ended {
				o.FreezeBy(condition, until)
			}
			for _, condition := range test.found {
				o.FreezeBy(condition, "this is resolved: "+condition)
			}
			says := unregister(&Stage{Objects: o, MayAggregate: allowed, Discovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}, Servers: silent}, p)
			// Its servers are not stopped either while nothing of it is changed.
			if got := left(t, o); (got != "") != (test.keeps != "" || where == stopping && test.forbidden) {
				t.Errorf("%s, %s: %q stays registered: %s", test.reason, where, got, says)
			}
			if where != stopping && !strings.Contains(says, test.keeps) {
				t.Errorf("%s, %s: it says %q", test.reason, where, says)
			}
			const again = "registered again when a server answers, and the registry may be changed again"
			if where == "in its stage" && test.keeps == "" && strings.Contains(says, again) != o.ReadOnly() {
				t.Errorf("%s: it says %q", test.reason, says)
			}
		}
	}
}
