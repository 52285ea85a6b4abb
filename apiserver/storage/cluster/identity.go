package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// idRule lets no two clusters have one id.
func (r *REST) idRule() *rule {
	return &rule{
		of:    func(c *clusterregistry.Cluster) string { return c.Spec.ID },
		lock:  r.locks.Take,
		check: r.idFree,
		clear: func(c *clusterregistry.Cluster) { c.Spec.ID = "" },
		wait:  "giving its spec.id to a cluster",
	}
}

// idFree returns an error when another cluster has the id of a cluster. A list without a
// version is as new as etcd, wherever it is served from.
func (r *REST) idFree(ctx context.Context, cluster *clusterregistry.Cluster) error {
	object, err := r.ListPredicate(ctx, match(labels.Everything(), fields.OneTermEqualSelector(idField, cluster.Spec.ID)), &internalversion.ListOptions{})
	if err != nil {
		return err
	}
	for _, other := range object.(*clusterregistry.ClusterList).Items {
		if other.UID != cluster.UID {
			taken := field.Duplicate(field.NewPath("spec", "id"), cluster.Spec.ID)
			taken.Detail = "another cluster has it; kubectl get crc --field-selector=spec.id=" + cluster.Spec.ID + " shows which"
			return invalid(cluster, taken)
		}
	}
	return nil
}

// invalid refuses what a cluster was to become.
func invalid(cluster *clusterregistry.Cluster, fault *field.Error) error {
	return apierrors.NewInvalid(clusterregistry.SchemeGroupVersion.WithKind("Cluster").GroupKind(), cluster.Name, field.ErrorList{fault})
}
