package apiservice

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

func TestAvailability(t *testing.T) {
	const complete = "{spec: {mode: Aggregated}, status: {history: [{version: v0.1.0, state: Completed, startTime: null}]}}"
	const begun = "{spec: {mode: Aggregated}, status: {history: [{version: v0.1.0, state: Progressing, startTime: null}]}}"
	for _, test := range []struct {
		what, registry string
		status         apiregistrationv1.ConditionStatus
		since          time.Duration
		// reason is empty when the host reaches the servers.
		reason string
		after  time.Duration
	}{
		{"it is reached", complete, "True", time.Hour, "", 0},
		{"the host has not looked", complete, "", 0, "NotAvailable", verdict.Soon},
		{"it went away just now", complete, "False", time.Second, "NotAvailable", verdict.Backstop},
		{"soon it is too long", complete, "False", 50 * time.Second, "NotAvailable", 10 * time.Second},
		{"it is down", complete, "False", 61 * time.Second, "BackendDown", 0},
		{"unknown is down, too", complete, "Unknown", time.Hour, "BackendDown", 0},
		{"it was never up: that is an installation", begun, "False", time.Hour, "NotAvailable", verdict.Soon},
	} {
		o := operandtest.New(t, test.registry)
		service := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.clusterregistry.k8s.io"}}
		if test.status != "" {
			service.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: test.status, LastTransitionTime: metav1.NewTime(o.Now.Add(-test.since)), Message: "dial: no route"}}
		}
		v := reached(o, service)
		if (v.Complete()) != (test.reason == "") {
			t.Errorf("%s: %+v", test.what, v)
			continue
		}
		if v.Complete() {
			continue
		}
		if v.Reason != test.reason || v.After.Round(time.Second) != test.after || !strings.Contains(v.Message, service.Name) || test.status != "" && !strings.Contains(v.Message, "dial: no route") {
			t.Errorf("%s: %+v", test.what, v)
		}
		if warns := strings.Contains(v.Message, "deletions of namespaces in the host cluster will hang"); warns != (test.reason == "BackendDown") {
			t.Errorf("%s: %s", test.what, v.Message)
		}
	}
}

// TestRegistration creates an APIService only where a server answers: without one
// it would make deletions of namespaces hang, and an administrator may have
// deleted it for that.
func TestRegistration(t *testing.T) {
	for _, test := range []struct {
		reason     string
		registered bool
		answering  int
		created    bool
	}{
		{"no server answers", false, 0, false},
		{"a server answers", false, 1, true},
		{"it is there: it is kept in order", true, 0, true},
	} {
		var objects []client.Object
		if test.registered {
			objects = append(objects, operandtest.APIService("fleet", nil))
		}
		o := operandtest.New(t, operandtest.InstalledAggregated, objects...)
		service, err := operand.Unstructured(operandtest.APIService("fleet", []byte("CA")))
		if err != nil {
			t.Fatal(err)
		}
		service.SetAPIVersion("apiregistration.k8s.io/v1")
		service.SetKind("APIService")
		o.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageEndpoint: {service}}
		stage := Stage{Objects: o, MayAggregate: allowed, Servers: pass.Servers{Answering: test.answering}}
		v := stage.Run(t.Context())
		current := &apiregistrationv1.APIService{}
		err = o.Client.Get(t.Context(), client.ObjectKey{Name: service.GetName()}, current)
		if created := err == nil && string(current.Spec.CABundle) == "CA"; created != test.created || v.Complete() || test.created == strings.Contains(v.Message, "is created when a server answers") {
			t.Errorf("%s: created %v, %+v", test.reason, created, v)
		}
	}
}

// TestTaken names the registry that has the API group, for what would act through it.
func TestTaken(t *testing.T) {
	o := operandtest.New(t, operandtest.InstalledAggregated, operandtest.APIService("other", nil))
	o.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageEndpoint: {operandtest.Rendered(apiregistrationv1.SchemeGroupVersion.WithKind("APIService"), operandtest.APIService("fleet", nil).Name)}}
	o.Rendered.Stages[render.StageEndpoint][0].SetNamespace("")
	stage := Stage{Objects: o, MayAggregate: allowed, Servers: pass.Servers{Answering: 1}}
	if found := stage.Run(t.Context()); found.Reason != "GroupTaken" || found.TakenBy == "" || !strings.Contains(found.Message, found.TakenBy) {
		t.Errorf("%+v", found)
	}
}

// TestBesideDefinition has a CustomResourceDefinition that serves v1alpha1: v1beta1 is
// registered beside it once a server answers, and the definition is left alone. What another
// registry has taken is left alone as a whole.
func TestBesideDefinition(t *testing.T) {
	of := func(version, registry string) *apiregistrationv1.APIService {
		out := operandtest.APIService(registry, []byte("CA"))
		out.Name, out.Spec.Version = version+"."+Group, version
		return out
	}
	definition := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1." + Group}, Spec: apiregistrationv1.APIServiceSpec{Group: Group, Version: "v1alpha1"}}
	for _, test := range []struct {
		reason     string
		there      []client.Object
		answering  int
		registered bool
		says       string
	}{
		{"a server answers", []client.Object{definition}, 1, true, "already serves v1alpha1 of clusterregistry.k8s.io, from CustomResourceDefinition clusters.clusterregistry.k8s.io, which is left unchanged; v1beta1 is to be registered beside it: kube-apiserver has not checked"},
		{"no server answers", []client.Object{definition}, 0, false, "is created when a server answers"},
		{"another registry has v1beta1", []client.Object{definition, of("v1beta1", "other")}, 1, false, "from ClusterRegistry team/other, which is left unchanged: remove it"},
	} {
		o := operandtest.New(t, operandtest.InstalledAggregated, test.there...)
		if err := o.Client.Create(t.Context(), o.Registry.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		o.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{}
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			service, err := operand.Unstructured(of(version, "fleet"))
			if err != nil {
				t.Fatal(err)
			}
			service.SetAPIVersion("apiregistration.k8s.io/v1")
			service.SetKind("APIService")
			o.Rendered.Stages[render.StageEndpoint] = append(o.Rendered.Stages[render.StageEndpoint], service)
		}
		serves := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{GroupVersion: Group + "/v1alpha1", APIResources: []metav1.APIResource{{Name: "clusters"}}}}}}
		stage := Stage{Objects: o, MayAggregate: allowed, Discovery: serves, Servers: pass.Servers{Answering: test.answering}}
		found := stage.Run(t.Context())
		if found.Reason != "GroupTaken" || found.TakenBy == "" || !strings.Contains(found.Message, test.says) {
			t.Errorf("%s: %+v", test.reason, found)
		}
		current := &apiregistrationv1.APIService{}
		err := o.Client.Get(t.Context(), client.ObjectKey{Name: "v1beta1." + Group}, current)
		if ours := err == nil && apply.Belongs(current, o.Owner()); ours != test.registered {
			t.Errorf("%s: v1beta1 is registered: %v (%v)", test.reason, ours, err)
		}
		if err := o.Client.Get(t.Context(), client.ObjectKey{Name: definition.Name}, current); err != nil || current.Spec.Service != nil {
			t.Errorf("%s: the registration of the definition is %+v: %v", test.reason, current.Spec, err)
		}
	}
}
