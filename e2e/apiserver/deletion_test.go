package apiserver

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
)

// testCollection deletes clusters that an object of the host depends on: the
// host's garbage collector has to see to both, as with a resource of its own.
func testCollection(t *testing.T, e *framework.Env, clients *versioned.Clientset) {
	clusters := clients.ClusterregistryV1alpha1().Clusters()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		owner, err := clusters.Create(t.Context(), &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{GenerateName: "owner-"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: owner.Name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Cluster", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(true)}}}}
		framework.Create(t, e.Client, dependent)
		if err := clusters.Delete(t.Context(), owner.Name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		e.Eventually(fmt.Sprintf("a deletion with the policy %s to end", policy), func(ctx context.Context) error {
			left, err := clusters.Get(ctx, owner.Name, metav1.GetOptions{})
			if err == nil {
				return fmt.Errorf("it is there still, with finalizers %q", left.Finalizers)
			}
			if !apierrors.IsNotFound(err) {
				return err
			}
			var found corev1.ConfigMap
			err = e.Get(ctx, owner.Name, &found)
			switch {
			case policy == metav1.DeletePropagationForeground && err == nil:
				return errors.New("what depends on it is there still")
			case policy == metav1.DeletePropagationForeground && apierrors.IsNotFound(err):
				return nil
			case err == nil && len(found.OwnerReferences) > 0:
				return fmt.Errorf("what depended on it still names it: %v", found.OwnerReferences)
			}
			return err
		})
	}
}
