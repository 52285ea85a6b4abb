package integration

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestIndependentDeletion deletes in every way that a client can ask for. Without
// a host there is no garbage collector that would end a deletion.
func TestIndependentDeletion(t *testing.T) {
	t.Parallel()
	etcd := framework.StartEtcd(t, 1)
	_, _, config := independentOn(t, etcd)
	clusters, roles := clustersOf(t, config), clientset(t, config).RbacV1().ClusterRoles()
	gone := func(reason string, err error, get func() error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		if err := get(); !apierrors.IsNotFound(err) {
			t.Errorf("%s: it is still there: %v", reason, err)
		}
	}
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground} {
		options, suffix := metav1.DeleteOptions{PropagationPolicy: &policy}, "-"+strings.ToLower(string(policy))
		one, many, role := "one"+suffix, "many"+suffix, "role"+suffix
		for _, c := range []string{one, many} {
			if _, err := clusters.Create(t.Context(), cluster(c, map[string]string{"deleted": c}), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		exists := func(name string) func() error {
			return func() error {
				_, err := clusters.Get(t.Context(), name, metav1.GetOptions{})
				return err
			}
		}
		gone(one, clusters.Delete(t.Context(), one, options), exists(one))
		gone(many, clusters.DeleteCollection(t.Context(), options, metav1.ListOptions{LabelSelector: "deleted=" + many}), exists(many))
		// What is in deletion in data of an aggregated registry goes when it is deleted
		// again, in whatever way.
		for finalizer, again := range map[string]metav1.DeleteOptions{metav1.FinalizerDeleteDependents: {}, metav1.FinalizerOrphanDependents: options} {
			left := "left" + suffix
			leave(t, etcd, left, finalizer)
			gone(left+" with the finalizer "+finalizer, clusters.Delete(t.Context(), left, again), exists(left))
			leave(t, etcd, left, finalizer)
			gone(left+" of a collection, with the finalizer "+finalizer, clusters.DeleteCollection(t.Context(), again, metav1.ListOptions{FieldSelector: "metadata.name=" + left}), exists(left))
		}
		gone(role, roles.Delete(t.Context(), role, options), func() error {
			_, err := roles.Get(t.Context(), role, metav1.GetOptions{})
			return err
		})
	}
}

// TestIndependentDeletionWaitsForFinalizers makes sure that only the finalizers of a
// collector are taken away.
func TestIndependentDeletionWaitsForFinalizers(t *testing.T) {
	t.Parallel()
	etcd := framework.StartEtcd(t, 1)
	_, _, config := independentOn(t, etcd)
	clusters := clustersOf(t, config)
	leave(t, etcd, "east", metav1.FinalizerDeleteDependents, "example.com/controller")
	if err := clusters.Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c, err := clusters.Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil || len(c.Finalizers) != 1 || c.Finalizers[0] != "example.com/controller" {
		t.Fatalf("%v: its finalizers are %v", err, c.Finalizers)
	}
	c.Finalizers = nil
	if _, err := clusters.Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clusters.Get(t.Context(), "east", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// leave stores a cluster in deletion as an aggregated registry does, whose data another
// registry may begin with.
func leave(t *testing.T, etcd *framework.Etcd, name string, finalizers ...string) {
	t.Helper()
	now := metav1.Now().Rfc3339Copy()
	c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", Generation: 2, CreationTimestamp: now, DeletionTimestamp: &now, DeletionGracePeriodSeconds: new(int64), Finalizers: finalizers}}
	c.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("Cluster"))
	store(t.Context(), t, etcd, c)
}
