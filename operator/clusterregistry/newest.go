package clusterregistry

import (
	"context"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand"
)

// lastWords is how long an operator that is told to end takes to record what it alone knows. It
// is less than what a pod gets to end, and during it no other operator is the leader.
const lastWords = 10 * time.Second

// untilEnd waits until the operator is told to end, and records then how far each etcd has got
// since the last record.
func (r *Reconciler) untilEnd(ctx context.Context) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	for name, revision := range r.revisions.All() {
		if err := r.remember(ctx, name, revision); err != nil {
			logf.FromContext(ctx).Info("the newest revision of an etcd is not recorded, and it is not noticed if it goes back to an older one that is", "registry", name, "revision", revision, "error", err.Error())
		}
	}
	return nil
}

// remember records the newest revision of the etcd of a registry, where that may be changed.
func (r *Reconciler) remember(ctx context.Context, name string, revision int64) error {
	namespace, name, _ := strings.Cut(name, "/")
	registry := &operatorv1alpha1.ClusterRegistry{}
	if err := informers.Read(ctx, r.Live, client.ObjectKey{Namespace: namespace, Name: name}, registry); err != nil {
		return client.IgnoreNotFound(err)
	}
	if registry.Spec.Paused || registry.DeletionTimestamp != nil {
		return nil
	}
	objects := &operand.Objects{HostCluster: r.HostCluster, Registry: registry, Before: *registry.Status.DeepCopy(), Now: time.Now()}
	if registry.Spec.Etcd.External != nil {
		return identity.RememberExternal(ctx, objects, revision)
	}
	return identity.Read(ctx, objects).Remember(ctx, revision)
}
