package server

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// The people of a random round, with their groups, and what may be given.
var (
	users = []string{"ann,red-team", "bob,red-team,blue-team", "eve"}
	verbs = []string{"get", "create", "update", "patch", "delete", "deletecollection"}
)

// random is a round: a model of what is stored, and what a registry makes of the same.
type random struct {
	*office
	*rand.Rand
	sets     []string
	clusters map[string]string // the set of each
	trace    []string
}

// TestVisibleRandomly compares a registry of two servers with a model, in rounds of random
// grants and clusters: every way of reading and of writing, with moves, grants and
// revocations in between, while an informer of each user changes between the servers.
func TestVisibleRandomly(t *testing.T) {
	rounds := 150
	if os.Getenv("E2E_FULL") == "1" {
		rounds = 2000
	}
	o := newOffice(t, quick)
	for round := range rounds {
		seed := uint64(round)
		r := &random{office: o, Rand: rand.New(rand.NewPCG(seed, 1)), clusters: map[string]string{}}
		o.grants.mu.Lock()
		maps.DeleteFunc(o.grants.given, func(g grant, _ bool) bool { return g.who != "root" })
		o.grants.mu.Unlock()
		o.stored.clear()
		o.stored.lag = uint64(r.IntN(6))
		if !r.play() || t.Failed() {
			t.Fatalf("round %d failed: %s", round, strings.Join(r.trace, "\n"))
		}
	}
}

func (r *random) pick(of []string) string { return of[r.IntN(len(of))] }

func (r *random) say(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf(format, args...))
}

