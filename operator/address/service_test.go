package address

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
)

// serving is the Service as it is rendered.
func serving() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"namespace": "team", "name": "fleet-server", "labels": map[string]any{
			operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: "fleet"}},
		"spec": map[string]any{"type": "NodePort", "ports": []any{map[string]any{"name": "https", "port": int64(443), "protocol": "TCP"}}},
	}}
}

// TestServiceMadeAgain deletes a Service of a node port. That port is asked for as it
// is created, and never in an apply: what is there keeps what it has.
func TestServiceMadeAgain(t *testing.T) {
	o := operandtest.New(t, "{spec: {mode: Independent, server: {service: {type: NodePort}}}, status: {endpoint: {url: 'https://203.0.113.1:30443'}}}")
	o.HostCluster = operandtest.Host(t, o.Registry)
	o.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageCertificates: {serving()}}
	asked := map[string][]int64{}
	ask := func(verb string, object map[string]any) {
		ports, _, _ := unstructured.NestedSlice(object, "spec", "ports")
		port, _, _ := unstructured.NestedInt64(ports[0].(map[string]any), "nodePort")
		asked[verb] = append(asked[verb], port)
	}
	o.Applier = apply.New(interceptor.NewClient(o.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			ask("create", object.(*unstructured.Unstructured).Object)
			return c.Create(ctx, object, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				return err
			}
			ask("apply", tree)
			return c.Apply(ctx, object, options...)
		},
	}), o.Live)
	for range 2 {
		if err := ApplyService(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(asked); got != "map[apply:[0] create:[30443]]" {
		t.Errorf("asked for %s", got)
	}
	now := &corev1.Service{}
	if err := o.Client.Get(t.Context(), o.Key("-server"), now); err != nil {
		t.Fatal(err)
	}
	for _, entry := range now.ManagedFields {
		if entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), "nodePort") {
			t.Errorf("%s owns the port by %s", entry.Manager, entry.Operation)
		}
	}
}

// TestForget has a registry lose its Service while it can't be made again: the
// record of its port stays.
func TestForget(t *testing.T) {
	for reason, test := range map[string]struct {
		kind string
		kept bool
	}{"of a node port": {"NodePort", true}, "of a balancer": {"LoadBalancer", false}, "within the host": {"ClusterIP", false}} {
		o := operandtest.New(t, "{spec: {mode: Independent, server: {service: {type: "+test.kind+"}}}, status: {endpoint: {url: 'https://203.0.113.1:30443'}}}")
		Forget(o)
		if kept := o.Registry.Status.Endpoint != nil; kept != test.kept {
			t.Errorf("%s: kept is %v", reason, kept)
		}
	}
}

// TestRefused is about what the host may have against a Service.
func TestRefused(t *testing.T) {
	refused := func(path string) error {
		return fmt.Errorf("create Service: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "fleet-server", field.ErrorList{field.Invalid(field.NewPath("spec").Child("ports").Index(0).Child(path), 30443, "provided port is already allocated")}))
	}
	for reason, test := range map[string]struct {
		err    error
		want   string
		words  []string
		failed bool
	}{
		"nothing":          {nil, "", nil, false},
		"another has it":   {refused("nodePort"), operatorv1alpha1.ReasonNodePortRefused, []string{"node port 30443", "provided port is already allocated", "spec.server.service.nodePort"}, false},
		"another field":    {refused("port"), operatorv1alpha1.ReasonHostRefused, nil, true},
		"without details":  {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid}}, operatorv1alpha1.ReasonHostRefused, nil, true},
		"no answer at all": {errors.New("EOF"), operatorv1alpha1.ReasonInternalError, nil, true},
		"somebody else's":  {&apply.NotOurs{}, operatorv1alpha1.ReasonNotOwned, nil, false},
	} {
		for _, service := range []string{"{type: NodePort, nodePort: 30443}", "{type: NodePort}"} {
			o := operandtest.New(t, "{spec: {mode: Independent, server: {service: "+service+"}}, status: {endpoint: {url: 'https://203.0.113.1:30443'}}}")
			v := Refused(o, test.err)
			if v.Reason != test.want || (v.Err != nil) != test.failed {
				t.Errorf("%s: %+v", reason, v)
			}
			for _, word := range test.words {
				if !strings.Contains(v.Message, word) {
					t.Errorf("%s: %s", reason, v.Message)
				}
			}
		}
	}
}
