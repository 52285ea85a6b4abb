package apiservice

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/trust"
)

// TestLeft unregisters a registry of which nothing is rendered, under the conditions of any other.
func TestLeft(t *testing.T) {
	const both = "v1alpha1 v1beta1"
	etcd := func(o *operand.Objects) {
		o.FreezeBy(operatorv1alpha1.ConditionEtcdReady, "this is resolved: EtcdReady: the record is older")
	}
	for _, test := range []struct {
		reason string
		status apiregistrationv1.ConditionStatus
		since  time.Duration
		change func(*Stage, *pass.Pass)
		// left are the versions that stay registered, and says is empty where there is nothing to say.
		left, says string
	}{
		{"no server runs", "False", time.Hour, func(*Stage, *pass.Pass) {}, "", "it is registered again when a server answers, and what keeps the registry from being reconciled is resolved"},
		{"a server is ready", "False", time.Hour, func(s *Stage, _ *pass.Pass) { running(t, s.Objects) }, both, "will hang"},
		{"the host cluster reaches it", "True", time.Hour, func(*Stage, *pass.Pass) {}, both, ""},
		{"just now one has answered", "False", 30 * time.Second, func(*Stage, *pass.Pass) {}, both, "does not reach the servers"},
		{"it is paused", "False", time.Hour, func(_ *Stage, p *pass.Pass) { p.Registry.Spec.Paused = true }, both, "stays registered: nothing is changed until spec.paused is false"},
		{"etcd keeps all else as it is", "False", time.Hour, func(s *Stage, _ *pass.Pass) { etcd(s.Objects) }, "", "no longer registered"},
		{"etcd does, and it is paused", "False", time.Hour, func(s *Stage, p *pass.Pass) {
			etcd(s.Objects)
			p.Registry.Spec.Paused = true
		}, both, "stays registered: nothing is changed until spec.paused is false"},
		{"its CA is not known", "False", time.Hour, func(_ *Stage, p *pass.Pass) { p.Authorities.Serving.Current = nil }, both, "its CAs are not known: Secret fleet-serving-ca"},
		{"its CA is being replaced", "False", time.Hour, func(s *Stage, _ *pass.Pass) { s.Replaced = true }, both, "its serving CA is being replaced"},
		{"its CA is not known, and it is being deleted", "False", time.Hour, func(s *Stage, p *pass.Pass) {
			p.Authorities.Serving.Current, s.Replaced, p.Registry.DeletionTimestamp = nil, true, new(metav1.Now())
		}, "", "no longer registered"},
		{"it is another one's", "False", time.Hour, func(s *Stage, _ *pass.Pass) { s.Registry.Name = "other" }, both, "already serves clusterregistry.k8s.io, from ClusterRegistry team/fleet"},
		{"it is not in the inventory", "False", time.Hour, func(_ *Stage, p *pass.Pass) { p.Registry.Status.Inventory = nil }, both, ""},
	} {
		o := outage(t, operandtest.InstalledAggregated, test.status, test.since, "v1alpha1", "v1beta1")
		o.Registry.Status.Inventory, o.Rendered = registered(), nil
		p := pass.New(o, pass.Found{}.Verdict)
		p.Authorities = &trust.Authorities{Etcd: trust.Authority{Current: []byte("CA")}, Serving: trust.Authority{Source: "Secret fleet-serving-ca", Current: []byte("CA")}}
		stage := Stage{Objects: o, MayAggregate: allowed}
		test.change(&stage, &p)
		v := stage.Left(t.Context(), p)
		if taken := strings.Contains(v.Message, "already serves"); taken != (v.TakenBy == "ClusterRegistry team/fleet") {
			t.Errorf("%s: taken by %q", test.reason, v.TakenBy)
		}
		if got := left(t, o); v.Err != nil || got != test.left || v.Complete() != (test.says == "") || !strings.Contains(v.Message, test.says) {
			t.Errorf("%s: %q is registered: %+v", test.reason, got, v)
		}
		if test.left != "" {
			continue
		}
		if v := stage.Left(t.Context(), p); v.Reason != operatorv1alpha1.ReasonBackendDown || !strings.Contains(v.Message, "is not registered with the host cluster") {
			t.Errorf("%s: after that, %+v", test.reason, v)
		}
	}
}

// TestStoppedWhilePaused says that a registry is registered still whose servers are to be stopped.
func TestStoppedWhilePaused(t *testing.T) {
	o := outage(t, operandtest.InstalledAggregated, "False", time.Hour, "v1alpha1", "v1beta1")
	o.Registry.Status.Inventory, o.Rendered.Stages = registered(), nil
	o.Freeze("spec.paused is false")
	stage := Stage{Objects: o, MayAggregate: allowed, Servers: silent}
	if found := stage.Run(t.Context()); !strings.Contains(found.Message, "stays registered: nothing is changed until spec.paused is false") {
		t.Errorf("%+v", found)
	}
}

// TestLegible reads what decides on a registry of which something else can't be decoded, and
// nothing where that is what can't be.
func TestLegible(t *testing.T) {
	for _, test := range []struct {
		reason  string
		value   any
		path    []string
		legible bool
	}{
		{"something else is broken", "many", []string{"spec", "etcd", "replicas"}, true},
		{"a condition is broken", "many", []string{"status", "conditions"}, true},
		{"whether it is paused is broken", "many", []string{"spec", "paused"}, false},
		{"all of etcd is broken", "many", []string{"spec", "etcd"}, false},
		{"the inventory is broken", "many", []string{"status", "inventory"}, false},
		{"nothing is registered", []any{}, []string{"status", "inventory"}, false},
	} {
		registry := operandtest.New(t, operandtest.InstalledAggregated).Registry
		registry.Spec.Paused, registry.Finalizers, registry.Status.Inventory, registry.DeletionTimestamp = true, []string{"x"}, registered(), new(metav1.Now())
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(registry)
		if err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(tree, test.value, test.path...); err != nil {
			t.Fatal(err)
		}
		got := Legible(&informers.UndecodableError{Object: &unstructured.Unstructured{Object: tree}})
		if (got != nil) != test.legible {
			t.Errorf("%s: %+v", test.reason, got)
		}
		if got != nil && (got.Name != registry.Name || !got.Spec.Paused || got.Spec.Mode != registry.Spec.Mode || len(got.Status.Inventory) != 2 || len(got.Status.History) != 1) {
			t.Errorf("%s: it lacks something: %+v", test.reason, got)
		}
	}
}
