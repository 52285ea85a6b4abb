package clusterregistry

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestRegistryUndecodable has a registry that can't be decoded say so, once, and keep its
// other conditions.
func TestRegistryUndecodable(t *testing.T) {
	registry := look(t, "{spec: {mode: Aggregated}, status: {conditions: [{type: EtcdReady, status: 'True', reason: Ready, message: '', lastTransitionTime: null}]}}").Registry
	r := reading(t, nil, registry)
	host, writes := r.Client.(client.WithWatch), 0
	r.Client = interceptor.NewClient(host, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, part string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
		writes++
		return c.SubResource(part).Patch(ctx, object, patch, options...)
	}})
	r.Live = interceptor.NewClient(host, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		tree, is := object.(*unstructured.Unstructured)
		if !is {
			return json.Unmarshal([]byte(`{"spec": {"etcd": 1}}`), object) // as a client with Go types fails
		}
		if err := c.Get(ctx, key, tree, options...); err != nil {
			return err
		}
		return unstructured.SetNestedField(tree.Object, "many", "spec", "etcd", "replicas")
	}})
	for range 2 {
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(registry)})
		if err != nil || result.RequeueAfter != verdict.Resync {
			t.Fatal(result, err)
		}
	}
	now := &operatorv1alpha1.ClusterRegistry{}
	if err := host.Get(t.Context(), client.ObjectKeyFromObject(registry), now); err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(now.Status.Conditions, operatorv1alpha1.ConditionReady)
	if ready == nil || ready.Status != "False" || ready.Reason != operatorv1alpha1.ReasonUndecodable || !strings.HasPrefix(ready.Message, "the operator can't decode .spec.etcd.replicas of ClusterRegistry team/fleet: correct that field, or remove it (") {
		t.Errorf("Ready: %+v", ready)
	}
	if !meta.IsStatusConditionTrue(now.Status.Conditions, operatorv1alpha1.ConditionEtcdReady) || len(now.Status.Conditions) != 3 || writes != 1 {
		t.Errorf("after %d writes there are %+v", writes, now.Status.Conditions)
	}
}

// TestRetries bounds how long a registry waits after any number of errors.
func TestRetries(t *testing.T) {
	limiter, request := (&Reconciler{}).Retries(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "team", Name: "fleet"}}
	var total time.Duration
	for i := range 1000 {
		delay := limiter.When(request)
		if total += delay; delay > 30*time.Second || delay <= 0 {
			t.Fatalf("after %d errors in a row, the registry waits for %s", i+1, delay)
		}
	}
	if average := total / 1000; average < 25*time.Second {
		t.Errorf("what fails for good is tried again every %s", average)
	}
	often := (&Reconciler{ResyncPeriod: time.Second}).Retries()
	for range 1000 {
		if delay := often.When(request); delay > time.Second {
			t.Fatalf("a registry that is reconciled every second waits for %s after an error", delay)
		}
	}
	for i := range 1000 {
		other := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "team", Name: strings.Repeat("x", i)}}
		if delay := limiter.When(other); delay > time.Second {
			t.Fatalf("the first error of registry %d has it wait for %s: others hold it up", i, delay)
		}
	}
}
