package cluster

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/lock"
)

// etcd holds clusters with one id, and answers a request for a lock in one way.
type etcd struct {
	storage.Interface
	clusters       []clusterregistry.Cluster
	onLock, onList error
	deleted        *[]string
}

func (e etcd) Create(context.Context, string, runtime.Object, runtime.Object, uint64) error {
	return e.onLock
}

func (e etcd) GetList(_ context.Context, _ string, _ storage.ListOptions, list runtime.Object) error {
	list.(*clusterregistry.ClusterList).Items = e.clusters
	return e.onList
}

func (e etcd) Delete(_ context.Context, key string, _ runtime.Object, _ *storage.Preconditions, _ storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	*e.deleted = append(*e.deleted, key)
	return nil
}

// decorated leads to a storage.
type decorated struct{ storage.Interface }

// GetRESTOptions leads to it.
func (d decorated) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{}, ResourcePrefix: "locks",
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return d.Interface, func() {}, nil
		},
	}, nil
}

// TestALookAfterTheWrite looks again for the id of a cluster that was created while
// the lock was lost. Only what is another's is taken back.
func TestALookAfterTheWrite(t *testing.T) {
	mine := clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "mine", UID: "mine"}, Spec: clusterregistry.ClusterSpec{ID: "one"}}
	other := clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other"}, Spec: clusterregistry.ClusterSpec{ID: "one"}}
	away := errors.New("etcd is away")
	for _, test := range []struct {
		reason string
		etcd   etcd
		code   int32
		undone bool
	}{
		{"it is its alone", etcd{clusters: []clusterregistry.Cluster{mine}}, 0, false},
		{"another has it, too", etcd{clusters: []clusterregistry.Cluster{mine, other}}, http.StatusUnprocessableEntity, true},
		{"the lock can't be taken", etcd{onLock: away, clusters: []clusterregistry.Cluster{mine, other}}, http.StatusGatewayTimeout, false},
		{"clusters can't be listed", etcd{onList: apierrors.NewForbidden(clusterregistry.Resource("clusters"), "", away)}, http.StatusGatewayTimeout, false},
	} {
		var gone []string
		test.etcd.deleted = &gone
		locks, err := lock.New(decorated{test.etcd})
		if err != nil {
			t.Fatal(err)
		}
		store := &genericregistry.Store{
			NewFunc: func() runtime.Object { return &clusterregistry.Cluster{} }, NewListFunc: func() runtime.Object { return &clusterregistry.ClusterList{} },
			DefaultQualifiedResource: clusterregistry.Resource("clusters"),
			KeyRootFunc:              func(context.Context) string { return "/clusters" },
			KeyFunc:                  func(_ context.Context, name string) (string, error) { return "/clusters/" + name, nil },
			Storage:                  genericregistry.DryRunnableStorage{Storage: test.etcd},
		}
		claim := (&REST{Store: store, locks: locks}).claim(nil)
		err = claim.again(t.Context(), &claim.id, mine.DeepCopy(), true)
		var status apierrors.APIStatus
		if code := int32(0); err != nil {
			if errors.As(err, &status) {
				code = status.Status().Code
			}
			if code != test.code {
				t.Errorf("%s: %v", test.reason, err)
			}
		} else if test.code != 0 {
			t.Errorf("%s: no error", test.reason)
		}
		if undone := slices.Contains(gone, "/clusters/mine"); undone != test.undone {
			t.Errorf("%s: undone is %t: %v", test.reason, undone, gone)
		}
	}
}

// late is etcd whose watch cache is behind: it is asked for its progress, and may not have
// caught up in time.
type late struct {
	etcd
	versions *[]string
	asked    *int
	behind   bool
}

func (late) Create(_ context.Context, _ string, _, out runtime.Object, _ uint64) error {
	out.(*metav1.PartialObjectMetadata).ResourceVersion = "7"
	return nil
}

func (l late) RequestWatchProgress(context.Context) error {
	*l.asked++
	return errors.New("nobody listens")
}

func (l late) GetList(_ context.Context, _ string, options storage.ListOptions, _ runtime.Object) error {
	*l.versions = append(*l.versions, options.ResourceVersion)
	if l.behind && options.ResourceVersion != "" {
		return storage.NewTooLargeResourceVersionError(7, 6, 1)
	}
	return nil
}

// TestAListSinceALock lists what was written before a lock, or etcd's latest state where
// that is not what is known to be it.
func TestAListSinceALock(t *testing.T) {
	for _, test := range []struct {
		reason         string
		locked, behind bool
		versions       []string
		asked          int
	}{
		{"with a lock", true, false, []string{"7"}, 1},
		{"the cache does not catch up", true, true, []string{"7", ""}, 1},
		{"a dry run has no lock", false, false, []string{""}, 0},
	} {
		storage := late{versions: &[]string{}, asked: new(int), behind: test.behind}
		locks := &lock.Locks{}
		var held *lock.Lock
		if test.locked {
			var err error
			if locks, err = lock.New(decorated{storage}); err != nil {
				t.Fatal(err)
			}
			if held, err = locks.Take(t.Context(), "one"); err != nil {
				t.Fatal(err)
			}
		}
		rest := &REST{locks: locks, Store: &genericregistry.Store{
			NewListFunc: func() runtime.Object { return &clusterregistry.ClusterList{} }, DefaultQualifiedResource: clusterregistry.Resource("clusters"),
			KeyRootFunc: func(context.Context) string { return "/clusters" }, Storage: genericregistry.DryRunnableStorage{Storage: storage},
		}}
		if err := rest.idFree(t.Context(), &clusterregistry.Cluster{Spec: clusterregistry.ClusterSpec{ID: "one"}}, held); err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
		if !slices.Equal(*storage.versions, test.versions) || *storage.asked != test.asked {
			t.Errorf("%s: lists from %q, and the cache's progress was asked for %d times; want %q, %d", test.reason, *storage.versions, *storage.asked, test.versions, test.asked)
		}
	}
}
