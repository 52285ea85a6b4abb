package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

func heartbeatOf(name, more string) string {
	return `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"ClusterHeartbeat","metadata":{"name":"` + name + `"}` + more + `}`
}

// TestHeartbeats writes signs of life as reporters do: the server sets what they say, and the
// cluster stays as it is.
func TestHeartbeats(t *testing.T) {
	stored := newHistory()
	d := newDeskOn(t, cluster.GuardedFieldsOff, stored)
	of := stored.now("/clusters/east").(*clusterregistry.Cluster)
	beat := func() *clusterregistry.ClusterHeartbeat {
		found, _ := stored.now("/clusterheartbeats/east.agent").(*clusterregistry.ClusterHeartbeat)
		return found
	}
	const nonsense = `,"clusterName":"west","clusterUID":"none","reporter":"other","renewTime":"2000-01-01T00:00:00Z"`
	for _, step := range []struct{ reason, method, path, kind, body string }{
		{"a creation", http.MethodPost, "v1beta1/clusterheartbeats", plain, heartbeatOf("east.agent", "")},
		{"an apply", http.MethodPatch, "v1beta1/clusterheartbeats/east.agent?fieldManager=agent", applyPatch, heartbeatOf("east.agent", "")},
		{"the same apply", http.MethodPatch, "v1beta1/clusterheartbeats/east.agent?fieldManager=agent", applyPatch, heartbeatOf("east.agent", "")},
		{"an apply of what the server sets", http.MethodPatch, "v1beta1/clusterheartbeats/east.agent?fieldManager=agent", applyPatch, heartbeatOf("east.agent", nonsense)},
		{"an update of what the server sets", http.MethodPut, "v1beta1/clusterheartbeats/east.agent", plain, heartbeatOf("east.agent", nonsense)},
		{"a patch", http.MethodPatch, "v1beta1/clusterheartbeats/east.agent", mergePatch, `{}`},
	} {
		if before := beat(); before != nil {
			before = before.DeepCopy()
			before.RenewTime = metav1.Unix(1, 0)
			if _, err := stored.swap("/clusterheartbeats/east.agent", beat(), before, &clusterregistry.ClusterHeartbeat{}); err != nil {
				t.Fatal(err)
			}
		}
		code, answer, _ := d.send(step.method, step.path, step.kind, step.body)
		got := beat()
		if code/100 != 2 || got == nil {
			t.Fatalf("%s: %d %s", step.reason, code, answer)
		}
		if got.ClusterName != "east" || got.ClusterUID != of.UID || got.Reporter != "agent" || time.Since(got.RenewTime.Time) > time.Minute || got.RenewTime.Nanosecond() != 0 {
			t.Errorf("%s: %+v", step.reason, got)
		}
		for _, owned := range got.ManagedFields {
			if strings.Contains(string(owned.FieldsV1.GetRawBytes()), "renewTime") {
				t.Errorf("%s: %s owns what the server sets", step.reason, owned.Manager)
			}
		}
	}
	if now := stored.now("/clusters/east").(*clusterregistry.Cluster); now.ResourceVersion != of.ResourceVersion {
		t.Error("the cluster was rewritten")
	}
}

