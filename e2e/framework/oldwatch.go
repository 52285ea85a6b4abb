package framework

import (
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
)

// CheckOldWatch continues a watch, from a revision of before a registry's data was restored or
// recovered, in what there is now: the test fails unless it is told to list again, and never old
// data as new.
func (e *Env) CheckOldWatch(registry *operatorv1alpha1.ClusterRegistry, revision int64) {
	e.t.Helper()
	clients, err := versioned.NewForConfig(e.RegistryConfig(registry))
	if err != nil {
		e.t.Fatal(err)
	}
	watching, err := clients.ClusterregistryV1beta1().Clusters().Watch(e.t.Context(), metav1.ListOptions{ResourceVersion: strconv.FormatInt(revision, 10)})
	if err == nil {
		defer watching.Stop()
		event := <-watching.ResultChan()
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		e.t.Errorf("a watch from revision %d of before ends with %v, want 410", revision, err)
	}
}
