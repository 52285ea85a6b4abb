package health

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	apply "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned/fake"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/informers"
	"github.com/clusterregistry/operator/controller/probe"
	"github.com/clusterregistry/operator/internal/contract"
)

// fleet is a controller whose registry is its informer's cache: for many clusters, and
// for the time of a synctest bubble.
type fleet struct {
	typed.ClusterInterface
	*Controller

	mu     sync.Mutex
	answer func(name string) probe.Result
	falses map[string]bool
	said   []contract.FunctionState
}

func newFleet(t *testing.T, concurrency int, clusters ...*v1beta1.Cluster) *fleet {
	t.Helper()
	f := &fleet{falses: map[string]bool{}, answer: func(string) probe.Result { return ready }}
	var err error
	f.Controller, err = New(Config{
		Clusters: f,
		Informer: informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0).Clusterregistry().V1beta1().Clusters(), // never started
		Probe: func(_ context.Context, target probe.Target) probe.Result {
			f.mu.Lock()
			answer := f.answer
			f.mu.Unlock()
			return answer(target.Endpoint.URL[len("https://"):])
		},
		Say:    func(state contract.FunctionState, _ string) { f.said = append(f.said, state) },
		Period: time.Minute, Concurrency: concurrency, Clock: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range clusters {
		if err := f.Informer.Informer().GetIndexer().Add(cluster); err != nil {
			t.Fatal(err)
		}
		f.added(cluster, true)
	}
	return f
}

// answers sets what clusters answer from now on.
func (f *fleet) answers(answer func(name string) probe.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// ApplyStatus keeps what is applied, as if there were no other reporters.
func (f *fleet) ApplyStatus(_ context.Context, applied *apply.ClusterApplyConfiguration, _ metav1.ApplyOptions) (*v1beta1.Cluster, error) {
	before, err := f.lister.Get(*applied.Name)
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(applied.Status)
	if err != nil {
		return nil, err
	}
	now := before.DeepCopy()
	now.Status = &v1beta1.ClusterStatus{}
	if err := json.Unmarshal(content, now.Status); err != nil {
		return nil, err
	}
	if is(meta.FindStatusCondition(now.Status.Conditions, Available), metav1.ConditionFalse) {
		f.mu.Lock()
		f.falses[now.Name] = true
		f.mu.Unlock()
	}
	if err := f.Informer.Informer().GetIndexer().Update(now); err != nil {
		return nil, err
	}
	f.updated(before, now)
	return now, nil
}

// run runs the controller in a bubble until do has returned.
func (f *fleet) run(t *testing.T, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(ctx) }()
	do()
	cancel()
	<-ended
}

// timesOut is a probe that waits in vain.
func timesOut(string) probe.Result {
	time.Sleep(probe.Timeout) // of the bubble
	return slow
}

// TestOutageOfLargeFleet cuts this side off from 10,000 clusters: probes last until
// their timeout, so that only few of them end in a period.
func TestOutageOfLargeFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clusters, _ := entries(10000)
		f := newFleet(t, 64, clusters...)
		f.run(t, func() {
			time.Sleep(3 * time.Minute)
			f.answers(timesOut)
			time.Sleep(30 * time.Minute)
		})
		if len(f.falses) != 0 || !slices.Equal(f.said, []contract.FunctionState{contract.FunctionIsolated}) {
			t.Errorf("%d clusters turned False, said %v", len(f.falses), f.said)
		}
	})
}

// TestPartialOutageOfLargeFleet cuts this side off from 60% of 3,000 clusters.
func TestPartialOutageOfLargeFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clusters, names := entries(3000)
		cut := map[string]bool{}
		for _, name := range names[:1800] {
			cut[name] = true
		}
		f := newFleet(t, 64, clusters...)
		f.run(t, func() {
			time.Sleep(5 * time.Minute)
			f.answers(func(name string) probe.Result {
				if cut[name] {
					return timesOut(name)
				}
				return ready
			})
			time.Sleep(30 * time.Minute)
		})
		if len(f.falses) != 0 || !slices.Equal(f.said, []contract.FunctionState{contract.FunctionIsolated}) {
			t.Errorf("%d clusters turned False, said %v", len(f.falses), f.said)
		}
	})
}

// TestSlowClustersDelayNone has many clusters that answer, but slowly, and many that
// never answered: those that answer soon are asked in every period.
func TestSlowClustersDelayNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clusters, names := entries(400)
		good, asked := map[string]bool{}, map[string]int{}
		for i, name := range names[:100] {
			good[name] = true
			clusters[i].Status = &v1beta1.ClusterStatus{Reporters: []v1beta1.Reporter{{Name: Reporter, Conditions: []metav1.Condition{{Type: Reachable, Status: metav1.ConditionTrue}}}}}
		}
		f := newFleet(t, 4, clusters...)
		var mu sync.Mutex
		f.answers(func(name string) probe.Result {
			mu.Lock()
			asked[name]++
			mu.Unlock()
			if good[name] {
				return ready
			}
			time.Sleep(5 * time.Second) // of the bubble
			return ready
		})
		f.run(t, func() { time.Sleep(10*time.Minute + time.Second) })
		for name := range good {
			if asked[name] < 9 {
				t.Errorf("%s was asked %d times in ten minutes", name, asked[name])
			}
		}
	})
}

// hanging is a registry that takes no report.
type hanging struct{ typed.ClusterInterface }

func (hanging) ApplyStatus(ctx context.Context, _ *apply.ClusterApplyConfiguration, _ metav1.ApplyOptions) (*v1beta1.Cluster, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestReportsDontHang gives up a report that the registry doesn't take.
func TestReportsDontHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, entry("east"))
		f.Clusters = hanging{}
		began := time.Now()
		if !f.Check(t.Context(), "east") || time.Since(began) != patience {
			t.Errorf("the report ends after %s", time.Since(began))
		}
	})
}
