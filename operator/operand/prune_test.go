package operand_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// former are the names of ConfigMaps that are no longer part of the registry, in the order of the
// inventory.
var former = []string{"fleet-a", "fleet-b", "fleet-c"}

// pruning returns a registry with former ConfigMaps, and the client of a host cluster that has
// them. What refuses returns for a name is what comes of its deletion.
func pruning(t *testing.T, refuses func(name string) error) (*operand.Objects, client.Client) {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	objects := operandtest.New(t, "{spec: {mode: Aggregated, etcd: {replicas: 1}}}")
	var made []client.Object
	for _, name := range former {
		objects.Registry.Status.Inventory = append(objects.Registry.Status.Inventory, operatorv1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: "team", Name: name})
		made = append(made, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "1", Labels: operandtest.Secret("", nil).Labels}})
	}
	c := fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(made...).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := refuses(object.GetName()); err != nil {
				return err
			}
			return c.Delete(ctx, object, options...)
		}}).Build()
	objects.Applier = apply.New(c, c)
	return objects, c
}

// left returns the names in the inventory, and those of the ConfigMaps that there are.
func left(t *testing.T, objects *operand.Objects, c client.Client) (listed, there []string) {
	t.Helper()
	for _, reference := range objects.Registry.Status.Inventory {
		listed = append(listed, reference.Name)
	}
	all := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		there = append(there, all.Items[i].Name)
	}
	return listed, there
}

// TestPruneRefused has the host cluster refuse the deletion of one object: all others go, and leave
// the inventory when they are gone.
func TestPruneRefused(t *testing.T) {
	for _, held := range former {
		refused := errors.New("a webhook is down")
		objects, c := pruning(t, func(name string) error {
			if name == held {
				return refused
			}
			return nil
		})
		for range 2 { // one deletes, and another one sees that it is gone
			if err := objects.Prune(t.Context()); !errors.Is(err, refused) || !strings.Contains(err.Error(), held) {
				t.Errorf("%s is held: %v", held, err)
			}
		}
		if listed, there := left(t, objects, c); !slices.Equal(listed, []string{held}) || !slices.Equal(there, []string{held}) {
			t.Errorf("%s is held: the inventory has %v, and there are %v", held, listed, there)
		}
	}
	objects, _ := pruning(t, func(string) error { return errors.New("a webhook is down") })
	if err := objects.Prune(t.Context()); err == nil || !strings.Contains(err.Error(), "fleet-a") || !strings.Contains(err.Error(), "and 2 more can't be deleted") {
		t.Errorf("all are held: %v", err)
	}
}

// TestPruneKilled ends the operator between two deletions: nothing that is still there has left the
// inventory that the host cluster has, and the next operator deletes the rest.
func TestPruneKilled(t *testing.T) {
	for killed := range former {
		deletions := 0
		killing := true
		objects, c := pruning(t, func(string) error {
			if deletions++; killing && deletions > killed {
				return errors.New("the operator is gone")
			}
			return nil
		})
		recorded := slices.Clone(objects.Registry.Status.Inventory)
		if err := objects.Prune(t.Context()); err == nil {
			t.Errorf("killed after %d deletions: no error", killed)
		}
		if listed, there := left(t, objects, c); slices.ContainsFunc(there, func(name string) bool { return !slices.Contains(listed, name) }) {
			t.Errorf("killed after %d deletions: the inventory has %v, and there are %v", killed, listed, there)
		}
		killing = false
		objects.Registry.Status.Inventory = recorded // nothing was written before the operator ended
		for range 2 {
			if err := objects.Prune(t.Context()); err != nil {
				t.Errorf("killed after %d deletions: %v", killed, err)
			}
		}
		if listed, there := left(t, objects, c); len(listed) > 0 || len(there) > 0 {
			t.Errorf("killed after %d deletions: the inventory has %v, and there are %v", killed, listed, there)
		}
	}
}
