package apply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// binding returns an object outside of namespaces that a registry wants.
func binding(registry string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"})
	object.SetName("shared")
	object.SetLabels(map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: registry})
	return object
}

// host is a fake one, with what happens at certain requests.
func host(t *testing.T, funcs interceptor.Funcs) (*Applier, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	plain := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	return New(interceptor.NewClient(plain, funcs), plain), plain
}

// owner returns whose an object is by now.
func owner(t *testing.T, c client.Client) string {
	t.Helper()
	now := binding("")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
		t.Fatal(err)
	}
	return Owner(now)
}

// TestRaceForAName has two registries want the same name at the same time: both
// see that it is free, and only one gets it.
func TestRaceForAName(t *testing.T) {
	for reason, test := range map[string]struct{ first, inTheWay string }{
		"another registry is faster":              {"second", "team/second"},
		"somebody who is no registry is faster":   {"", ""},
		"an operator that was replaced is faster": {"first", "-"},
	} {
		faster := func(ctx context.Context, c client.Client) error { return c.Create(ctx, binding(test.first)) }
		var once error
		done := false
		a, plain := host(t, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if !done {
					done, once = true, faster(ctx, c)
				}
				return c.Create(ctx, object, options...)
			},
			Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				if !done { // before it was created first, this is where another one could come in between
					done, once = true, faster(ctx, c)
				}
				return c.Apply(ctx, object, options...)
			},
		})
		err := a.Apply(t.Context(), binding("first"))
		if once != nil {
			t.Fatal(once)
		}
		var notOurs *NotOurs
		switch {
		case test.inTheWay == "-":
			if err != nil || owner(t, plain) != "team/first" {
				t.Errorf("%s: %v, it is %s's", reason, err, owner(t, plain))
			}
		case !errors.As(err, &notOurs) || notOurs.Owner != test.inTheWay || owner(t, plain) != Owner(binding(test.first)):
			t.Errorf("%s: %v, it is %s's", reason, err, owner(t, plain))
		}
	}
}

// TestAppliedTo has an object be replaced by another one between reading and
// writing: what is applied is meant for the one that was read.
func TestAppliedTo(t *testing.T) {
	var uids []string
	a, plain := host(t, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			var sent metav1.PartialObjectMetadata
			text, err := json.Marshal(object)
			if err == nil {
				err = json.Unmarshal(text, &sent)
			}
			uids = append(uids, string(sent.UID))
			if err != nil {
				return err
			}
			return c.Apply(ctx, object, options...)
		},
	})
	there := binding("first")
	there.SetUID("7")
	if err := plain.Create(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	if err := a.Apply(t.Context(), binding("first")); err != nil || strings.Join(uids, " ") != "7" {
		t.Errorf("applied to %q, %v", uids, err)
	}
}

// TestFieldsGo applies an object that it has created, with less in it: what is no
// longer applied goes, since the creation is not a second owner.
func TestFieldsGo(t *testing.T) {
	conflicts := 2
	a, plain := host(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if conflicts--; conflicts >= 0 {
				return apierrors.NewConflict(schema.GroupResource{}, "shared", errors.New("a controller was faster"))
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	more := binding("first")
	more.SetAnnotations(map[string]string{"a": "b"})
	if err := a.Apply(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	now := binding("")
	if err := plain.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil || now.GetAnnotations()["a"] != "b" {
		t.Fatalf("%v, %v", now, err)
	}
	for _, entry := range now.GetManagedFields() {
		if entry.Manager == string(FieldOwner) && entry.Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("the operator owns fields by %s", entry.Operation)
		}
	}
	if err := a.Apply(t.Context(), binding("first")); err != nil {
		t.Fatal(err)
	}
	if err := plain.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil || len(now.GetAnnotations()) > 0 {
		t.Errorf("it stays: %v, %v", now.GetAnnotations(), err)
	}
}

// TestWebhookThatChanges has a webhook of the platform change what is applied, as those do that
// set resources: the operator doesn't undo that, and after a restart it applies each object once.
func TestWebhookThatChanges(t *testing.T) {
	writes := 0
	webhook := func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		if err := c.Apply(ctx, object, options...); err != nil {
			return err
		}
		writes++
		now := binding("")
		if err := c.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
			return err
		}
		now.SetAnnotations(map[string]string{"cpu": "250m", "adjusted": "true"})
		if err := c.Update(ctx, now); err != nil {
			return err
		}
		// The answer to the request has what the webhook made of it.
		object.(interface{ SetUnstructuredContent(map[string]any) }).SetUnstructuredContent(now.Object)
		return nil
	}
	a, plain := host(t, interceptor.Funcs{Apply: webhook})
	wanted := binding("first")
	wanted.SetAnnotations(map[string]string{"cpu": "100m"})
	for operator, want := range []int{1, 2} {
		for range 3 {
			if err := a.Apply(t.Context(), wanted); err != nil {
				t.Fatal(err)
			}
		}
		if writes != want {
			t.Errorf("operator %d: it was written %d times, want %d", operator, writes, want)
		}
		a = New(a.client, plain) // which remembers nothing
	}
}
