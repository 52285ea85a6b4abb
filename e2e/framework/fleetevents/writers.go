package fleetevents

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	// rate is how many writes there are in a second.
	rate = 20
	// parallel is how many clients write.
	parallel = 4
	// short and long are after how many rounds of its client a cluster is deleted. A round
	// has about five writes.
	short, long = 8, 40
)

// Writers create, change and delete clusters at a steady rate, with names that come again.
type Writers struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	each    []*writer
}

type writer struct {
	clusters typed.ClusterInterface
	prefix   string
	alive    []*Life
	lives    []*Life

	mutex  sync.Mutex
	rounds int
	err    error
}

// written returns how many rounds were, or why there will be no more.
func (w *writer) written() (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.rounds, w.err
}

// StartWriters starts writers of clusters whose names begin with a prefix.
func StartWriters(t *testing.T, config *rest.Config, prefix string) *Writers {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = rate, 1
	config.NextProtos = []string{"http/1.1"}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	w := &Writers{stop: stop}
	for i := range parallel {
		one := &writer{clusters: client.ClusterregistryV1beta1().Clusters(), prefix: fmt.Sprintf("%s-%d", prefix, i)}
		w.each = append(w.each, one)
		w.running.Go(func() { one.run(ctx) })
	}
	t.Cleanup(func() { stop(); w.running.Wait() })
	return w
}

// Stop ends the writers and returns what they have written. The test fails when a write has:
// of that one it is not known whether it was applied.
func (w *Writers) Stop(t *testing.T) []Life {
	t.Helper()
	w.stop()
	w.running.Wait()
	var out []Life
	for _, one := range w.each {
		if _, err := one.written(); err != nil {
			t.Errorf("a write failed: %v", err)
		}
		for _, life := range one.lives {
			out = append(out, *life)
		}
	}
	return out
}

// WaitLong waits until each client has made so many clusters that it deletes old ones.
func (w *Writers) WaitLong(t *testing.T) { w.waitRounds(t, long+1, true) }

// WaitMore waits until each client has written some rounds more: enough that clusters were
// created, changed and deleted since.
func (w *Writers) WaitMore(t *testing.T) { w.waitRounds(t, short+4, false) }

func (w *Writers) waitRounds(t *testing.T, rounds int, fromStart bool) {
	t.Helper()
	for _, one := range w.each {
		want := rounds
		if now, _ := one.written(); !fromStart {
			want += now
		}
		framework.Eventually(t, fmt.Sprintf("%s to have written %d rounds", one.prefix, want), func(context.Context) error {
			got, err := one.written()
			if err != nil {
				t.Fatalf("a write failed: %v", err)
			}
			if got < want {
				return fmt.Errorf("it has written %d", got)
			}
			return nil
		})
	}
}

// run writes round after round. The last round is finished, so that all is answered.
func (w *writer) run(ctx context.Context) {
	answered := context.WithoutCancel(ctx)
	for round := 0; ctx.Err() == nil; round++ {
		err := w.create(answered, fmt.Sprintf("%s-%d", w.prefix, round))
		if err == nil {
			err = w.change(answered, round)
		}
		if err == nil {
			err = w.end(answered, round)
		}
		w.mutex.Lock()
		w.rounds, w.err = round+1, err
		w.mutex.Unlock()
		if err != nil {
			return
		}
	}
}

func (w *writer) create(ctx context.Context, name string) error {
	cluster := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://" + name + ".example.com"}}}}
	made, err := w.clusters.Create(ctx, cluster, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	life := &Life{Name: name, UID: string(made.UID), Versions: []string{made.ResourceVersion}}
	w.lives, w.alive = append(w.lives, life), append(w.alive, life)
	return nil
}

// change changes the newest clusters, and the first one, which stays.
func (w *writer) change(ctx context.Context, round int) error {
	for i, life := range slices.Concat(w.alive[max(0, len(w.alive)-2):], w.lives[:1]) {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"changed":"%d-%d"}}}`, round, i)
		made, err := w.clusters.Patch(ctx, life.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		life.Versions = append(life.Versions, made.ResourceVersion)
	}
	return nil
}

// end deletes what has lived its time: most clusters are short-lived, and of those every
// other name is given again at once. The others live long, and the first one stays.
func (w *writer) end(ctx context.Context, round int) error {
	for _, age := range []int{short, long} {
		name, number := fmt.Sprintf("%s-%d", w.prefix, round-age), round-age
		i := slices.IndexFunc(w.alive, func(l *Life) bool { return l.Name == name })
		if i < 0 || number == 0 || age == short && number%3 == 0 {
			continue
		}
		if err := w.clusters.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		w.alive[i].Deleted = true
		w.alive = slices.Delete(w.alive, i, i+1)
		if age == short && number%3 == 2 {
			if err := w.create(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}
