package clusterregistry

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/undecodable"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Objects that the host cluster stores and the Go type can't decode. Only their writers can
// correct them, and are told in the status, which is written as a tree. What such a registry
// runs stays as it is.

// unread is what becomes of a registry that could not be observed.
func (r *Reconciler) unread(ctx context.Context, err error) (reconcile.Result, error) {
	why := &informers.UndecodableError{}
	if !errors.As(err, &why) {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: verdict.Resync}, undecodable.Describe(ctx, r.HostCluster, why,
		metav1.Condition{Type: operatorv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: err.Error() + "; until then nothing of this registry is changed"},
		metav1.Condition{Type: operatorv1alpha1.ConditionAvailable, Status: metav1.ConditionUnknown, Message: err.Error()})
}
