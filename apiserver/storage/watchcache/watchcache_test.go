package watchcache

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/install"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

// leader is a storage over an etcd with one object, which may have no leader.
type leader struct {
	storage.Interface
	mu      sync.Mutex
	gone    bool
	back    bool
	lists   int
	watches int
	asked   int
	open    *watch.FakeWatcher
}

func noLeader() error { return apierrors.NewInternalError(rpctypes.Error(rpctypes.ErrGRPCNoLeader)) }

func object(version string) *clusterregistry.Cluster {
	return &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: version}}
}

func (l *leader) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (l *leader) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

func (l *leader) RequestWatchProgress(context.Context) error { return nil }

func (l *leader) CompactRevision() int64 { return 0 }

func (l *leader) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	switch {
	case l.gone:
		l.mu.Unlock()
		<-ctx.Done()
		l.mu.Lock()
		return 0, ctx.Err()
	case l.back:
		return 0, nil
	}
	return 1, nil
}

func (l *leader) Get(context.Context, string, storage.GetOptions, runtime.Object) error {
	return errors.New("etcd was asked")
}

func (l *leader) GetList(_ context.Context, _ string, _ storage.ListOptions, into runtime.Object) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists++
	if l.gone {
		return noLeader()
	}
	list := into.(*clusterregistry.ClusterList)
	list.ResourceVersion, list.Items = "1", []clusterregistry.Cluster{*object("1")}
	return nil
}

// Watch is ended at once while there is no leader.
func (l *leader) Watch(_ context.Context, _ string, options storage.ListOptions) (watch.Interface, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watches++
	if options.ResourceVersion != "1" {
		return nil, errors.New("not from where the last one ended: " + options.ResourceVersion)
	}
	l.open = watch.NewFakeWithChanSize(1, false)
	if l.gone && l.watches < 1000 { // who asks without a pause would never end
		l.end()
	}
	return l.open, nil
}

// end ends the watch that is open.
func (l *leader) end() {
	status := noLeader().(apierrors.APIStatus).Status()
	l.open.Error(&status)
	l.open.Stop()
}

// TestNoLeader has etcd without a leader for five minutes: the cache answers all the time, etcd is
// not asked in a loop, and a watch that was open before tells the first change afterwards.
func TestNoLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		install.Install(scheme)
		etcd := &leader{}
		s, destroy, err := over(etcd, cacher.Config{
			Versioner: storage.APIObjectVersioner{}, GroupResource: clusterregistry.Resource("clusters"), EventsHistoryWindow: 2 * time.Minute,
			ResourcePrefix: "/clusters/", KeyFunc: func(o runtime.Object) (string, error) { return "/clusters/" + o.(*clusterregistry.Cluster).Name, nil },
			NewFunc: func() runtime.Object { return &clusterregistry.Cluster{} }, NewListFunc: func() runtime.Object { return &clusterregistry.ClusterList{} },
			GetAttrsFunc: func(runtime.Object) (labels.Set, fields.Set, error) { return nil, nil, nil },
			Codec:        serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer destroy()
		synctest.Wait()
		open, err := s.Watch(t.Context(), "/clusters/", storage.ListOptions{ResourceVersion: "1", Predicate: storage.Everything, Recursive: true})
		if err != nil {
			t.Fatal(err)
		}
		defer open.Stop()

		etcd.mu.Lock()
		etcd.gone = true
		watches := etcd.watches
		etcd.end()
		etcd.mu.Unlock()
		for range 30 {
			time.Sleep(10 * time.Second)
			if err := s.Get(t.Context(), "/clusters/a", storage.GetOptions{ResourceVersion: "0"}, &clusterregistry.Cluster{}); err != nil {
				t.Fatalf("a read that the cache may answer: %v", err)
			}
		}
		if etcd.lists != 1 || etcd.asked < 50 || etcd.asked > 150 || etcd.watches != watches {
			t.Errorf("etcd was listed %d times, asked for its revision %d times and watched %d times", etcd.lists, etcd.asked, etcd.watches-watches)
		}

		etcd.mu.Lock()
		etcd.gone = false
		etcd.mu.Unlock()
		time.Sleep(asked + 2*pause)
		etcd.open.Modify(object("2"))
		synctest.Wait()
		select {
		case event := <-open.ResultChan():
			if event.Type != watch.Modified {
				t.Errorf("the watch told %s %v", event.Type, event.Object)
			}
		default:
			t.Error("the watch that was open told nothing of the change")
		}
	})
}

// TestOtherErrors has a watch end with other errors, of which the cache must know.
func TestOtherErrors(t *testing.T) {
	for name, err := range map[string]error{
		"compacted":          apierrors.NewResourceExpired("too old"),
		"can not be decoded": apierrors.NewInternalError(errors.New("unable to transform key")),
	} {
		t.Run(name, func(t *testing.T) {
			etcd := &leader{}
			w, werr := lasting{etcd}.Watch(t.Context(), "/", storage.ListOptions{ResourceVersion: "1"})
			if werr != nil {
				t.Fatal(werr)
			}
			defer w.Stop()
			status := err.(apierrors.APIStatus).Status()
			etcd.open.Error(&status)
			if event := <-w.ResultChan(); event.Type != watch.Error {
				t.Errorf("it told %s", event.Type)
			}
		})
	}
}

// TestSetBack has etcd be at an older version than a watch: before that begins, while it lasts, and
// while it is not known where etcd is.
func TestSetBack(t *testing.T) {
	options := storage.ListOptions{ResourceVersion: "1"}
	etcd := &leader{back: true}
	if _, err := (lasting{etcd}).Watch(t.Context(), "/", options); !apierrors.IsResourceExpired(err) || etcd.watches != 0 {
		t.Errorf("etcd was watched %d times: %v", etcd.watches, err)
	}
	synctest.Test(t, func(t *testing.T) {
		etcd := &leader{}
		w, err := lasting{etcd}.Watch(t.Context(), "/", options)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		time.Sleep(10 * look)
		select {
		case event := <-w.ResultChan():
			t.Fatalf("etcd is where it was, and the watch tells %v", event)
		default:
		}
		etcd.mu.Lock()
		etcd.back = true
		etcd.mu.Unlock()
		if event := <-w.ResultChan(); event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
			t.Errorf("it tells %v", event)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		etcd := &leader{gone: true}
		began := time.Now()
		w, err := lasting{etcd}.Watch(t.Context(), "/", options)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if event, told := <-w.ResultChan(); told || etcd.watches != 0 || time.Since(began) < pause {
			t.Errorf("it told %v after %s, of an etcd that was watched %d times", event, time.Since(began), etcd.watches)
		}
	})
}

// TestStop stops a watch while no one reads from it.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &leader{}
		w, err := lasting{etcd}.Watch(t.Context(), "/", storage.ListOptions{ResourceVersion: "1"})
		if err != nil {
			t.Fatal(err)
		}
		etcd.open.Modify(object("2"))
		synctest.Wait()
		w.Stop()
		w.Stop()
		synctest.Wait() // a goroutine that is left fails the test
	})
}
