package framework

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

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
	// A watch can fail, or be cut before its first event, for reasons of the network: then
	// another one tells.
	e.Eventually(fmt.Sprintf("a watch from revision %d of before to end with 410", revision), func(ctx context.Context) error {
		watching, err := clients.ClusterregistryV1beta1().Clusters().Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.FormatInt(revision, 10)})
		if err == nil {
			defer watching.Stop()
			event, open := <-watching.ResultChan()
			switch {
			case !open:
				return errors.New("it ended without an event")
			case event.Type != watch.Error:
				e.t.Fatalf("a watch from revision %d of before continues with %s %v, want 410", revision, event.Type, event.Object)
			}
			err = apierrors.FromObject(event.Object)
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return nil
		}
		return fmt.Errorf("it ended with %w", err)
	})
}
