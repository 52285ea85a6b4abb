package apiservice

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
)

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
