package heartbeat

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// lagging has a cluster east, of which the watch cache has a former one.
type lagging struct {
	Clusters
	cached, stored types.UID
}

func (l lagging) Get(_ context.Context, _ string, options *metav1.GetOptions) (runtime.Object, error) {
	uid := l.stored
	if options.ResourceVersion == "0" {
		uid = l.cached
	}
	return &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: uid}}, nil
}

// TestKnownCluster tells the heartbeat of a former cluster, which is removed, from that of the present
// one, whatever the watch cache or the caller knows of it.
func TestKnownCluster(t *testing.T) {
	for _, test := range []struct {
		reason               string
		cached, stored       types.UID
		of                   types.UID
		beat                 types.UID
		isFormer, isNotFound bool
	}{
		{"the cache is behind", "one", "two", "two", "one", true, false},
		{"both know", "two", "two", "two", "one", true, false},
		{"the caller is behind", "two", "two", "one", "two", false, true},
		{"the caller and the cache are behind", "one", "two", "one", "two", false, true},
		{"the caller does not know, and the cache is behind", "one", "two", "", "two", false, false},
	} {
		beat := &clusterregistry.ClusterHeartbeat{ObjectMeta: metav1.ObjectMeta{Name: "east.agent", ResourceVersion: "1"}, ClusterName: "east", ClusterUID: test.beat}
		_, err := stamped{same{beat}, &REST{clusters: lagging{cached: test.cached, stored: test.stored}}, test.of}.UpdatedObject(t.Context(), beat)
		if errors.As(err, new(former)) != test.isFormer || apierrors.IsNotFound(err) != test.isNotFound || err != nil && !test.isFormer && !test.isNotFound {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// same changes nothing.
type same struct{ object runtime.Object }

func (same) Preconditions() *metav1.Preconditions { return nil }

func (s same) UpdatedObject(context.Context, runtime.Object) (runtime.Object, error) {
	return s.object, nil
}
