package members

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Ownership says which registry an external etcd belongs to: the servers of two would share
// their clusters, users and roles. [etcd.Access] has what its fields do.
type Ownership struct {
	Owned func(etcd.Access, context.Context) (etcd.Owned, error)
	Own   func(etcd.Access, context.Context, etcd.Owner, etcd.Owned) (etcd.Owned, error)
	// Watches reports whether the registries of a namespace are this operator's.
	Watches func(namespace string) bool
}

// owned is done when an external etcd belongs to this registry, which it does from then on where
// it was no one's, or that of a registry that is gone.
func (s *Stage) owned(ctx context.Context, access etcd.Access) verdict.Verdict {
	seen, err := s.Ownership.Owned(access, ctx)
	if err != nil {
		return s.ownerUnknown(err)
	}
	if seen.By(string(s.Registry.UID)) {
		return done
	}
	if seen.Err != nil {
		return taken("the key %s of etcd, which says whose it is, can't be understood (%s). Find out whether another registry uses this etcd; if none does, delete the key: etcdctl del %s", etcd.OwnerKey, seen.Err, etcd.OwnerKey)
	}
	host := informers.Namespace()
	if err := s.Live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, host); err != nil {
		return verdict.Failed(fmt.Errorf("read the UID of namespace kube-system, by which etcd knows this host cluster: %w", err)).AsReadOnly()
	}
	if v := s.mayOwn(ctx, seen, string(host.UID)); !v.Complete() || s.ReadOnly() {
		return v
	}
	mine := etcd.Owner{Host: string(host.UID), Namespace: s.Registry.Namespace, Name: s.Registry.Name, UID: string(s.Registry.UID), Since: s.Now.UTC()}
	written, err := s.Ownership.Own(access, ctx, mine, seen)
	switch {
	case err != nil:
		return s.ownerUnknown(err)
	case !written.By(mine.UID):
		return taken("another registry has just begun to use etcd: %s/%s", written.Namespace, written.Name).In(verdict.Soon)
	case seen.Revision > 0:
		s.Event(corev1.EventTypeNormal, "EtcdTakenOver", operatorv1alpha1.ConditionEtcdReady, "this registry takes over the external etcd, with what it holds, of ClusterRegistry %s/%s, which is gone", seen.Namespace, seen.Name)
	}
	return done
}

// mayOwn is done when the registry that etcd belongs to is gone, or there is none. One of another
// host cluster can't be asked for.
func (s *Stage) mayOwn(ctx context.Context, seen etcd.Owned, host string) verdict.Verdict {
	whose := fmt.Sprintf("etcd belongs to ClusterRegistry %s/%s", seen.Namespace, seen.Name)
	const way = "two registries would share their clusters, users and roles. Give this one an etcd of its own"
	switch {
	case seen.Managed:
		return taken("an operator runs this etcd for a registry of its own: %s. If it is another etcd that was made from that one's data, delete the key that says so: etcdctl del %s", way, etcd.MarkKey)
	case seen.Revision == 0:
		return done
	case seen.Host != host:
		return taken("%s of another host cluster (the UID of its namespace kube-system is %s): %s, or delete the other one there, which leaves what etcd holds to this one. If that host cluster is gone for good, delete the key: etcdctl del %s", whose, seen.Host, way, etcd.OwnerKey)
	case !s.Ownership.Watches(seen.Namespace):
		return taken("%s, in a namespace that this operator does not manage: %s, or delete the other one, which leaves what etcd holds to this one. If the other one does not exist, delete the key: etcdctl del %s", whose, way, etcd.OwnerKey)
	}
	other := &metav1.PartialObjectMetadata{}
	other.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterRegistry"))
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: seen.Namespace, Name: seen.Name}, other)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(other.UID) != seen.UID:
		return done
	case err != nil:
		return verdict.Failed(fmt.Errorf("read ClusterRegistry %s/%s, which etcd belongs to: %w", seen.Namespace, seen.Name, err)).AsReadOnly()
	}
	return taken("%s: %s, or delete the other one, which leaves what etcd holds to this one", whose, way)
}

func taken(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonEtcdTaken, format, args...).AsReadOnly().In(verdict.Backstop)
}

// ownerUnknown is the verdict where etcd does not say whose it is, or refuses to be told, as one
// that is full does: then its alarm is what has to end.
func (s *Stage) ownerUnknown(err error) verdict.Verdict {
	if trouble := s.etcdTrouble(); !trouble.Complete() {
		trouble.Message += "; besides, " + err.Error()
		return trouble.AsReadOnly()
	}
	return verdict.Waiting(operatorv1alpha1.ReasonExternalUnreachable, "%s. If etcd has users, that of the certificate in Secret %s must be allowed to read and write all keys of the servers, of which this is one", err, s.Registry.Spec.Etcd.External.TLSSecretRef.Name).AsReadOnly().In(verdict.Backstop)
}
