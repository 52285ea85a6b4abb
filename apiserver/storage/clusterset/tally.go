package clusterset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// maxVersions bounds the versions in the status of a set.
const maxVersions = 32

// member is what counts of a cluster that is in a set.
type member struct {
	set, version string
	available    bool
}

// tally knows which clusters are in which set. A reflector feeds it, so that it holds no
// more of a cluster than what counts: a registry may have 100,000.
type tally struct {
	lock    sync.Mutex
	members map[string]member          // by name of the cluster
	sets    map[string]map[string]bool // names of the clusters, by set
	changed map[string]bool            // sets whose members have changed since the last take
	// wake has a value while something has changed.
	wake chan struct{}
}

var _ cache.ReflectorStore = &tally{}

func newTally() *tally {
	return &tally{members: map[string]member{}, sets: map[string]map[string]bool{}, changed: map[string]bool{}, wake: make(chan struct{}, 1)}
}

// Add counts a cluster.
func (t *tally) Add(object any) error { return t.Update(object) }

// Update counts a cluster as it is now.
func (t *tally) Update(object any) error {
	cluster, ok := object.(*clusterregistry.Cluster)
	if !ok {
		return fmt.Errorf("%T is not a Cluster", object)
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	t.put(cluster.Name, memberOf(cluster))
	return nil
}

// Delete counts a cluster no longer.
func (t *tally) Delete(object any) error {
	cluster, ok := object.(*clusterregistry.Cluster)
	if !ok {
		return fmt.Errorf("%T is not a Cluster", object)
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	t.put(cluster.Name, member{})
	return nil
}

// Replace counts these clusters, and no others.
func (t *tally) Replace(objects []any, _ string) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	left := maps.Clone(t.members)
	for _, object := range objects {
		cluster, ok := object.(*clusterregistry.Cluster)
		if !ok {
			return fmt.Errorf("%T is not a Cluster", object)
		}
		delete(left, cluster.Name)
		t.put(cluster.Name, memberOf(cluster))
	}
	for name := range left {
		t.put(name, member{})
	}
	return nil
}

// Resync does nothing: what is counted is what is stored.
func (*tally) Resync() error { return nil }

func memberOf(cluster *clusterregistry.Cluster) member {
	m := member{set: cluster.Spec.ClusterSet}
	if cluster.Status != nil {
		m.version = cluster.Status.Version.Kubernetes
		m.available = meta.IsStatusConditionTrue(cluster.Status.Conditions, "Available")
	}
	return m
}

// put notes what a cluster is now; one without a set does not count.
func (t *tally) put(name string, now member) {
	before := t.members[name]
	if now.set == "" {
		now = member{}
	}
	if now == before {
		return
	}
	if before.set != "" {
		delete(t.sets[before.set], name)
		if len(t.sets[before.set]) == 0 {
			delete(t.sets, before.set)
		}
		delete(t.members, name)
		t.touch(before.set)
	}
	if now.set != "" {
		if t.sets[now.set] == nil {
			t.sets[now.set] = map[string]bool{}
		}
		t.sets[now.set][name] = true
		t.members[name] = now
		t.touch(now.set)
	}
}

// touch notes that a set has changed.
func (t *tally) touch(set string) {
	t.changed[set] = true
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// take returns the sets that have changed since it was last asked.
func (t *tally) take() []string {
	t.lock.Lock()
	defer t.lock.Unlock()
	out := slices.Sorted(maps.Keys(t.changed))
	clear(t.changed)
	return out
}

// again has sets count as changed once more.
func (t *tally) again(sets ...string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	for _, set := range sets {
		t.touch(set)
	}
}

// status returns what there is to say of a set.
func (t *tally) status(set string) clusterregistry.ClusterSetStatus {
	t.lock.Lock()
	defer t.lock.Unlock()
	var out clusterregistry.ClusterSetStatus
	versions := map[string]int32{}
	for name := range t.sets[set] {
		m := t.members[name]
		out.Clusters++
		if m.available {
			out.Available++
		}
		if m.version != "" {
			versions[m.version]++
		}
	}
	for version, clusters := range versions {
		out.Versions = append(out.Versions, clusterregistry.ClusterSetVersion{Kubernetes: version, Clusters: clusters})
	}
	slices.SortFunc(out.Versions, func(a, b clusterregistry.ClusterSetVersion) int {
		return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), cmp.Compare(a.Kubernetes, b.Kubernetes))
	})
	out.Versions = out.Versions[:min(len(out.Versions), maxVersions)]
	return out
}