// play is one round.
func (r *random) play() bool {
	for range 1 + r.IntN(3) {
		r.addSet()
	}
	for range 4 + r.IntN(8) {
		r.grant()
	}
	for i := range r.IntN(6) {
		name, set := fmt.Sprintf("c%d", i), r.anySet()
		r.put(name, set)
		r.clusters[name] = set
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var informers []*informer
	for i, as := range users {
		f := &informer{office: r.office, as: as, Rand: rand.New(rand.NewPCG(r.Uint64(), uint64(i))), known: map[string]string{}}
		informers = append(informers, f)
		all.Go(func() { f.run(ctx) })
	}
	for range 12 {
		if !r.step() {
			return false
		}
	}
	for _, f := range informers {
		want := r.seen(f.as)
		deadline := time.Now().Add(time.Minute)
		for !maps.Equal(f.state(), want) {
			if time.Now().After(deadline) {
				r.say("the informer of %s knows %v, want %v: %s", f.as, f.state(), want, strings.Join(f.trace, "; "))
				return false
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	return true
}

func (r *random) addSet() {
	name := fmt.Sprintf("s%d", len(r.sets))
	r.say("set %s", name)
	r.makeSets(name)
	r.sets = append(r.sets, name)
}

// anySet returns a set or none.
func (r *random) anySet() string { return r.pick(append([]string{""}, r.sets...)) }

// grant gives or takes something to or from someone; of sets that may not exist yet, too.
func (r *random) grant() {
	who := r.pick([]string{"ann", "bob", "eve", "red-team", "blue-team"})
	set := r.pick([]string{"s0", "s1", "s2", "s3", "s0", "s1", "s2", ""})
	given := r.IntN(3) > 0
	some := []string{"get"}
	if r.IntN(2) == 0 {
		some = append(some, r.pick(verbs), r.pick(verbs))
	}
	r.say("%s %q of %s: %t", who, some, set, given)
	r.grants.set(given, who, set, some...)
}

// may is the model's decision.
func (r *random) may(as, verb, set string) bool {
	return r.grants.may(strings.Split(as, ","), verb, set)
}

// seen is what someone sees, with the sets.
func (r *random) seen(as string) map[string]string {
	out := maps.Clone(r.clusters)
	maps.DeleteFunc(out, func(_, set string) bool { return !r.may(as, "get", set) })
	return out
}

// step does one thing, and reports whether it went as the model says.
func (r *random) step() bool {
	as, server, name := r.pick(users), r.IntN(2), fmt.Sprintf("c%d", r.IntN(7))
	switch r.IntN(10) {
	case 0:
		r.grant()
		return true
	case 1:
		if len(r.sets) < 4 {
			r.addSet()
		}
		return true
	case 2, 3:
		if _, exists := r.clusters[name]; exists {
			set := r.anySet()
			r.say("%s moves to %q", name, set)
			r.move(name, set)
			r.clusters[name] = set
		}
		return true
	case 4, 5:
		return r.list(as)
	case 6:
		return r.deleteAll(as, server)
	default:
		return r.write(as, server, name)
	}
}

// list reads all pages of a list, from both servers.
func (r *random) list(as string) bool {
	path, want, got := r.pick([]string{"v1beta1", "v1alpha1"})+"/clusters?", r.seen(as), map[string]string{}
	if r.IntN(3) == 0 {
		set := r.pick(r.sets)
		path += "labelSelector=clusterregistry.k8s.io/clusterset%3D" + set + "&"
		maps.DeleteFunc(want, func(_, of string) bool { return of != set })
	}
	if r.IntN(2) == 0 {
		path += fmt.Sprintf("limit=%d&", 1+r.IntN(3))
	}
	kind, next := r.pick([]string{plain, "table"}), ""
	for {
		page := r.read(r.IntN(2), as, path+"continue="+next, kind)
		for _, item := range page.names() {
			got[item] = r.clusters[item]
		}
		if next = page.Metadata.Continue; next == "" {
			break
		}
		if len(got) == len(want) && !r.may(as, "get", "") {
			r.say("%s is told that there is more than %v", as, got)
			return false
		}
	}
	r.say("%s lists %s: %v", as, path, got)
	return maps.Equal(got, want)
}

// deleteAll deletes a collection.
func (r *random) deleteAll(as string, server int) bool {
	set, rest, may := r.pick(r.sets), maps.Clone(r.clusters), true
	for name, of := range r.seen(as) {
		if of == set {
			delete(rest, name)
			may = may && r.may(as, "deletecollection", set)
		}
	}
	code, body := r.do(server, as, "DELETE", "v1beta1/clusters?fieldSelector=spec.clusterSet%3D"+set, plain, "")
	r.say("%s deletes all of %s: %d", as, set, code)
	if may {
		r.clusters = rest
	}
	if left := r.read(server, "root", "v1beta1/clusters", plain).names(); !slices.Equal(left, slices.Sorted(maps.Keys(r.clusters))) || (code == http.StatusOK) != may || !may && code != http.StatusForbidden {
		r.say("answered %s, and left %q", body, left)
		return false
	}
	return true
}

// write reads or writes one cluster.
func (r *random) write(as string, server int, name string) bool {
	set, exists := r.clusters[name]
	sees := exists && r.may(as, "get", set)
	if !sees {
		set = r.anySet()
	}
	creation := func() int {
		switch {
		case !r.may(as, "create", set):
			return http.StatusForbidden
		case exists:
			return http.StatusConflict
		}
		return http.StatusCreated
	}
	// changing is what becomes of a change of what is stored, or of what is absent for as.
	changing := func(verb string, absent int) int {
		switch {
		case !sees:
			return absent
		case !r.may(as, verb, set):
			return http.StatusForbidden
		}
		return http.StatusOK
	}
	body, at := strings.Replace(inSet(name, set), `"name"`, fmt.Sprintf(`"labels":{"n":"%d"},"name"`, r.IntN(1000)), 1), "v1beta1/clusters/"+name
	const label = `{"metadata":{"labels":{"m":"n"}}}`
	ways := []struct {
		method, path, kind, body string
		want                     int
	}{
		{"GET", at, plain, "", changing("get", http.StatusNotFound)},
		{"GET", "v1alpha1/clusters/" + name + "/status", "table", "", changing("get", http.StatusNotFound)},
		{"POST", "v1beta1/clusters", plain, body, creation()},
		{"PUT", at, plain, body, changing("update", creation())},
		{"PATCH", at + "?fieldManager=x&force=true", applyPatch, body, changing("patch", creation())},
		{"PATCH", at, mergePatch, label, changing("patch", http.StatusNotFound)},
		{"PATCH", "v1alpha1/clusters/" + name, mergePatch, label, changing("patch", http.StatusNotFound)},
		{"PATCH", at + "/status", mergePatch, `{"status":{"version":{"kubernetes":"v1"}}}`, changing("patch", http.StatusNotFound)},
		{"PUT", at + "/status", plain, body, changing("update", http.StatusNotFound)},
		{"DELETE", at, plain, "", changing("delete", http.StatusNotFound)},
	}
	way := ways[r.IntN(len(ways))]
	code, answer := r.do(server, as, way.method, way.path, way.kind, way.body)
	r.say("%s %s %s (in %q, exists: %t, sees: %t): %d, want %d", as, way.method, way.path, set, exists, sees, code, way.want)
	switch {
	case code == http.StatusCreated:
		r.clusters[name] = set
	case code == http.StatusOK && way.method == "DELETE":
		delete(r.clusters, name)
	}
	if code != way.want {
		r.say("answered %s", answer)
	}
	return code == way.want
}

// informer follows the clusters as client-go does, from server to server.
type informer struct {
	*office
	*rand.Rand
	as    string
	mu    sync.Mutex
	known map[string]string
	trace []string
}

func (f *informer) state() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.known)
}

func (f *informer) say(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trace = append(f.trace, fmt.Sprintf(format, args...))
}

func (f *informer) run(ctx context.Context) {
	for ctx.Err() == nil {
		version, err := f.list(ctx)
		for err == nil && version != "" && ctx.Err() == nil {
			version = f.follow(ctx, version)
		}
	}
}

// list reads all clusters.
func (f *informer) list(ctx context.Context) (version string, err error) {
	server, query := f.IntN(2), []string{"", "resourceVersion=0"}[f.IntN(2)]
	response, err := f.open(ctx, server, f.as, "GET", "v1beta1/clusters?"+query, plain, "")
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	read, err := decode(response)
	if err != nil {
		return "", err
	}
	f.say("list %q at %d: %q at %s", query, server, read.names(), read.Metadata.ResourceVersion)
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.known)
	for _, item := range read.Items {
		f.known[item.Name] = item.Spec.ClusterSet
	}
	return read.Metadata.ResourceVersion, nil
}

// follow watches for a while, and returns where to go on, or nothing.
func (f *informer) follow(ctx context.Context, version string) string {
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	lasts, server := time.Duration(1+f.IntN(30))*time.Millisecond, f.IntN(2)
	events, err := f.watch(short, server, f.as, "resourceVersion="+version)
	if err != nil {
		return version
	}
	f.say("watch %s at %d", version, server)
	defer time.AfterFunc(lasts, cancel).Stop()
	for event := range events {
		f.say("%v at %s", event, event.Object.ResourceVersion)
		f.mu.Lock()
		switch event.Type {
		case watch.Error:
			version = ""
		case watch.Deleted:
			delete(f.known, event.Object.Name)
		default:
			f.known[event.Object.Name] = event.Object.Spec.ClusterSet
		}
		f.mu.Unlock()
		if version == "" {
			return ""
		}
		version = event.Object.ResourceVersion
	}
	return version
}
