package ui

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// TestReader has a slow reader see the last state of each entry, and keep no more than names.
func TestReader(t *testing.T) {
	f := newFeed(func() time.Time { return commandtest.Now })
	f.connect(kindClusters, Loading, "")
	f.replace(kindClusters, map[string]any{"a": "a1", "b": "b1"})
	r := f.read()
	for i := range 1000 {
		f.set(kindClusters, "c", fmt.Sprint("c", i))
		f.set(kindClusters, fmt.Sprint("gone", i%2), "x")
		f.set(kindClusters, fmt.Sprint("gone", i%2), nil)
	}
	f.replace(kindClusters, map[string]any{"a": "a2", "c": "c!"})
	if len(r.dirty) != 5 {
		t.Errorf("%d entries are kept for the reader", len(r.dirty))
	}
	var set []any
	var gone []string
	for i := 0; ; i++ {
		change := r.next(2)
		set, gone = append(set, change.Set[kindClusters]...), append(gone, change.Gone[kindClusters]...)
		if (len(change.Connections) == 1) == change.More {
			t.Errorf("the connections are not last: %+v", change)
		}
		if !change.More {
			break
		}
	}
	slices.Sort(gone)
	if len(set) != 2 || !slices.Contains(set, any("a2")) || !slices.Contains(set, any("c!")) || !slices.Equal(gone, []string{"b", "gone0", "gone1"}) {
		t.Errorf("%v, without %v", set, gone)
	}
	r.close()
	if f.set(kindClusters, "d", "d"); len(r.dirty) != 0 || len(f.readers) != 0 {
		t.Error("a reader that is closed is still told")
	}
}

// TestConnection says since when a source is lost, and of when is what is shown.
func TestConnection(t *testing.T) {
	now := commandtest.Now
	f := newFeed(func() time.Time { return now })
	step := func(state State, message string) Connection {
		now = now.Add(time.Minute)
		f.connect(kindClusters, state, message)
		return f.connections[kindClusters]
	}
	step(Live, "")
	live := step(Live, "")
	lost := step(Lost, "refused")
	again := step(Lost, "refused still")
	if !live.Since.Equal(commandtest.Now.Add(time.Minute)) || !live.Seen.Equal(commandtest.Now.Add(2*time.Minute)) {
		t.Errorf("live: %+v", live)
	}
	if !lost.Since.Equal(commandtest.Now.Add(3*time.Minute)) || !again.Since.Equal(lost.Since) || !again.Seen.Equal(*live.Seen) || again.Message != "refused still" {
		t.Errorf("lost: %+v", again)
	}
}

// TestFollow follows a registry that goes away and comes back, and a host cluster without
// ClusterRegistries.
func TestFollow(t *testing.T) {
	env := commandtest.New(t, cluster("east", "True"))
	env.Objects = commandtest.HostCluster()
	var away, full atomic.Bool
	var watches = make(chan *watch.FakeWatcher, 100)
	env.Clusters.PrependWatchReactor("clusters", func(clienttesting.Action) (bool, watch.Interface, error) {
		if away.Load() {
			return true, watch.NewEmptyWatch(), nil // as client-go has it of a connection that breaks
		}
		if full.Load() {
			return true, nil, apierrors.NewTooManyRequests("the watch cache is being filled", 1)
		}
		w := watch.NewFake()
		watches <- w
		return true, w, nil
	})
	env.Clusters.PrependReactor("list", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away.Load(), nil, errors.New("connection refused")
	})
	env.Objects.PrependReactor("list", "clusterregistries", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "clusterregistries"}, "")
	})
	env.Objects.PrependReactor("list", "clusterregistrybackups", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "clusterregistrybackups"}, "", errors.New("no"))
	})
	f := newFeed(time.Now)
	r := f.read()
	defer r.close()
	follow(t.Context(), f, sources(env.Env, f, env.Clusters, env.Objects))

	rows, states := map[string]Row{}, map[string]State{}
	await := func(reason string, reached func() bool) {
		t.Helper()
		for !reached() {
			select {
			case <-t.Context().Done():
				t.Fatalf("%s: %v, %v", reason, rows, states)
			case <-r.wake:
			}
			change := r.next(1000)
			for _, entry := range change.Set[kindClusters] {
				rows[entry.(Row).Name] = entry.(Row)
			}
			for _, name := range change.Gone[kindClusters] {
				delete(rows, name)
			}
			for _, c := range change.Connections {
				states[c.Source] = c.State
			}
		}
	}
	await("all is read", func() bool {
		return rows["east"].State == "True" && states[kindClusters] == Live && states[kindRegistries] == Absent && states[kindBackups] == Absent
	})
	w := <-watches
	w.Add(cluster("west", "False"))
	await("a cluster comes", func() bool { return rows["west"].State == "False" })
	w.Modify(cluster("west", "True"))
	await("it changes", func() bool { return rows["west"].State == "True" })
	w.Delete(cluster("west", "True"))
	await("it goes", func() bool { return len(rows) == 1 })
	away.Store(true)
	w.Stop()
	await("the registry is away", func() bool { return states[kindClusters] == Lost })
	if len(rows) != 1 {
		t.Errorf("what was seen is gone: %v", rows)
	}
	if _, err := env.Clusters.ClusterregistryV1beta1().Clusters().Create(t.Context(), cluster("north", "True"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	away.Store(false)
	await("it is back", func() bool { return states[kindClusters] == Live && rows["north"].State == "True" })
	w = <-watches // the list alone shows it as back: a watch that was refused would never come
	full.Store(true)
	w.Stop()
	await("watches are refused", func() bool { return states[kindClusters] == Lost })
	full.Store(false)
	await("they are not any more", func() bool { return states[kindClusters] == Live })
}
