package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// away is a storage whose etcd does not answer: it refuses, or keeps silent.
type away struct {
	faulty
	until  time.Time
	silent bool
	writes int
	// listing is how long a list takes.
	listing time.Duration
}

func (a *away) ask(ctx context.Context) error {
	if time.Now().After(a.until) {
		return nil
	}
	if a.silent {
		<-ctx.Done()
		return ctx.Err()
	}
	return refused
}

func (a *away) Get(ctx context.Context, key string, options storage.GetOptions, into runtime.Object) error {
	if options.ResourceVersion == "0" {
		return nil
	}
	if err := a.ask(ctx); err != nil {
		return err
	}
	return a.faulty.Get(ctx, key, options, into)
}

func (a *away) GetList(ctx context.Context, _ string, options storage.ListOptions, _ runtime.Object) error {
	if options.ResourceVersion == "0" {
		return nil
	}
	if err := a.ask(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(a.listing):
		return nil
	}
}

func (a *away) Create(ctx context.Context, key string, object, out runtime.Object, ttl uint64) error {
	a.writes++
	return a.faulty.Create(ctx, key, object, out, ttl)
}

// TestOutage has etcd away for five minutes: who comes first waits for as long as an election
// may take, who comes later is told at once, no write begins, and what a cache has is served.
// When etcd is back, the next request is answered.
func TestOutage(t *testing.T) {
	for _, silent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			below := &away{until: began.Add(5 * time.Minute), silent: silent}
			s := &store{Interface: below, codec: codec, newFunc: func() runtime.Object { return &clusterregistry.Cluster{} }, outage: &outage{}}
			get := func(options storage.GetOptions) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				return s.Get(ctx, "/east", options, &clusterregistry.Cluster{})
			}
			expect := func(what string, err error, most time.Duration, asked time.Time) {
				t.Helper()
				if delay, suggested := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !suggested || delay != pause {
					t.Errorf("silent %t: %s: %v, again after %d s", silent, what, err, delay)
				}
				if took := time.Since(asked); took > most {
					t.Errorf("silent %t: %s takes %s", silent, what, took)
				}
			}
			list := make(chan error)
			go func() { list <- s.GetList(t.Context(), "/", storage.ListOptions{}, nil) }()
			expect("the first read", get(storage.GetOptions{}), patience+trial, began)
			expect("a list that began before", <-list, patience+2*trial, began)
			for range 3 {
				if err := get(storage.GetOptions{ResourceVersion: "0"}); err != nil {
					t.Errorf("a read from the cache: %v", err)
				}
				asked := time.Now()
				expect("a later read", get(storage.GetOptions{}), trial, asked)
				asked = time.Now()
				expect("a list", s.GetList(t.Context(), "/", storage.ListOptions{}, nil), trial, asked)
				if err := s.GetList(t.Context(), "/", storage.ListOptions{ResourceVersion: "0"}, nil); err != nil {
					t.Errorf("a list from the cache: %v", err)
				}
				asked = time.Now()
				expect("a creation", s.Create(t.Context(), "/east", named("mine", "a"), &clusterregistry.Cluster{}, 0), trial, asked)
				asked = time.Now()
				expect("a deletion", s.Delete(t.Context(), "/east", &clusterregistry.Cluster{}, nil, nil, nil, storage.DeleteOptions{}), trial, asked)
				asked = time.Now()
				expect("an update", s.GuaranteedUpdate(t.Context(), "/east", &clusterregistry.Cluster{}, true, nil, nil, nil), trial, asked)
			}
			if below.writes > 0 {
				t.Errorf("silent %t: %d writes began", silent, below.writes)
			}
			time.Sleep(time.Until(below.until) + time.Second)
			if err := s.Create(t.Context(), "/east", named("mine", "a"), &clusterregistry.Cluster{}, 0); err != nil {
				t.Errorf("silent %t: etcd is back: %v", silent, err)
			}
			if err := get(storage.GetOptions{}); err != nil || s.outage.lasts() {
				t.Errorf("silent %t: etcd is back, and the outage lasts: %t, %v", silent, s.outage.lasts(), err)
			}
		})
	}
}

// TestOutageForgotten has one request give up on etcd, and another one much later: that etcd did
// not answer once is no reason to refuse it at once.
func TestOutageForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outage{}
		o.silent(time.Now())
		time.Sleep(memory + time.Second)
		o.silent(time.Now())
		if o.lasts() {
			t.Error("an outage lasts that has just begun")
		}
		time.Sleep(patience)
		if !o.lasts() {
			t.Error("an outage is forgotten")
		}
	})
}

// TestSlowList has a list take longer than etcd may be silent: it is served, in an outage that is
// over by then, too, and no one else is refused for it.
func TestSlowList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Interface: &away{listing: patience + 11*time.Second}, codec: codec, newFunc: func() runtime.Object { return &clusterregistry.Cluster{} }, outage: &outage{}}
		for range 2 {
			if err := s.GetList(t.Context(), "/", storage.ListOptions{}, nil); err != nil || s.outage.lasts() {
				t.Errorf("a slow list: %v, and the outage lasts: %t", err, s.outage.lasts())
			}
			s.outage.silent(time.Now())
			time.Sleep(patience)
			if !s.outage.lasts() {
				t.Error("there is no outage")
			}
		}
	})
}

// TestOthersAnswered has one attempt hang, while etcd answers others.
func TestOthersAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, began := &outage{}, time.Now()
		time.Sleep(patience)
		o.answered()
		time.Sleep(time.Second)
		if o.silent(began); o.lasts() {
			t.Error("etcd has answered since, and counts as silent")
		}
	})
}
