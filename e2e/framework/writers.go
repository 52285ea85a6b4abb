package framework

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
)

// Writers are clients that write clusters one after the other until a write fails, and remember
// at which revision each was acknowledged. They are for losses that are expected: whatever is
// lost must be the end of what they wrote.
type Writers struct {
	label   string
	stop    context.CancelFunc
	running sync.WaitGroup
	each    []*writer
}

// writer creates clusters, and counts them in a label of one that stays.
type writer struct {
	counter string
	// created are the revisions of the clusters that it created, and counted those at which
	// the counter was set to 0, 1 and so on.
	created, counted []int64
	err              error
}

// counterLabel is the label that counts.
const counterLabel = "counted"

// StartWriters has so many clients write clusters whose names begin with a prefix.
func StartWriters(t *testing.T, config *rest.Config, prefix string, clients int) *Writers {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 1000, 1000
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	w := &Writers{stop: stop, label: prefix}
	for i := range clients {
		one := &writer{counter: fmt.Sprintf("%s-%d", prefix, i)}
		w.each = append(w.each, one)
		w.running.Go(func() { one.write(ctx, client.ClusterregistryV1beta1().Clusters()) })
	}
	t.Cleanup(w.Stop)
	return w
}

// write writes until a write fails, of which it is not known whether it was applied.
func (w *writer) write(ctx context.Context, clusters typed.ClusterInterface) {
	counter := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: w.counter, Labels: map[string]string{counterLabel: "0"}}}
	counter, w.err = clusters.Create(ctx, counter, metav1.CreateOptions{})
	for n := 1; w.err == nil; n++ {
		w.counted = append(w.counted, revision(counter.ResourceVersion))
		var created *v1beta1.Cluster
		created, w.err = clusters.Create(ctx, &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.counter, n)}}, metav1.CreateOptions{})
		if w.err != nil {
			return
		}
		w.created = append(w.created, revision(created.ResourceVersion))
		counter.Labels = map[string]string{counterLabel: strconv.Itoa(n)}
		counter, w.err = clusters.Update(ctx, counter, metav1.UpdateOptions{})
	}
}

// revision reads a resource version, 0 where it is none.
func revision(version string) int64 {
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Stop ends the clients. What is under way then counts as a write that failed.
func (w *Writers) Stop() {
	w.stop()
	w.running.Wait()
}

// Wait waits until every client has failed, or Patience is over.
func (w *Writers) Wait() { w.running.Wait() }

// Acknowledged returns how many writes were, and the highest revision among them. The clients
// must have ended.
func (w *Writers) Acknowledged() (writes int, highest int64) {
	for _, one := range w.each {
		for _, all := range [][]int64{one.created, one.counted} {
			writes += len(all)
			if len(all) > 0 {
				highest = max(highest, all[len(all)-1])
			}
		}
	}
	return writes, highest
}

// CheckPrefix fails the test unless what is stored is all that was acknowledged up to a
// revision, and nothing of what was after it. It returns how many acknowledged writes are lost.
// Of a write that failed, either will do.
func (w *Writers) CheckPrefix(t *testing.T, stored map[string]v1beta1.Cluster, last int64) (lost int) {
	t.Helper()
	for _, one := range w.each {
		if one.err == nil {
			t.Errorf("client %s has not ended", one.counter)
		}
		for i, at := range one.created {
			name := fmt.Sprintf("%s-%d", one.counter, i+1)
			got, is := stored[name]
			switch {
			case at > last && is:
				t.Errorf("%s was written at revision %d, and is there, of data up to %d", name, at, last)
			case at > last:
				lost++
			case !is:
				t.Errorf("%s was acknowledged at revision %d, and is lost, of data up to %d", name, at, last)
			case revision(got.ResourceVersion) != at:
				t.Errorf("%s was acknowledged at revision %d, and is of %s", name, at, got.ResourceVersion)
			}
		}
		lost += one.checkCounter(t, stored, last)
	}
	return lost
}

// checkCounter is CheckPrefix for the cluster that counts.
func (w *writer) checkCounter(t *testing.T, stored map[string]v1beta1.Cluster, last int64) (lost int) {
	t.Helper()
	want := -1
	for i, at := range w.counted {
		if at <= last {
			want = i
		} else {
			lost++
		}
	}
	got, is := stored[w.counter]
	counted := got.Labels[counterLabel]
	doubtful := lost == 0 && counted == strconv.Itoa(want+1) // the write that failed was applied
	if is != (want >= 0) && !doubtful || is && counted != strconv.Itoa(want) && !doubtful {
		t.Errorf("%s counts %q (there: %t), and %d was acknowledged of data up to %d", w.counter, counted, is, want, last)
	}
	return lost
}
