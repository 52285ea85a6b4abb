package framework

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

// fakeRegistry answers what a load asks, in memory, and makes mistakes on
// request.
type fakeRegistry struct {
	// closeAfter ends each watch after that many events; 0 never does.
	closeAfter int
	// tell returns what a watch tells instead of an event.
	tell func(fakeEvent) []fakeEvent
	// stalled keeps writes from an answer until it is closed.
	stalled chan struct{}
	// oldest is the oldest version that a watch may begin at.
	oldest uint64

	mu       sync.Mutex
	changed  *sync.Cond
	stopped  bool
	clusters map[string]*v1alpha1.Cluster
	events   []fakeEvent
	version  uint64
	watches  []string // the versions that they began at
}

type fakeEvent struct {
	Type    watch.EventType `json:"type"`
	Object  any             `json:"object"`
	name    string
	version uint64
}

func startFakeRegistry(t *testing.T, f *fakeRegistry) (url string) {
	t.Helper()
	f.clusters, f.changed, f.version = map[string]*v1alpha1.Cluster{}, sync.NewCond(&f.mu), 100
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		f.mu.Lock()
		f.stopped = true
		f.mu.Unlock()
		f.changed.Broadcast()
		server.Close()
	})
	return server.URL
}

func (f *fakeRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		f.watch(w, r)
		return
	}
	if f.stalled != nil && r.Method != http.MethodGet {
		<-f.stalled
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, path, _ := strings.Cut(r.URL.Path, "/clusters")
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	code, body := f.answer(r, name)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// answer is called with the lock held.
func (f *fakeRegistry) answer(r *http.Request, name string) (int, any) {
	if r.Method == http.MethodGet && name == "" {
		return http.StatusOK, f.list(r)
	}
	old, found := f.clusters[name]
	if !found && r.Method != http.MethodPost {
		return http.StatusNotFound, metav1.Status{}
	}
	switch r.Method {
	case http.MethodPost:
		c := &v1alpha1.Cluster{}
		_ = json.NewDecoder(r.Body).Decode(c)
		c.UID, c.Generation = types.UID(c.Name), 1
		return http.StatusCreated, f.store(watch.Added, c)
	case http.MethodPut:
		c := &v1alpha1.Cluster{}
		_ = json.NewDecoder(r.Body).Decode(c)
		if c.ResourceVersion != old.ResourceVersion {
			return http.StatusConflict, metav1.Status{}
		}
		return http.StatusOK, f.store(watch.Modified, c)
	case http.MethodPatch:
		c := old.DeepCopy()
		if strings.HasSuffix(r.URL.Path, "/status") {
			_ = json.NewDecoder(r.Body).Decode(c)
		} else {
			var patch []struct {
				Value v1alpha1.ServerAddressByClientCIDR
			}
			_ = json.NewDecoder(r.Body).Decode(&patch)
			endpoints := &c.Spec.KubernetesAPIEndpoints.ServerEndpoints
			*endpoints = append(*endpoints, patch[0].Value)
			c.Generation++
		}
		return http.StatusOK, f.store(watch.Modified, c)
	case http.MethodDelete:
		f.store(watch.Deleted, old.DeepCopy())
		return http.StatusOK, metav1.Status{Status: metav1.StatusSuccess}
	}
	return http.StatusOK, old
}

func (f *fakeRegistry) list(r *http.Request) *v1alpha1.ClusterList {
	out := &v1alpha1.ClusterList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(f.version, 10)}}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	wanted, selects := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	for name, c := range f.clusters {
		if (!selects || name == wanted) && (limit == 0 || len(out.Items) < limit) {
			out.Items = append(out.Items, *c)
		}
	}
	return out
}

// store makes a new version; it is called with the lock held.
func (f *fakeRegistry) store(kind watch.EventType, c *v1alpha1.Cluster) *v1alpha1.Cluster {
	f.version++
	c.ResourceVersion = strconv.FormatUint(f.version, 10)
	f.clusters[c.Name] = c
	if kind == watch.Deleted {
		delete(f.clusters, c.Name)
	}
	f.events = append(f.events, fakeEvent{kind, c, c.Name, f.version})
	f.changed.Broadcast()
	return c
}

// rewrite stores all clusters again, as they are.
func (f *fakeRegistry) rewrite() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.clusters {
		f.store(watch.Modified, c.DeepCopy())
	}
}

func (f *fakeRegistry) watch(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := r.URL.Query().Get("resourceVersion")
	f.watches = append(f.watches, text)
	from, err := strconv.ParseUint(text, 10, 64)
	if err != nil || from < f.oldest {
		w.WriteHeader(http.StatusGone)
		fmt.Fprint(w, "too old resource version")
		return
	}
	next, _ := slices.BinarySearchFunc(f.events, from+1, func(e fakeEvent, v uint64) int { return int(e.version) - int(v) })
	for sent := 0; ; next++ {
		for next == len(f.events) && !f.stopped {
			f.changed.Wait()
		}
		if f.stopped {
			return
		}
		tell := []fakeEvent{f.events[next]}
		if f.tell != nil {
			tell = f.tell(f.events[next])
		}
		for _, event := range tell {
			if err := json.NewEncoder(w).Encode(event); err != nil {
				return
			}
			sent++
		}
		w.(http.Flusher).Flush()
		if f.closeAfter > 0 && sent >= f.closeAfter {
			fmt.Fprint(w, `{"type":"MODIFIED","obj`) // it may break off anywhere
			return
		}
	}
}
