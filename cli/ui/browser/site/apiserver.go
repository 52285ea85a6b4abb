package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// object is one in the form of the API.
type object map[string]any

func (o object) metadata() map[string]any {
	m, is := o["metadata"].(map[string]any)
	if !is {
		m = map[string]any{}
		o["metadata"] = m
	}
	return m
}

func (o object) name() string {
	name, _ := o.metadata()["name"].(string)
	return name
}

// collections are what is served, by kind.
var collections = map[string]string{"Cluster": "clusters", "ClusterRegistry": "clusterregistries", "ClusterRegistryBackup": "clusterregistrybackups"}

// event is a change of an object.
type event struct {
	Type    string `json:"type"`
	Object  object `json:"object"`
	version int
}

// collection is all that there is of a kind.
type collection struct {
	kind    object // the apiVersion and kind of its objects
	objects map[string]object
	// events are all that ever were, in their order.
	events []event
}

// apiServer lists, gets and watches. It admits everything: what is shown must be safe although
// servers check less than they do.
type apiServer struct {
	mutex   sync.Mutex
	version int
	of      map[string]*collection
	away    bool
	// changed is closed at the next change.
	changed chan struct{}
}

func newAPIServer() *apiServer {
	s := &apiServer{of: map[string]*collection{}, changed: make(chan struct{}), version: 1}
	for kind, name := range collections {
		group := "operator.clusterregistry.io/v1alpha1"
		if kind == "Cluster" {
			group = "clusterregistry.k8s.io/v1beta1"
		}
		s.of[name] = &collection{kind: object{"apiVersion": group, "kind": kind}, objects: map[string]object{}}
	}
	return s
}

// put creates or replaces objects.
func (s *apiServer) put(all []object) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, o := range all {
		kind, _ := o["kind"].(string)
		c := s.of[collections[kind]]
		if c == nil {
			continue
		}
		what := "MODIFIED"
		if c.objects[o.name()] == nil {
			what = "ADDED"
		}
		s.happen(c, what, o)
		c.objects[o.name()] = o
	}
	s.tell()
}

// remove deletes clusters.
func (s *apiServer) remove(names []string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	c := s.of["clusters"]
	for _, name := range names {
		if o := c.objects[name]; o != nil {
			delete(c.objects, name)
			// The old one may be on its way to a client.
			last := maps.Clone(o)
			last["metadata"] = maps.Clone(o.metadata())
			s.happen(c, "DELETED", last)
		}
	}
	s.tell()
}

// leave has the server refuse everything, or no longer.
func (s *apiServer) leave(away bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.away = away
	s.tell()
}

func (s *apiServer) happen(c *collection, what string, o object) {
	s.version++
	o.metadata()["resourceVersion"] = strconv.Itoa(s.version)
	c.events = append(c.events, event{what, o, s.version})
}

func (s *apiServer) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// ServeHTTP answers a list, a get or a watch.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // apis, group, version, resource, name
	s.mutex.Lock()
	if s.away || len(parts) < 4 || s.of[parts[3]] == nil || r.Method != http.MethodGet {
		s.mutex.Unlock()
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", "the server is currently unable to handle the request")
		return
	}
	c, query := s.of[parts[3]], r.URL.Query()
	if query.Get("watch") != "" {
		s.watch(w, r, c) // which unlocks
		return
	}
	defer s.mutex.Unlock()
	if len(parts) == 5 {
		if o := c.objects[parts[4]]; o != nil {
			_ = json.NewEncoder(w).Encode(o)
		} else {
			refuse(w, http.StatusNotFound, "NotFound", parts[3]+" \""+parts[4]+"\" not found")
		}
		return
	}
	_ = json.NewEncoder(w).Encode(object{
		"apiVersion": c.kind["apiVersion"], "kind": c.kind["kind"].(string) + "List",
		"metadata": object{"resourceVersion": strconv.Itoa(s.version)}, "items": slices.Collect(maps.Values(c.objects)),
	})
}

// watch sends the events of a collection, after all its objects where that is asked for, until
// the client or the server goes away.
func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, c *collection) {
	query, encoder, control := r.URL.Query(), json.NewEncoder(w), http.NewResponseController(w)
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	var first []event
	if query.Get("sendInitialEvents") == "true" {
		for _, o := range c.objects {
			first = append(first, event{Type: "ADDED", Object: o})
		}
		end := maps.Clone(c.kind)
		end["metadata"] = map[string]any{"resourceVersion": strconv.Itoa(s.version), "annotations": object{"k8s.io/initial-events-end": "true"}}
		first, from = append(first, event{Type: "BOOKMARK", Object: end}), s.version
	}
	for next := first; ; {
		for _, e := range c.events {
			if e.version > from {
				next, from = append(next, e), e.version
			}
		}
		away, changed := s.away, s.changed
		s.mutex.Unlock()
		if away {
			return
		}
		for _, e := range next {
			if encoder.Encode(e) != nil {
				return
			}
		}
		if control.Flush() != nil {
			return
		}
		next = nil
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
		s.mutex.Lock()
	}
}

func refuse(w http.ResponseWriter, code int, reason, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": code, "message": message})
}
