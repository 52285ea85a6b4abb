// Package visible serves of the clusters only those that a caller sees, as package
// visibility decides: for every way of reading and of writing. One that the caller does not
// see is answered for as one that does not exist.
//
// Lists and watches are the store's own, with the caller's selector narrowed. So paging,
// bookmarks, versions and the watch cache are, too, and a cluster that is moved out of
// sight is deleted for who watches.
package visible

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
	"github.com/clusterregistry/operator/apiserver/visibility"
)

// The verbs of clustersets/clusters. For a write that changes what is stored, it is that of
// the request, also for a status.
const (
	get              = "get"
	create           = "create"
	update           = "update"
	patching         = "patch"
	deletion         = "delete"
	deleteCollection = "deletecollection"
)

// REST serves clusters.
type REST struct {
	*cluster.REST
	policy *visibility.Policy
}

// StatusREST serves the status of clusters.
type StatusREST struct {
	*cluster.StatusREST
	clusters *REST
}

var (
	_ rest.StandardStorage              = &REST{}
	_ rest.ShortNamesProvider           = &REST{}
	_ rest.SingularNameProvider         = &REST{}
	_ rest.ResetFieldsStrategy          = &REST{}
	_ rest.CorruptObjectDeleterProvider = &REST{}
	_ rest.Patcher                      = &StatusREST{}
	_ rest.ResetFieldsStrategy          = &StatusREST{}
)

// New returns the storage of clusters, and that of their status, as a policy shows it.
func New(clusters *cluster.REST, status *cluster.StatusREST, policy *visibility.Policy) (*REST, *StatusREST) {
	main := &REST{clusters, policy}
	return main, &StatusREST{status, main}
}

// Destroy ends what the storage and the policy have opened.
func (r *REST) Destroy() {
	r.REST.Destroy()
	r.policy.Records.Destroy()
}

// Get returns a cluster that the caller sees. It is as new as etcd whatever version is asked
// for: the watch cache may have it in a set that it has left, which the caller sees since.
func (r *REST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return r.shown(ctx, name, func() (runtime.Object, error) { return r.REST.Get(ctx, name, &metav1.GetOptions{}) })
}

// Get returns a cluster that the caller sees, as new as etcd.
func (r *StatusREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return r.clusters.shown(ctx, name, func() (runtime.Object, error) { return r.StatusREST.Get(ctx, name, &metav1.GetOptions{}) })
}

// shown reads a cluster, and returns it if the caller sees it.
func (r *REST) shown(ctx context.Context, name string, read func() (runtime.Object, error)) (runtime.Object, error) {
	object, err := read()
	if err != nil {
		return nil, plain(r.unread(ctx, name, err))
	}
	if err := r.may(ctx, get, object.(*clusterregistry.Cluster)); err != nil {
		return nil, plain(err)
	}
	return object, nil
}

// may returns an error when the caller may not do something to a stored cluster: hidden
// when it does not even see it.
func (r *REST) may(ctx context.Context, verb string, stored *clusterregistry.Cluster) error {
	set := stored.Spec.ClusterSet
	seen, err := r.policy.Decide(ctx, get, set)
	if err != nil {
		return err
	}
	if !seen.Allowed {
		return r.absent(ctx, hidden{notFound(stored.Name)})
	}
	if verb == get {
		return nil
	}
	return r.allowed(ctx, verb, stored)
}

// absent returns an error as it is, but for one that says that a cluster does not exist while
// it is not known what the caller sees: one that exists is not known not to be seen then, and
// no answer may tell the two apart. All sets are asked about for both, as for a list.
func (r *REST) absent(ctx context.Context, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	if _, unknown := r.policy.View(ctx); unknown != nil {
		return unknown
	}
	return err
}

// allowed returns an error when the caller may not do something to clusters in the set of
// a cluster.
func (r *REST) allowed(ctx context.Context, verb string, of *clusterregistry.Cluster) error {
	found, err := r.policy.Decide(ctx, verb, of.Spec.ClusterSet)
	if err != nil {
		return err
	}
	if !found.Allowed {
		return apierrors.NewForbidden(clusterregistry.Resource("clusters"), of.Name, errors.New(found.Lack))
	}
	return nil
}

// hidden is the error about a cluster that the caller does not see: the one of a cluster
// that does not exist.
type hidden struct{ *apierrors.StatusError }

func notFound(name string) *apierrors.StatusError {
	return apierrors.NewNotFound(clusterregistry.Resource("clusters"), name)
}

// plain returns the error as clients get it.
func plain(err error) error {
	var h hidden
	if errors.As(err, &h) {
		return h.StatusError
	}
	return err
}

func isHidden(err error) bool {
	var h hidden
	return errors.As(err, &h)
}

// verbOf returns the verb of a request that changes one cluster.
func verbOf(ctx context.Context) string {
	if info, ok := genericapirequest.RequestInfoFrom(ctx); ok && info.Verb != "" {
		return info.Verb
	}
	return update
}

// through returns the store as a view shows it.
func (r *REST) through(view visibility.View) *genericregistry.Store {
	store, matching := *r.Store, r.PredicateFunc
	store.PredicateFunc = func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
		return view.Restrict(matching(label, field))
	}
	return &store
}
