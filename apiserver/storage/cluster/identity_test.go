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

// GetRESTOptions leads to it.
func (e etcd) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{}, ResourcePrefix: "locks",
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return e, func() {}, nil
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
		locks, err := lock.New(test.etcd)
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
