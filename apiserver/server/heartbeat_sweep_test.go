package server

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/heartbeat"
)

// clusters are what heartbeats are of, for those who look in the cache and in etcd.
type clusters struct {
	cached, latest map[string]types.UID
	// unlisted is why the cache does not answer.
	unlisted error
	// asked is called before etcd is asked, if it is not nil, and may say that etcd fails.
	asked func(name string) error
}

func (c *clusters) Get(_ context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	of := c.cached
	if options.ResourceVersion == "" {
		if c.asked != nil {
			if err := c.asked(name); err != nil {
				return nil, err
			}
		}
		of = c.latest
	}
	uid, found := of[name]
	if !found {
		return nil, apierrors.NewNotFound(clusterregistry.Resource("clusters"), name)
	}
	return &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}, nil
}

func (c *clusters) List(_ context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion != "0" {
		return nil, errors.New("all clusters are read from etcd")
	}
	list := &clusterregistry.ClusterList{}
	for name, uid := range c.cached {
		list.Items = append(list.Items, clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}})
	}
	return list, c.unlisted
}

// storedBeats are the heartbeats of an agent, of clusters with the UID 1.
func storedBeats(t *testing.T, of *clusters, finalizers []string, names ...string) (*history, *heartbeat.REST) {
	t.Helper()
	stored := newHistory()
	for _, name := range names {
		beat := &clusterregistry.ClusterHeartbeat{ObjectMeta: metav1.ObjectMeta{Name: name + ".agent", UID: "b", Finalizers: finalizers}, ClusterName: name, ClusterUID: "1", Reporter: "agent"}
		if err := stored.Create(t.Context(), "/clusterheartbeats/"+beat.Name, beat, &clusterregistry.ClusterHeartbeat{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	beats, err := heartbeat.New(scheme, stored, of)
	if err != nil {
		t.Fatal(err)
	}
	return stored, beats
}

// TestHeartbeatsGoWithTheirClusters: they stay no longer than their cluster, and no shorter.
func TestHeartbeatsGoWithTheirClusters(t *testing.T) {
	is := map[string]types.UID{"east": "1"}
	other, none := map[string]types.UID{"east": "2"}, map[string]types.UID{}
	for _, test := range []struct {
		reason  string
		of      clusters
		renewed bool
		kept    []string
		stays   bool
	}{
		{"a cluster", clusters{cached: is, latest: is}, false, nil, true},
		{"one that is gone", clusters{cached: none, latest: none}, false, nil, false},
		{"one that is gone, and a finalizer", clusters{cached: none, latest: none}, false, []string{"example.com/wait"}, false},
		{"another one of its name", clusters{cached: other, latest: other}, false, nil, false},
		{"one that is not in the cache yet", clusters{cached: none, latest: is}, false, nil, true},
		{"another one that is in the cache still", clusters{cached: other, latest: is}, false, nil, true},
		{"the cache does not answer", clusters{latest: none, unlisted: errors.New("no")}, false, nil, true},
		{"etcd does not answer", clusters{cached: none, latest: none, asked: func(string) error { return errors.New("no") }}, false, nil, true},
		{"it is renewed meanwhile", clusters{cached: none, latest: none}, true, nil, true},
	} {
		stored, beats := storedBeats(t, &test.of, test.kept, "east")
		const key = "/clusterheartbeats/east.agent"
		if test.renewed {
			test.of.asked = func(string) error {
				if done, err := stored.swap(key, stored.now(key), stored.now(key), &clusterregistry.ClusterHeartbeat{}); !done || err != nil {
					t.Error(done, err)
				}
				return nil
			}
		}
		beats.SweepOnce(t.Context())
		if stays := stored.now(key) != nil; stays != test.stays {
			t.Errorf("%s: the heartbeat stays: %t", test.reason, stays)
		}
	}
}

// TestSweeping continues after a cluster that can't be read, asks etcd only for those that are
// missing, and ends with its context.
func TestSweeping(t *testing.T) {
	of := &clusters{cached: map[string]types.UID{"a": "1", "d": "1"}}
	stored, beats := storedBeats(t, of, nil, "a", "b", "c", "d", "e")
	ctx, cancel := context.WithCancel(t.Context())
	asked := ""
	of.asked = func(name string) error {
		asked += name
		switch name {
		case "b":
			return errors.New("it can't be decoded")
		case "c":
			cancel()
		}
		return nil
	}
	beats.SweepOnce(ctx)
	if asked != "bc" {
		t.Errorf("until the end, etcd is asked for %q", asked)
	}
	asked = ""
	beats.SweepOnce(t.Context())
	if asked != "be" {
		t.Errorf("in the next round, etcd is asked for %q", asked)
	}
	for name, stays := range map[string]bool{"a": true, "b": true, "c": false, "d": true, "e": false} {
		if is := stored.now("/clusterheartbeats/"+name+".agent") != nil; is != stays {
			t.Errorf("that of %s stays: %t", name, is)
		}
	}
}
