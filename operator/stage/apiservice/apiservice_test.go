package apiservice

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
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
		stage := Stage{Objects: o, Release: version.Release{Version: "v0.1.0", Serves: []string{"v1alpha1"}}, Answering: test.answering}
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
	stage := Stage{Objects: o, Release: version.Release{Version: "v0.1.0", Serves: []string{"v1alpha1"}}, Answering: 1}
	if found := stage.Run(t.Context()); found.Reason != "GroupTaken" || found.TakenBy == "" || !strings.Contains(found.Message, found.TakenBy) {
		t.Errorf("%+v", found)
	}
}
