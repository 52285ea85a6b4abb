package apiservice

import (
	"strings"
	"testing"
	"time"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
)

// registered are the APIServices of both versions of the API, as an inventory has them.
func registered() []operatorv1alpha1.ObjectReference {
	var out []operatorv1alpha1.ObjectReference
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		out = append(out, operatorv1alpha1.ObjectReference{Group: apiregistrationv1.GroupName, Kind: "APIService", Name: version + "." + Group})
	}
	return out
}

// stopping is a registry with both versions of the API in its inventory, of which the first ones
// are not rendered any more.
func stopping(t *testing.T, left int) *operand.Objects {
	t.Helper()
	o := outage(t, operandtest.InstalledAggregated, "True", time.Hour, "v1alpha1", "v1beta1")
	o.Registry.Status.Inventory = registered()
	o.Rendered.Stages[render.StageEndpoint] = o.Rendered.Stages[render.StageEndpoint][2-left:]
	return o
}

// held has a finalizer keep the APIService of a version.
func held(t *testing.T, o *operand.Objects, version string) {
	t.Helper()
	service := &apiregistrationv1.APIService{}
	if err := o.Client.Get(t.Context(), client.ObjectKey{Name: version + "." + Group}, service); err != nil {
		t.Fatal(err)
	}
	service.Finalizers = []string{"team/holds"}
	if err := o.Client.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
}

// TestStopped has nothing rendered to register, as while all servers are stopped: the
// registration goes before they do, and does not come back while one still answers.
func TestStopped(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(*operand.Objects)
		// left are the versions that stay registered, and says is what it waits for, if anything.
		left, says string
	}{
		{"all servers are to be stopped", func(*operand.Objects) {}, "", ""},
		{"etcd keeps all else as it is", func(o *operand.Objects) {
			o.FreezeBy(operatorv1alpha1.ConditionEtcdReady, "this is resolved: EtcdReady: it is another etcd")
		}, "", ""},
		{"it is paused", func(o *operand.Objects) { o.Freeze("spec.paused is false") }, "v1alpha1 v1beta1", ""},
		{"the CAs are not known", func(o *operand.Objects) {
			o.FreezeBy(operatorv1alpha1.ConditionCertificatesReady, "this is resolved: CertificatesReady: CAMissing")
		}, "v1alpha1 v1beta1", ""},
		{"a finalizer keeps the first one, and no other", func(o *operand.Objects) { held(t, o, "v1alpha1") }, "v1alpha1", "waiting for APIService v1alpha1." + Group + " to be deleted, before all servers are stopped"},
	} {
		o := stopping(t, 0)
		test.change(o)
		v := Unregister(t.Context(), o, "v0.2.0")
		if !v.Complete() && !strings.Contains(v.Message, "before all servers are stopped") {
			t.Errorf("%s: at first, %+v", test.reason, v)
		}
		v = Unregister(t.Context(), o, "v0.2.0")
		if v.Err != nil || v.Complete() != (test.says == "") || !strings.Contains(v.Message, test.says) {
			t.Errorf("%s: %+v", test.reason, v)
		}
		if got := left(t, o); got != test.left {
			t.Errorf("%s: %q stays registered", test.reason, got)
		}
		if test.left != "" {
			continue
		}
		stage := Stage{Objects: o, MayAggregate: allowed, Servers: pass.Servers{Answering: 1}}
		if found := stage.Run(t.Context()); found.Complete() || !strings.Contains(found.Message, "not registered with the host cluster while all servers are stopped") {
			t.Errorf("%s: %+v", test.reason, found)
		}
	}
}

// TestVersionTakenAway unregisters what the servers to come lack, and that alone: while nothing is
// changed for etcd's sake, these do not come.
func TestVersionTakenAway(t *testing.T) {
	o := stopping(t, 1)
	if v := Unregister(t.Context(), o, "v0.2.0"); v.Complete() || !strings.Contains(v.Message, "a version that v0.2.0 does not serve") || left(t, o) != "v1beta1" {
		t.Errorf("%q stays registered: %+v", left(t, o), v)
	}
	o = stopping(t, 1)
	o.FreezeBy(operatorv1alpha1.ConditionEtcdReady, "this is resolved: EtcdReady: it is another etcd")
	if v := Unregister(t.Context(), o, "v0.2.0"); !v.Complete() || left(t, o) != "v1alpha1 v1beta1" {
		t.Errorf("etcd is another one, and %q stays registered: %+v", left(t, o), v)
	}
}
