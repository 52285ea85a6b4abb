package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/lock"
)

// Sets are the ClusterSets that clusters can be in.
type Sets interface {
	// Share keeps a set from being deleted until the lock is released. It returns
	// lock.ErrHeld while the set is about to be.
	Share(ctx context.Context, set string) (*lock.Lock, error)
	// Exists reports whether a set is there and is not being deleted, by etcd's latest
	// state.
	Exists(ctx context.Context, set string) (bool, error)
}

// setRule lets clusters be in sets that exist.
func (r *REST) setRule() *rule {
	return &rule{
		of:    setOf,
		lock:  func(ctx context.Context, set string) (*lock.Lock, error) { return r.sets.Share(ctx, set) },
		check: r.setExists,
		clear: func(c *clusterregistry.Cluster) {
			c.Spec.ClusterSet = ""
			c.Label()
		},
		wait: "deleting the ClusterSet that it is put in",
	}
}

func (r *REST) setExists(ctx context.Context, cluster *clusterregistry.Cluster, _ *lock.Lock) error {
	exists, err := r.sets.Exists(ctx, cluster.Spec.ClusterSet)
	if err != nil {
		return fmt.Errorf("look for ClusterSet %s: %w", cluster.Spec.ClusterSet, err)
	}
	if exists {
		return nil
	}
	missing := field.NotFound(field.NewPath("spec", "clusterSet"), cluster.Spec.ClusterSet)
	missing.Detail = "no ClusterSet has this name, or it is being deleted; create it first, or take one that kubectl get crset lists"
	return invalid(cluster, missing)
}

// InSet returns how many clusters are in a set, by etcd's latest state.
func (r *REST) InSet(ctx context.Context, set string) (int, error) {
	object, err := r.ListPredicate(ctx, match(labels.Everything(), fields.OneTermEqualSelector(setField, set)), &internalversion.ListOptions{})
	if err != nil {
		return 0, err
	}
	return len(object.(*clusterregistry.ClusterList).Items), nil
}

// label keeps the label of a cluster's set. A client that sets it to something else is
// warned; one that leaves it out, or as it was, is not. One that leaves it as it was in a PUT
// without a set may not know the field.
func label(ctx context.Context, cluster, old *clusterregistry.Cluster) {
	said, set, before := cluster.Labels[clusterregistry.ClusterSetLabel], cluster.Spec.ClusterSet, old.Labels[clusterregistry.ClusterSetLabel]
	info, known := genericapirequest.RequestInfoFrom(ctx)
	switch {
	case said == "" || said == set:
	case said == before && set == "" && known && info.Verb == "update":
		warning.AddWarning(ctx, "", fmt.Sprintf("spec.clusterSet was %q and is unset now: the cluster is in no ClusterSet, and those who see %[1]q alone don't see it any more; if the client does not know the field, have it patch or apply", before))
	case said != before:
		warning.AddWarning(ctx, "", fmt.Sprintf("metadata.labels[%s]: %q is not stored: the server keeps this label by spec.clusterSet, which is %q; change that one in v1beta1", clusterregistry.ClusterSetLabel, said, set))
	}
	cluster.Label()
}

func setOf(c *clusterregistry.Cluster) string { return c.Spec.ClusterSet }
