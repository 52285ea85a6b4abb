package visibility

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// shelf is an etcd with a record for each caller whose name has an "a", which counts reads and
// lets each wait to be let go.
type shelf struct {
	storage.Interface
	gate  chan struct{}
	mu    sync.Mutex
	gets  int
	lists int
}

func (*shelf) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (s *shelf) Get(_ context.Context, key string, _ storage.GetOptions, out runtime.Object) error {
	s.mu.Lock()
	s.gets++
	s.mu.Unlock()
	<-s.gate
	name := key[strings.LastIndex(key, "/")+1:]
	if !strings.Contains(name, "a") {
		return storage.NewKeyNotFoundError(key, 0)
	}
	fill(out.(*metav1.PartialObjectMetadata), name)
	return nil
}

func (s *shelf) GetList(_ context.Context, _ string, _ storage.ListOptions, out runtime.Object) error {
	s.mu.Lock()
	s.lists++
	s.mu.Unlock()
	items := make([]metav1.PartialObjectMetadata, 200)
	for i := range items {
		fill(&items[i], fmt.Sprintf("a%d", i))
	}
	out.(*metav1.PartialObjectMetadataList).Items = items
	return nil
}

func fill(out *metav1.PartialObjectMetadata, name string) {
	*out = *object(name, record{sets: "of " + name})
	out.ResourceVersion = "7"
}

// TestLatest reads of the records that of the caller alone, once for all its requests, and those
// of all callers once where many wait.
func TestLatest(t *testing.T) {
	for _, test := range []struct {
		reason         string
		callers, times int
		gets, lists    int
	}{
		{"one", 1, 1, 2, 0}, {"one, often", 1, 50, 2, 0}, {"a few", few, 2, 1 + few, 0}, {"many", few + 1, 1, 1, 1},
	} {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{gate: make(chan struct{})}
				r := &Records{storage: s, prefix: "/x"}
				ask := func(name string) {
					go func() {
						rec, found, err := r.latest(t.Context(), name)
						if has := strings.Contains(name, "a"); err != nil || found != has || found && (rec.sets != "of "+name || rec.since != 7) {
							t.Errorf("of %s: %+v, %t, %v", name, rec, found, err)
						}
					}()
				}
				ask("before") // the others are asked for while this one is read
				synctest.Wait()
				for i := range test.callers {
					for range test.times {
						ask(fmt.Sprintf("a%d", i))
					}
				}
				synctest.Wait()
				close(s.gate)
				synctest.Wait()
				if s.lists != test.lists || s.gets != test.gets || r.flying {
					t.Errorf("%d gets and %d lists; still reading: %t", s.gets, s.lists, r.flying)
				}
			})
		})
	}
}
