package removal

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/stage/members"
)

// Disown leaves an external etcd, with what it holds, to whichever registry is given it next. A
// deletion does not wait for an etcd that may be gone: a registry of this host cluster takes it
// over all the same, since the operator sees that this one is gone.
func (r Removal) Disown(ctx context.Context) {
	if r.Registry.Spec.Etcd.External == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stage := members.Stage{Objects: r.Objects, Authorities: r.Authorities}
	access, v := stage.External(ctx)
	why := v.Message
	if v.Complete() {
		err := access.Disown(ctx, string(r.Registry.UID))
		if err == nil {
			return
		}
		why = err.Error()
	}
	logf.FromContext(ctx).Info("the external etcd still names this registry as the one it belongs to", "key", etcd.OwnerKey, "error", why)
	r.Event(corev1.EventTypeWarning, "EtcdNotReleased", operatorv1alpha1.ConditionEtcdReady, "the external etcd still belongs to this registry, which is gone: %s. Before a registry of another host cluster uses it: etcdctl del %s", why, etcd.OwnerKey)
}
