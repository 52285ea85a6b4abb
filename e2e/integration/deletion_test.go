package integration

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestIndependentDeletion deletes in every way that a client can ask for. Without
// a host there is no garbage collector that would end a deletion.
func TestIndependentDeletion(t *testing.T) {
	_, _, config := independent(t)
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
		gone(role, roles.Delete(t.Context(), role, options), func() error {
			_, err := roles.Get(t.Context(), role, metav1.GetOptions{})
			return err
		})
	}
}
