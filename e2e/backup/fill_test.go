package backup

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
)

// unlimited returns a client of a registry that sends as many requests as it is told to.
func unlimited(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) versioned.Interface {
	t.Helper()
	config := e.RegistryConfig(registry)
	config.QPS = -1
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// size is how many bytes each cluster has about, as it is sent.
const size = 1000

// sized returns a cluster of that size.
func sized(name string) *v1beta1.Cluster {
	cluster := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "r" + name[len(name)-1:]}}}
	cluster.Spec.Endpoints = []v1beta1.Endpoint{{Name: "outside", URL: "https://" + name + ".example:6443"}}
	const rest = 210 // what it has besides, with the longest name
	cluster.Annotations = map[string]string{"note": strings.Repeat("x", size-rest)}
	return cluster
}

// populate adds the clusters that are missing, from the first to the last number.
func (b *bench) populate(first, last int) {
	b.t.Helper()
	begun := time.Now()
	next := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := range next {
				if err := b.add(fmt.Sprintf("c-%06d", i)); err != nil {
					b.t.Error(err)
				}
			}
		})
	}
	for i := first; i < last; i++ {
		next <- i
	}
	close(next)
	workers.Wait()
	if b.t.Failed() {
		b.t.FailNow()
	}
	b.t.Logf("%d clusters were created in %s", last-first, time.Since(begun).Round(time.Second))
}

// add creates a cluster, again when a server is too busy.
func (b *bench) add(name string) error {
	pause := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 8}
	return retry.OnError(pause, func(error) bool { return true }, func() error {
		_, err := b.clients.ClusterregistryV1beta1().Clusters().Create(b.t.Context(), sized(name), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // by an attempt whose answer was lost
		}
		return err
	})
}

// write is a cluster that was created.
type write struct {
	name         string
	revision     int64
	acknowledged time.Time
}

// write creates a cluster after the other, some each second, until it is stopped, and then one
// more. It returns those that were acknowledged.
func (b *bench) write() (stop func() []write) {
	b.t.Helper()
	var written []write
	begun := time.Now().UnixMilli()
	one := func(ctx context.Context) {
		cluster, err := b.clients.ClusterregistryV1beta1().Clusters().Create(ctx, sized(fmt.Sprintf("during-%d-%d", begun, len(written))), metav1.CreateOptions{})
		if err != nil {
			b.t.Errorf("a write was not acknowledged: %v", err)
			return
		}
		revision, err := strconv.ParseInt(cluster.ResourceVersion, 10, 64)
		if err != nil {
			b.t.Error(err)
		}
		written = append(written, write{cluster.Name, revision, time.Now()})
	}
	one(b.t.Context()) // there is one before the backup
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(context.Context) { one(b.t.Context()) }, 200*time.Millisecond)
	}()
	return func() []write {
		cancel()
		<-done
		one(b.t.Context()) // right after the backup
		return written
	}
}
