package visible

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/visibility"
)

// mostParts is of how many sets a list is read one by one. An index of the watch cache serves
// one value, and each list takes a part of what reading all clusters does.
const mostParts = 32

// read reads a list through a view. If that is of a few sets, it reads the clusters of each
// from the index, and falls back to reading all clusters if these have changed in between.
func (r *REST) read(ctx context.Context, view visibility.View, options *internalversion.ListOptions) (runtime.Object, error) {
	parts := view.Parts()
	if len(parts) > 1 && len(parts) <= mostParts && options.Continue == "" && !isExact(options) && !r.indexed(ctx, options) {
		if list := r.together(ctx, parts, options); list != nil {
			return list, nil
		}
	}
	return r.through(view).List(ctx, options)
}

// indexed reports whether what a client selects by has an index.
func (r *REST) indexed(ctx context.Context, options *internalversion.ListOptions) bool {
	label, field := options.LabelSelector, options.FieldSelector
	if label == nil {
		label = labels.Everything()
	}
	if field == nil {
		field = fields.Everything()
	}
	asked := r.PredicateFunc(label, field)
	_, single := asked.MatchesSingle()
	return single || len(asked.MatcherIndex(ctx)) > 0
}

// together reads a list of each view and puts them together, or returns nil if they are not
// all of one version: what moved from one to another could be missing then, or be there twice.
func (r *REST) together(ctx context.Context, parts []visibility.View, options *internalversion.ListOptions) *clusterregistry.ClusterList {
	var all *clusterregistry.ClusterList
	unlimited := options.Limit <= 0
	for _, part := range parts {
		object, err := r.through(part).List(ctx, options)
		if err != nil {
			return nil // whoever reads all clusters gets one, too, if it matters
		}
		list := object.(*clusterregistry.ClusterList)
		// A list of any version has all, whatever the limit is.
		unlimited = unlimited || int64(len(list.Items)) > options.Limit
		if all == nil {
			all = list
			options = options.DeepCopy()
			options.ResourceVersion, options.ResourceVersionMatch = list.ResourceVersion, metav1.ResourceVersionMatchNotOlderThan
			continue
		}
		if list.ResourceVersion != all.ResourceVersion {
			return nil
		}
		all.Items = append(all.Items, list.Items...)
	}
	slices.SortFunc(all.Items, func(a, b clusterregistry.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	if !unlimited && int64(len(all.Items)) > options.Limit {
		all.Items = all.Items[:options.Limit]
	}
	return all
}
