package apiservice

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
)

// undecoded reads a registry that can't be decoded.
type undecoded struct {
	client.Reader
	tree *unstructured.Unstructured
}

func (u undecoded) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if key.Name != u.tree.GetName() {
		return u.Reader.Get(ctx, key, object, options...)
	}
	if tree, is := object.(*unstructured.Unstructured); is {
		u.tree.DeepCopyInto(tree)
		return nil
	}
	return errors.New("can't be decoded")
}

// TestPlaceOfUndecodable keeps the place of a registry that can't be decoded, of which the cache has
// no more than the metadata, and takes none that may be another's.
func TestPlaceOfUndecodable(t *testing.T) {
	for reason, test := range map[string]struct {
		mode, broken string
		says         string // empty where this registry is registered
	}{
		"it is aggregated":                       {"Aggregated", "replicas", "team/other"},
		"it is independent":                      {"Independent", "replicas", ""},
		"it may be known no better than by mode": {"Aggregated", "history", "which may have registered"},
	} {
		o := outage(t, "{spec: {mode: Aggregated}}", "", 0)
		other := operandtest.New(t, operandtest.InstalledAggregated).Registry.DeepCopy()
		other.Name, other.UID, other.ResourceVersion, other.Spec.Mode = "other", "other", "", operatorv1alpha1.Mode(test.mode)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(other)
		if err != nil {
			t.Fatal(err)
		}
		tree := &unstructured.Unstructured{Object: content}
		tree.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterRegistry"))
		path := map[string][]string{"replicas": {"spec", "etcd", "replicas"}, "history": {"status", "history"}}[test.broken]
		if err := unstructured.SetNestedField(tree.Object, "many", path...); err != nil {
			t.Fatal(err)
		}
		held, err := informers.Options(nil).DefaultTransform(tree.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		cached := &operatorv1alpha1.ClusterRegistry{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(held.(*unstructured.Unstructured).Object, cached); err != nil || !informers.Undecodable(cached) {
			t.Fatalf("%s: cached is %+v, %v", reason, cached, err)
		}
		if err := o.Client.Create(t.Context(), cached); err != nil {
			t.Fatal(err)
		}
		o.Live = undecoded{o.Live, tree}
		stage := Stage{Objects: o, MayAggregate: allowed, Servers: pass.Servers{Asked: true, Ready: 2, Answering: 2}}
		found := stage.Run(t.Context())
		says := found.TakenBy
		if found.Err != nil {
			says = found.Err.Error()
		}
		if (left(t, o) != "") != (test.says == "") || !strings.Contains(says, test.says) {
			t.Errorf("%s: %q is registered, %+v", reason, left(t, o), found)
		}
	}
}
