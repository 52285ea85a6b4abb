package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// cached is a storage with a watch cache that is being filled, or asks an etcd that is silent.
type cached struct {
	storage.Interface
	until  time.Time
	silent bool
	// lasting is the context of the watch that began.
	lasting context.Context
	begun   *watch.FakeWatcher
}

func (c *cached) ask(ctx context.Context) error {
	switch {
	case time.Now().After(c.until):
		return nil
	case c.silent:
		<-ctx.Done()
		return ctx.Err()
	}
	return apierrors.NewTooManyRequests("storage is (re)initializing", 1)
}

func (c *cached) Watch(ctx context.Context, _ string, _ storage.ListOptions) (watch.Interface, error) {
	// As the watch cache does: an error of etcd is the first event.
	err := c.ask(ctx)
	if err != nil && !c.silent {
		return nil, err
	}
	c.lasting, c.begun = ctx, watch.NewFake()
	return c.begun, nil
}

func (c *cached) GetList(ctx context.Context, _ string, _ storage.ListOptions, _ runtime.Object) error {
	return c.ask(ctx)
}

// TestUnreadyCache has a watch cache that is being filled for five minutes: who asks it is told
// within seconds when to ask again. A watch that has begun lasts, however long that took.
func TestUnreadyCache(t *testing.T) {
	for _, silent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			below := &cached{until: time.Now().Add(5 * time.Minute), silent: silent}
			s := &store{Interface: below, codec: codec, newFunc: func() runtime.Object { return &clusterregistry.Cluster{} }, outage: &outage{}}
			hour, end := context.WithTimeout(t.Context(), time.Hour)
			defer end()
			calls := map[string]func() error{"watch": func() error {
				_, err := s.Watch(hour, "/", storage.ListOptions{})
				return err
			}}
			most, right := patience+time.Second, apierrors.IsServiceUnavailable
			if !silent {
				most, right = filling+time.Second, apierrors.IsTooManyRequests
				calls["list"] = func() error { return s.GetList(hour, "/", storage.ListOptions{ResourceVersion: "0"}, nil) }
			}
			for name, call := range calls {
				asked := time.Now()
				err := call()
				if _, suggested := apierrors.SuggestsClientDelay(err); !right(err) || !suggested {
					t.Errorf("%s, silent %t: %v", name, silent, err)
				}
				if took := time.Since(asked); took > most {
					t.Errorf("%s, silent %t: told after %s", name, silent, took)
				}
			}
			if silent && !below.begun.IsStopped() {
				t.Error("a watch that was given up is not stopped")
			}

			early := time.Second // a request waits for the cache
			if silent {
				early = -time.Second
			}
			time.Sleep(time.Until(below.until) - early)
			w, err := s.Watch(hour, "/", storage.ListOptions{})
			if err != nil {
				t.Fatalf("silent %t: the cache is filled: %v", silent, err)
			}
			time.Sleep(30 * time.Minute)
			if below.lasting.Err() != nil || w != watch.Interface(below.begun) {
				t.Errorf("silent %t: the watch ended: %v", silent, below.lasting.Err())
			}
		})
	}
}
