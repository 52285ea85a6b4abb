package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	clustersv1alpha1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	// leaderRate is how many requests are sent in a second while the leader moves, and breath for
	// how long each of the crowd waits after one: what counts is that writes are under way at
	// each move, and etcd needs a processor to elect its next leader.
	leaderRate = 40
	breath     = 10 * time.Millisecond
)

// TestLeaderMoves moves and kills the leader of the registry's etcd while
// clients write, and compares what etcd recorded with what was acknowledged.
func TestLeaderMoves(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		disturb func(*framework.Etcd)
		times   int
	}{
		"moves": {(*framework.Etcd).MoveLeader, 10},
		"kills": {(*framework.Etcd).KillLeader, 3},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := framework.StartEtcd(t, 3)
			_, _, config := independentOn(t, etcd, "--etcd-compaction-interval=0", "--vmodule=call=2,cache_watcher=1") // the history is compared at the end
			clients, err := versioned.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			clusters := clients.ClusterregistryV1alpha1().Clusters()
			history := record(t, etcd)
			observed := observe(t, clusters)

			crowd := startCrowd(t, clusters)
			// The server refuses a user's writes when about 200 wait, and the crowd's are the same user's.
			load := framework.StartLoad(t, config, leaderRate, framework.Pending(leaderRate))
			// A move that no write ran into proves nothing.
			for times := 0; times < test.times || len(retries(t, clients)) == 0; times++ {
				if times == 100 {
					t.Fatal("the server repeated nothing, though the leader went away 100 times")
				}
				test.disturb(etcd)
				load.Settle(t)
			}
			report := load.Stop()
			crowd.stop(t)

			t.Logf("%s; the server repeated %v", report, retries(t, clients))
			for _, failure := range report.Failed {
				t.Error(failure)
			}
			compare(t, clusters, report)
			want := acknowledged(report, crowd)
			history.compare(t, want)
			observed.compare(t, want)
		})
	}
}

// retries returns what the server says of the calls that it repeated.
func retries(t *testing.T, clients *versioned.Clientset) []string {
	t.Helper()
	metrics, err := clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var counts []string
	for line := range strings.Lines(string(metrics)) {
		if count, ok := strings.CutPrefix(line, "clusterregistry_storage_retries_total"); ok {
			counts = append(counts, strings.TrimSpace(count))
		}
	}
	return counts
}

// compare reads everything back.
func compare(t *testing.T, clusters clustersv1alpha1.ClusterInterface, report framework.Report) {
	t.Helper()
	list, err := clusters.List(t.Context(), metav1.ListOptions{LabelSelector: "load=yes"})
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Compare(list.Items); err != nil {
		t.Error(err)
	}
}

// crowd is writers who all change the same cluster, each an annotation of its
// own.
type crowd struct {
	cancel context.CancelFunc
	group  sync.WaitGroup
	name   string
	list   clustersv1alpha1.ClusterInterface
	acked  [4]int
	failed [4][]error
}

func startCrowd(t *testing.T, clusters clustersv1alpha1.ClusterInterface) *crowd {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &crowd{cancel: cancel, name: "crowded", list: clusters}
	if _, err := clusters.Create(ctx, &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range c.acked {
		c.group.Go(func() {
			for ctx.Err() == nil {
				patch := fmt.Sprintf(`{"metadata":{"annotations":{"writer-%d":"%d"}}}`, i, c.acked[i]+1)
				// Its client repeats only what the server asks it to.
				_, err := clusters.Patch(context.Background(), c.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				if err != nil {
					c.failed[i] = append(c.failed[i], err)
					continue
				}
				c.acked[i]++
				time.Sleep(breath)
			}
		})
	}
	t.Cleanup(cancel)
	return c
}

// stop ends the crowd and expects each writer's last word to stand.
func (c *crowd) stop(t *testing.T) {
	t.Helper()
	c.cancel()
	c.group.Wait()
	got, err := c.list.Get(t.Context(), c.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, acked := range c.acked {
		for _, err := range c.failed[i] {
			t.Errorf("writer %d: %v", i, err)
		}
		if last := got.Annotations[fmt.Sprintf("writer-%d", i)]; last != fmt.Sprint(acked) {
			t.Errorf("writer %d had %d changes acknowledged, and the last stored is %q", i, acked, last)
		}
	}
	t.Logf("%v changes of one cluster by %d writers", c.acked, len(c.acked))
}

// history is every change that etcd made.
type history struct {
	etcd *framework.Etcd
	from int64
}

func record(t *testing.T, etcd *framework.Etcd) *history {
	t.Helper()
	response, err := etcd.Client.Get(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	return &history{etcd, response.Header.Revision}
}

// acknowledged returns how many changes of each cluster were.
func acknowledged(report framework.Report, crowd *crowd) map[string]int {
	changes := map[string]int{crowd.name: 1}
	for _, acked := range crowd.acked {
		changes[crowd.name] += acked
	}
	for _, life := range report.Lives {
		changes[life.Name] = life.Writes
	}
	return changes
}

// compare counts each cluster's changes: no more and no fewer than were
// acknowledged.
func (h *history) compare(t *testing.T, want map[string]int) {
	t.Helper()
	const prefix, end = "/registry/clusterregistry.k8s.io/clusters/", "/end"
	put(t, h.etcd, end, "")
	changes := map[string]int{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := false
	for response := range h.etcd.Client.Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(h.from+1)) {
		if err := response.Err(); err != nil {
			t.Fatal(err)
		}
		for _, event := range response.Events {
			key := string(event.Kv.Key)
			if name, ok := strings.CutPrefix(key, prefix); ok {
				changes[name]++
			}
			ended = ended || key == end
		}
		if ended {
			break
		}
	}
	compareChanges(t, "etcd recorded", changes, want)
}

func compareChanges(t *testing.T, who string, got, want map[string]int) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s %d changes of %s, of which %d were acknowledged", who, got[name], name, want[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s %d changes of %s, which nobody wrote", who, got[name], name)
		}
	}
}

// observer watches all clusters. A server may end any watch, as it does with
// slow clients; then the observer goes on from where it was.
type observer struct {
	clusters clustersv1alpha1.ClusterInterface
	mu       sync.Mutex
	watches  int
	changes  map[string]int
	last     string
}

func observe(t *testing.T, clusters clustersv1alpha1.ClusterInterface) *observer {
	t.Helper()
	o := &observer{clusters: clusters, changes: map[string]int{}}
	list, err := clusters.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		o.mu.Lock()
		o.watches++
		o.mu.Unlock()
		return clusters.Watch(ctx, options)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	go func() {
		for event := range w.ResultChan() {
			o.mu.Lock()
			o.last = fmt.Sprintf("%s %v", event.Type, event.Object)
			if c, ok := event.Object.(*v1alpha1.Cluster); ok && event.Type != watch.Bookmark {
				o.changes[c.Name]++
			}
			o.mu.Unlock()
		}
	}()
	return o
}

// compare makes one more cluster and waits until the watch tells of it: all
// that came before it was told by then.
func (o *observer) compare(t *testing.T, want map[string]int) {
	t.Helper()
	const end = "end"
	if _, err := o.clusters.Create(t.Context(), &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: end}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the watch to catch up", func(context.Context) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.changes[end] == 0 {
			return fmt.Errorf("the last that it told is %s", o.last)
		}
		return nil
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.changes, end)
	t.Logf("the watch was begun %d times", o.watches)
	compareChanges(t, "the watch told", o.changes, want)
}