// TestHeartbeatsOfNothing: a heartbeat has the name of a cluster in its own, and is read as its
// page says.
func TestHeartbeatsOfNothing(t *testing.T) {
	d := newDeskOn(t, cluster.GuardedFieldsOff, newHistory())
	for _, beat := range []string{"east.agent", "east.other.example"} {
		if code, answer, _ := d.send(http.MethodPost, "v1beta1/clusterheartbeats", plain, heartbeatOf(beat, "")); code != http.StatusCreated {
			t.Fatalf("%s: %d %s", beat, code, answer)
		}
	}
	for _, test := range []struct {
		reason, method, path, kind, body string
		code                             int
		says                             string
	}{
		{"no such cluster", http.MethodPost, "v1beta1/clusterheartbeats", plain, heartbeatOf("west.agent", ""), 404, `clusters.clusterregistry.k8s.io \"west\" not found`},
		{"no such cluster, by an update", http.MethodPut, "v1beta1/clusterheartbeats/west.agent", plain, heartbeatOf("west.agent", ""), 404, `clusters.clusterregistry.k8s.io \"west\" not found`},
		{"no reporter", http.MethodPost, "v1beta1/clusterheartbeats", plain, heartbeatOf("east", ""), 422, "such as east.agent"},
		{"no name", http.MethodPost, "v1beta1/clusterheartbeats", plain, strings.Replace(heartbeatOf("east.", ""), `"name"`, `"generateName"`, 1), 422, "such as east.agent"},
		{"no DNS name", http.MethodPost, "v1beta1/clusterheartbeats", plain, heartbeatOf("east.A", ""), 422, "RFC 1123"},
		{"a patch of none", http.MethodPatch, "v1beta1/clusterheartbeats/east.new", mergePatch, `{}`, 404, "not found"},
		{"what keeps it", http.MethodPost, "v1beta1/clusterheartbeats", plain, kept("east.new"), 422, "metadata.finalizers"},
		{"what keeps it, by an update", http.MethodPut, "v1beta1/clusterheartbeats/east.agent", plain, kept("east.agent"), 422, "metadata.finalizers"},
		{"what keeps it, by an apply", http.MethodPatch, "v1beta1/clusterheartbeats/east.agent?fieldManager=agent", applyPatch, kept("east.agent"), 422, "metadata.finalizers"},
		{"too much beside it", http.MethodPatch, "v1beta1/clusterheartbeats/east.agent", mergePatch, `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 5<<10) + `"}}}`, 422, "at most 4096 bytes"},
		{"a watch", http.MethodGet, "v1beta1/clusterheartbeats?watch=true", "", "", 405, ""},
		{"a deletion of all", http.MethodDelete, "v1beta1/clusterheartbeats", "", "", 405, ""},
		{"in v1alpha1", http.MethodGet, "v1alpha1/clusterheartbeats", "", "", 404, ""},
		{"by its cluster", http.MethodGet, "v1beta1/clusterheartbeats?fieldSelector=clusterName%3Deast,reporter%3Dagent", "", "", 200, "east.agent"},
		{"by another field", http.MethodGet, "v1beta1/clusterheartbeats?fieldSelector=renewTime%3D1", "", "", 400, "the fields are metadata.name, clusterName, reporter"},
		{"one", http.MethodGet, "v1beta1/clusterheartbeats/east.agent", "", "", 200, "renewTime"},
		{"its end", http.MethodDelete, "v1beta1/clusterheartbeats/east.agent", "", "", 200, ""},
		{"none any more", http.MethodGet, "v1beta1/clusterheartbeats/east.agent", "", "", 404, ""},
	} {
		code, answer, _ := d.send(test.method, test.path, test.kind, test.body)
		if code != test.code || !strings.Contains(answer, test.says) || strings.Contains(test.reason, "by its") && strings.Contains(answer, "other.example") {
			t.Errorf("%s: %d %s", test.reason, code, answer)
		}
	}
}

func kept(name string) string {
	return strings.Replace(heartbeatOf(name, ""), `{"name"`, `{"finalizers":["example.com/wait"],"name"`, 1)
}

// TestHeartbeatsAreCounted: a cluster has as many as it may have reporters, and each of these
// can be renewed still.
func TestHeartbeatsAreCounted(t *testing.T) {
	d := newDeskOn(t, cluster.GuardedFieldsOff, newHistory())
	send := func(want int, method, name, kind string) {
		t.Helper()
		path := "v1beta1/clusterheartbeats"
		if method != http.MethodPost {
			path += "/" + name + "?fieldManager=agent"
		}
		if code, answer, _ := d.send(method, path, kind, heartbeatOf(name, "")); code != want {
			t.Errorf("%s %s: %d %s", method, name, code, answer)
		}
	}
	for n := range validation.MaxReporters {
		send(http.StatusCreated, http.MethodPost, fmt.Sprint("east.a", n), plain)
	}
	send(http.StatusForbidden, http.MethodPost, "east.more", plain)
	send(http.StatusForbidden, http.MethodPut, "east.more", plain)
	send(http.StatusForbidden, http.MethodPatch, "east.more", applyPatch)
	send(http.StatusOK, http.MethodPut, "east.a0", plain)
	send(http.StatusOK, http.MethodPatch, "east.a1", applyPatch)
	if code, answer, _ := d.send(http.MethodPost, "v1beta1/clusters", plain, inSet("west", "")); code != http.StatusCreated {
		t.Fatalf("%d %s", code, answer)
	}
	send(http.StatusCreated, http.MethodPost, "west.agent", plain)
}

// beats are the names in a list of heartbeats.
func (o *office) beats(as, path string) (names string) {
	o.t.Helper()
	code, body := o.do(0, as, "GET", path, plain, "")
	var list v1beta1.ClusterHeartbeatList
	if err := json.Unmarshal([]byte(body), &list); code != http.StatusOK || err != nil {
		o.t.Fatalf("%s reads %s: %d %s (%v)", as, path, code, body, err)
	}
	for _, item := range list.Items {
		names += " " + item.Name
	}
	return strings.TrimSpace(names)
}

// TestHeartbeatsAreHidden: a caller sees and writes the heartbeats of the clusters that it sees
// and may change, and those of others are as those that don't exist.
func TestHeartbeatsAreHidden(t *testing.T) {
	o := small(t, quick)
	const path = "v1beta1/clusterheartbeats"
	for _, beat := range []string{"b1.agent", "b2.agent", "g1.agent", "none.agent"} {
		o.must("POST", path, plain, heartbeatOf(beat, ""))
	}
	for as, want := range map[string]string{"root": "b1.agent b2.agent g1.agent none.agent", "ann,team": "b1.agent b2.agent", "bob": "b1.agent b2.agent g1.agent", "cid": ""} {
		if got := o.beats(as, path); got != want {
			t.Errorf("%s sees %q, want %q", as, got, want)
		}
	}
	if got := o.beats("ann,team", path+"?limit=1"); got != "b1.agent b2.agent" {
		t.Errorf("with a limit: %q", got)
	}
	if got := o.beats("ann,team", path+"?fieldSelector=clusterName%3Dg1"); got != "" {
		t.Errorf("by the name of a hidden cluster: %q", got)
	}
	if code, _ := o.do(0, "ann,team", "GET", path+"?limit=1&continue=abc", plain, ""); code != http.StatusGone {
		t.Errorf("a page of a list of all: %d", code)
	}
	// same makes a request for a heartbeat of a hidden cluster, and for one of none.
	same := func(as, method, kind, body string, want int) {
		t.Helper()
		ask := func(name string) (int, string) {
			at := path
			if method != "POST" {
				at += "/" + name + ".agent"
			}
			code, answer := o.do(0, as, method, at, kind, strings.ReplaceAll(body, "NAME", name))
			return code, strings.ReplaceAll(answer, name, "NAME")
		}
		code, hidden := ask("g1")
		_, absent := ask("zz")
		if code != want || hidden != absent {
			t.Errorf("%s %s: %d %s, of none %s", as, method, code, hidden, absent)
		}
	}
	same("ann,team", "GET", plain, "", http.StatusNotFound)
	same("ann,team", "DELETE", plain, "", http.StatusNotFound)
	same("ann,team", "POST", plain, heartbeatOf("NAME.agent", ""), http.StatusNotFound)
	same("ann,team", "PUT", plain, heartbeatOf("NAME.agent", ""), http.StatusNotFound)
	same("ann,team", "PATCH", mergePatch, `{}`, http.StatusNotFound)
	for _, test := range []struct {
		as, method, name string
		want             int
	}{
		{"ann,team", "GET", "b1", http.StatusOK}, {"ann,team", "PUT", "b1", http.StatusForbidden}, {"ann,team", "DELETE", "b1", http.StatusForbidden},
		{"bob", "PUT", "b1", http.StatusForbidden}, {"bob", "PUT", "g1", http.StatusOK}, {"bob", "DELETE", "g1", http.StatusOK}, {"bob", "PUT", "g1", http.StatusCreated},
	} {
		body := ""
		if test.method == "PUT" {
			body = heartbeatOf(test.name+".agent", "")
		}
		if code, answer := o.do(0, test.as, test.method, path+"/"+test.name+".agent", plain, body); code != test.want {
			t.Errorf("%s %s %s: %d %s", test.as, test.method, test.name, code, answer)
		}
	}
	o.move("b1", "green")
	if got := o.beats("ann,team", path); got != "b2.agent" {
		t.Errorf("once b1 has moved, ann sees %q", got)
	}
	// Another cluster of a name, in another set, has none yet.
	o.must("PATCH", path+"/g1.agent", mergePatch, `{"metadata":{"labels":{"of":"green"}}}`)
	o.must("DELETE", "v1beta1/clusters/g1", plain, "")
	o.put("g1", "blue")
	if got := o.beats("ann,team", path); got != "b2.agent" {
		t.Errorf("ann sees %q of the former g1", got)
	}
	same("ann,team", "GET", plain, "", http.StatusNotFound)
	// Nor is it given to who may write those of the other one.
	o.grants.set(true, "bob", "blue", "update", "patch")
	same("bob", "DELETE", plain, "", http.StatusNotFound)
	if code, answer := o.do(0, "bob", "PATCH", path+"/g1.agent", jsonPatch, `[{"op":"test","path":"/metadata/labels/of","value":"green"}]`); code != http.StatusNotFound {
		t.Errorf("bob asks what the former g1 had: %d %s", code, answer)
	}
	if code, answer := o.do(0, "bob", "PUT", path+"/g1.agent", plain, heartbeatOf("g1.agent", "")); code != http.StatusCreated || strings.Contains(answer, "green") {
		t.Errorf("bob writes that of the new g1: %d %s", code, answer)
	}
	if got := o.beats("ann,team", path+"?fieldSelector=clusterName%3Dg1"); got != "g1.agent" {
		t.Errorf("ann sees %q of the new g1", got)
	}
	// Those of a cluster that is gone are for who sees all.
	o.must("DELETE", "v1beta1/clusters/none", plain, "")
	if code, _ := o.do(0, "ann,team", "DELETE", path+"/none.agent", plain, ""); code != http.StatusNotFound {
		t.Errorf("ann deletes what is left of a cluster: %d", code)
	}
	o.must("DELETE", path+"/none.agent", plain, "")
	o.grants.mu.Lock()
	o.grants.fails = true
	o.grants.mu.Unlock()
	same("dan", "GET", plain, "", http.StatusServiceUnavailable)
	same("dan", "PUT", plain, heartbeatOf("NAME.agent", ""), http.StatusServiceUnavailable)
}

// TestHeartbeatsOutOfSight: of a cluster that moves out of sight while one is read, no renewal
// made after that is shown.
func TestHeartbeatsOutOfSight(t *testing.T) {
	o := small(t, quick)
	o.must("POST", "v1beta1/clusterheartbeats", plain, heartbeatOf("b1.agent", ""))
	var moved sync.Once
	o.stored.reading = func(key string) {
		if key == "/clusterheartbeats/b1.agent" {
			moved.Do(func() { o.move("b1", "green") })
		}
	}
	if code, answer := o.do(0, "ann,team", "GET", "v1beta1/clusterheartbeats/b1.agent", plain, ""); code != http.StatusNotFound {
		t.Errorf("%d %s", code, answer)
	}
}
