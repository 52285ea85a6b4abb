package visible

import (
	"context"
	"math"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/visibility"
)

// List returns the clusters that the caller sees. What it sees is confirmed after the list
// was read; if it has changed, the list is read again.
func (r *REST) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	if options == nil {
		options = &internalversion.ListOptions{}
	}
	view, err := r.policy.View(ctx)
	if err != nil {
		return nil, err
	}
	for range visibility.Attempts {
		list, err := r.page(ctx, view, options)
		if err != nil {
			return nil, err
		}
		since, confirmed, err := r.policy.Confirm(ctx, view)
		if err != nil {
			return nil, err
		}
		if !confirmed {
			if view, _, err = r.policy.Settle(ctx, view); err != nil {
				return nil, err
			}
			continue
		}
		version, err := r.Storage.Versioner().ParseResourceVersion(list.ResourceVersion)
		switch {
		case err != nil:
			return nil, err
		case version >= since:
			return list, nil
		case options.Continue != "" || isExact(options):
			// What the caller sees now may have been in other sets then.
			return nil, expired()
		}
		// The watch cache is behind the record, and no watch from there would be let begin.
		options = options.DeepCopy()
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
	}
	return nil, visibility.Unsettled()
}

// isExact reports whether a list must be of its version.
func isExact(options *internalversion.ListOptions) bool {
	switch options.ResourceVersionMatch {
	case metav1.ResourceVersionMatchExact:
		return true
	case "":
		return options.Limit > 0 && options.ResourceVersion != "" && options.ResourceVersion != "0"
	}
	return false
}

// expired is the error of a request that would continue from what was read when the caller
// saw other sets, or from what can't be told.
func expired() *apierrors.StatusError {
	return apierrors.NewResourceExpired("the ClusterSets that the caller sees may have changed since this resourceVersion; list again without it")
}

// root is the prefix of keys in tokens: they are of clusters' names alone.
const root = "/"

// page reads a list through a view. Of a store's own page, the token would say whether
// there are more clusters, seen or not, and by a name that the caller chooses: so one more
// is read than was asked for, and there is a token when there was one.
func (r *REST) page(ctx context.Context, view visibility.View, options *internalversion.ListOptions) (*clusterregistry.ClusterList, error) {
	if !view.Forever() && options.Continue != "" {
		// A negative version continues with what is there now, of a list that may have been
		// of other sets. Any other error is the store's to tell.
		if _, version, err := storage.DecodeContinue(options.Continue, root); err == nil && version < 0 {
			return nil, expired()
		}
	}
	limit := options.Limit
	more := !view.All && limit > 0 && limit < math.MaxInt64
	if more {
		options = options.DeepCopy()
		options.Limit++
	}
	object, err := r.read(ctx, view, options)
	if apierrors.IsResourceExpired(err) && !view.Forever() {
		return nil, expired() // the store's own error has a token of a negative version
	}
	if err != nil {
		return nil, nameless(view, err)
	}
	list := object.(*clusterregistry.ClusterList)
	if !more {
		return list, nil
	}
	return list, r.cut(list, int(min(limit, math.MaxInt)))
}

// cut leaves what was asked for of a list. One that was served without a limit stays as it
// is.
func (r *REST) cut(list *clusterregistry.ClusterList, limit int) (err error) {
	switch {
	case len(list.Items) <= limit:
		list.Continue = ""
		return nil
	case len(list.Items) > limit+1:
		return nil
	}
	version, err := r.Storage.Versioner().ParseResourceVersion(list.ResourceVersion)
	if err != nil {
		return err
	}
	list.Items = list.Items[:limit]
	list.Continue, err = storage.EncodeContinue(root+list.Items[limit-1].Name+"\x00", root, int64(version))
	return err
}
