package history

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

var resource = schema.GroupResource{Group: "clusterregistry.k8s.io", Resource: "clusters"}

// fake is a registry in memory. What breaks is done to every tenth request of a kind.
type fake struct {
	// lose acknowledges creations that it does not keep, stale reads what was before the
	// last change, silent tells watches of no changes, and unsure applies changes that it answers
	// with an error.
	lose, stale, silent, unsure bool

	mu       sync.Mutex
	version  uint64
	clusters map[string]*v1beta1.Cluster
	before   map[string]*v1beta1.Cluster
	told     []fakeEvent
	asked    map[string]int
}

type fakeEvent struct {
	Type   watch.EventType
	Object *v1beta1.Cluster
}

func newFake() *fake {
	return &fake{version: 100, clusters: map[string]*v1beta1.Cluster{}, before: map[string]*v1beta1.Cluster{}, asked: map[string]int{}}
}

// tenth reports whether something is to be broken now.
func (f *fake) tenth(broken bool, what string) bool {
	f.asked[what]++
	return broken && f.asked[what]%10 == 0
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		f.watch(w, r)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/clusterregistry.k8s.io/v1beta1/clusters"), "/")
	code, out := http.StatusOK, any(nil)
	switch now := f.clusters[name]; {
	case r.Method == http.MethodGet && name == "":
		out = f.list()
	case r.Method == http.MethodPost:
		code, out = f.create(r)
	case now == nil:
		code, out = refusal(apierrors.NewNotFound(resource, name))
	case r.Method == http.MethodGet:
		out = now
		if before := f.before[name]; before != nil && f.tenth(f.stale, "get") {
			out = before
		}
	case r.Method == http.MethodDelete:
		f.store(watch.Deleted, now.DeepCopy())
		out = &metav1.Status{Details: &metav1.StatusDetails{UID: now.UID}}
	default:
		code, out = f.change(r, now.DeepCopy())
	}
	if r.Method != http.MethodGet && code < http.StatusBadRequest && f.tenth(f.unsure, "write") {
		code, out = http.StatusServiceUnavailable, map[string]string{"message": "no one knows"}
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(out)
}

func refusal(err *apierrors.StatusError) (int, any) { return int(err.ErrStatus.Code), err.ErrStatus }

func (f *fake) list() *v1beta1.ClusterList {
	list := &v1beta1.ClusterList{}
	list.ResourceVersion = strconv.FormatUint(f.version, 10)
	for _, c := range f.clusters {
		list.Items = append(list.Items, *c)
	}
	return list
}

func (f *fake) create(r *http.Request) (int, any) {
	c := &v1beta1.Cluster{}
	if err := json.NewDecoder(r.Body).Decode(c); err != nil {
		return http.StatusBadRequest, err.Error()
	}
	if f.clusters[c.Name] != nil {
		return refusal(apierrors.NewAlreadyExists(resource, c.Name))
	}
	for _, other := range f.clusters {
		if c.Spec.ID != "" && other.Spec.ID == c.Spec.ID {
			return refusal(apierrors.NewConflict(resource, c.Name, nil))
		}
	}
	c.UID = types.UID("uid-" + strconv.FormatUint(f.version, 10))
	f.store(watch.Added, c)
	if f.tenth(f.lose, "create") {
		delete(f.clusters, c.Name)
	}
	return http.StatusCreated, c
}

func (f *fake) change(r *http.Request, now *v1beta1.Cluster) (int, any) {
	if r.Method == http.MethodPut {
		c := &v1beta1.Cluster{}
		if err := json.NewDecoder(r.Body).Decode(c); err != nil {
			return http.StatusBadRequest, err.Error()
		}
		if c.ResourceVersion != now.ResourceVersion {
			return refusal(apierrors.NewConflict(resource, c.Name, nil))
		}
		now.Spec = c.Spec
	} else {
		var patch []struct{ Value v1beta1.Endpoint }
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			return http.StatusBadRequest, err.Error()
		}
		now.Spec.Endpoints = append(now.Spec.Endpoints, patch[0].Value)
	}
	f.store(watch.Modified, now)
	return http.StatusOK, now
}

// store gives a cluster the next version and tells watches.
func (f *fake) store(kind watch.EventType, c *v1beta1.Cluster) {
	f.version++
	c.ResourceVersion = strconv.FormatUint(f.version, 10)
	f.before[c.Name] = f.clusters[c.Name]
	if f.clusters[c.Name] = c; kind == watch.Deleted {
		delete(f.clusters, c.Name)
	}
	if kind == watch.Added || !f.tenth(f.silent, "event") {
		f.told = append(f.told, fakeEvent{kind, c})
	}
}

// watch reports changes until the client has had enough.
func (f *fake) watch(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.ParseUint(r.URL.Query().Get("resourceVersion"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for next := 0; r.Context().Err() == nil; {
		f.mu.Lock()
		news := slices.Clone(f.told[next:])
		f.mu.Unlock()
		next += len(news)
		for _, e := range news {
			if version, err := strconv.ParseUint(e.Object.ResourceVersion, 10, 64); err == nil && version > from {
				_ = json.NewEncoder(w).Encode(e)
			}
		}
		w.(http.Flusher).Flush()
		time.Sleep(time.Millisecond) // it polls, as nothing tells it of news
	}
}
