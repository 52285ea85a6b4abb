package apiservice

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
)

// mapped is a client of a host cluster that serves the kinds of a mapper.
type mapped struct {
	client.Client
	mapper meta.RESTMapper
}

func (m mapped) RESTMapper() meta.RESTMapper { return m.mapper }

// deleting has the registry's writer delete APIServices.
func deleting(o *operand.Objects) *operand.Objects {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{apiregistrationv1.SchemeGroupVersion})
	mapper.Add(apiregistrationv1.SchemeGroupVersion.WithKind("APIService"), meta.RESTScopeRoot)
	o.Client = mapped{o.Client, mapper}
	o.Applier = apply.New(o.Client, o.Live)
	return o
}

// TestReleased unregisters a registry when neither the host cluster nor the operator has reached a
// server for a minute, and for no other reason.
func TestReleased(t *testing.T) {
	const begun = "{spec: {mode: Aggregated}, status: {history: [{version: v0.1.0, state: Progressing, startTime: null}]}}"
	for _, test := range []struct {
		reason, registry string
		status           apiregistrationv1.ConditionStatus
		since            time.Duration
		answering        int
		readOnly         bool
		released         bool
	}{
		{"no one answers", operandtest.InstalledAggregated, "False", 2 * time.Minute, 0, false, true},
		{"the host cluster does not know", operandtest.InstalledAggregated, "Unknown", 2 * time.Minute, 0, false, true},
		{"a server answers the operator", operandtest.InstalledAggregated, "False", 2 * time.Minute, 1, false, false},
		{"a server answers the host cluster", operandtest.InstalledAggregated, "True", 2 * time.Minute, 0, false, false},
		{"just now one has answered", operandtest.InstalledAggregated, "False", 50 * time.Second, 0, false, false},
		{"the host cluster has not looked", operandtest.InstalledAggregated, "", 0, 0, false, false},
		{"it never answered", begun, "False", time.Hour, 0, false, false},
		{"it is paused", operandtest.InstalledAggregated, "False", time.Hour, 0, true, false},
	} {
		there := operandtest.APIService("fleet", []byte("CA"))
		if test.status != "" {
			there.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: test.status, LastTransitionTime: metav1.NewTime(time.Now().Add(-test.since))}}
		}
		o := deleting(operandtest.New(t, test.registry, there))
		if test.readOnly {
			o.Freeze("it is no longer paused")
		}
		service := operandtest.Rendered(apiregistrationv1.SchemeGroupVersion.WithKind("APIService"), there.Name)
		service.SetNamespace("")
		o.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageEndpoint: {service}}
		stage := Stage{Objects: o, Servers: pass.Servers{Answering: test.answering}}
		found := stage.Run(t.Context())
		err := o.Client.Get(t.Context(), client.ObjectKeyFromObject(there), &apiregistrationv1.APIService{})
		if apierrors.IsNotFound(err) != test.released || strings.Contains(found.Message, "no longer registered") != test.released {
			t.Errorf("%s: %v, %+v", test.reason, err, found)
		}
		if !test.released {
			continue
		}
		if found = stage.Run(t.Context()); found.Reason != operatorv1alpha1.ReasonBackendDown || !strings.Contains(found.Message, "is created when a server answers") {
			t.Errorf("%s: afterwards, it is %+v", test.reason, found)
		}
		stage.Servers.Answering = 1
		stage.Run(t.Context())
		if err := o.Client.Get(t.Context(), client.ObjectKeyFromObject(there), &apiregistrationv1.APIService{}); err != nil {
			t.Errorf("%s: a server answers again, and it is not registered: %v", test.reason, err)
		}
	}
}

// TestStopped has nothing rendered to register, as while all servers are stopped: the
// registration goes before they do, and does not come back while one still answers.
func TestStopped(t *testing.T) {
	there := operandtest.APIService("fleet", []byte("CA"))
	o := deleting(operandtest.New(t, operandtest.InstalledAggregated, there))
	o.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{{Group: "apiregistration.k8s.io", Kind: "APIService", Name: there.Name}}
	o.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{}
	var said string
	for range 3 {
		v := Unregister(t.Context(), o, "v0.2.0")
		if v.Err != nil {
			t.Fatal(v.Err)
		}
		if v.Complete() {
			break
		}
		said = v.Message
	}
	if !strings.Contains(said, "before all servers are stopped") {
		t.Errorf("it says %q", said)
	}
	if err := o.Client.Get(t.Context(), client.ObjectKeyFromObject(there), &apiregistrationv1.APIService{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still registered: %v", err)
	}
	stage := Stage{Objects: o, Servers: pass.Servers{Answering: 1}}
	if found := stage.Run(t.Context()); found.Complete() || !strings.Contains(found.Message, "not registered with the host cluster while all servers are stopped") {
		t.Errorf("%+v", found)
	}
}
