package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apiserver/visibility"
)

// seen is an event of a watch.
type seen struct {
	Type   watch.EventType
	Object v1beta1.Cluster
	// Code is that of an error.
	Code int32
}

// UnmarshalJSON reads a cluster, or the status of an error.
func (s *seen) UnmarshalJSON(content []byte) error {
	var event struct {
		Type   watch.EventType
		Object json.RawMessage
	}
	if err := json.Unmarshal(content, &event); err != nil {
		return err
	}
	if s.Type = event.Type; s.Type != watch.Error {
		return json.Unmarshal(event.Object, &s.Object)
	}
	var status metav1.Status
	err := json.Unmarshal(event.Object, &status)
	s.Code = status.Code
	return err
}

func (s seen) String() string {
	if s.Type == watch.Error {
		return fmt.Sprintf("ERROR %d", s.Code)
	}
	return fmt.Sprintf("%s %s", s.Type, s.Object.Name)
}

// watch reports the events of a watch until it ends, and then closes the channel.
func (o *office) watch(ctx context.Context, server int, as, query string) (<-chan seen, error) {
	response, err := o.open(ctx, server, as, "GET", "v1beta1/clusters?watch=true&"+query, plain, "")
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer func() { _ = response.Body.Close() }()
		return nil, fmt.Errorf("answered %d", response.StatusCode)
	}
	events := make(chan seen, 100)
	go func() {
		defer close(events)
		defer func() { _ = response.Body.Close() }()
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			var event seen
			if json.Unmarshal(lines.Bytes(), &event) != nil {
				return
			}
			select {
			case events <- event:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events, nil
}

// expect reads events, until the watch has reported all that are wanted or does not go on.
func expect(t *testing.T, events <-chan seen, want ...string) {
	t.Helper()
	for i, w := range want {
		select {
		case event, open := <-events:
			if got := event.String(); !open || got != w {
				t.Fatalf("event %d: %q (open: %t), want %q", i, got, open, w)
			}
		case <-time.After(time.Minute):
			t.Fatalf("event %d: none, want %q", i, w)
		}
	}
}

// TestVisibleMoves lets a cluster come and go for who watches.
func TestVisibleMoves(t *testing.T) {
	o := small(t, quick)
	from := o.read(0, "ann,team", "v1beta1/clusters", plain).Metadata.ResourceVersion
	events, err := o.watch(t.Context(), 1, "ann,team", "resourceVersion="+from)
	if err != nil {
		t.Fatal(err)
	}
	o.move("g1", "blue")
	o.put("g2", "green")
	o.move("b1", "green")
	o.move("b1", "")
	o.move("g2", "blue")
	o.must("DELETE", "v1beta1/clusters/b2", plain, "")
	expect(t, events, "ADDED g1", "DELETED b1", "ADDED g2", "DELETED b2")
}

// TestVisibleChanges ends watches when what their caller sees changes, and refuses those
// that would go on from before, at every server.
func TestVisibleChanges(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(*office)
	}{
		{"a grant", func(o *office) { o.grants.set(true, "ann", "green", "get") }},
		{"a revocation", func(o *office) { o.grants.set(false, "team", "blue", "get") }},
		{"a grant of all", func(o *office) { o.grants.set(true, "ann", "", "get") }},
		{"a new set", func(o *office) { o.grants.set(true, "ann", "red", "get"); o.makeSets("red") }},
		{"a set less", func(o *office) {
			o.must("DELETE", "v1beta1/clusters?fieldSelector=spec.clusterSet%3Dblue", plain, "")
			o.must("DELETE", "v1beta1/clustersets/blue", plain, "")
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			o := small(t, quick)
			from := o.read(0, "ann,team", "v1beta1/clusters", plain).Metadata.ResourceVersion
			o.put("z", "green")
			events, err := o.watch(t.Context(), 1, "ann,team", "resourceVersion="+from)
			if err != nil {
				t.Fatal(err)
			}
			test.change(o)
			for event := range events {
				if event.Type == watch.Error {
					if event.Code != http.StatusGone {
						t.Errorf("got %v", event)
					}
					break
				}
			}
			for server := range o.servers {
				again, err := o.watch(t.Context(), server, "ann,team", "resourceVersion="+from)
				if err != nil {
					t.Fatal(err)
				}
				expect(t, again, "ERROR 410")
			}
			list := o.read(0, "ann,team", "v1beta1/clusters", plain)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if events, err = o.watch(ctx, 1, "ann,team", "resourceVersion="+list.Metadata.ResourceVersion); err != nil {
				t.Fatal(err)
			}
			select {
			case event := <-events:
				t.Errorf("a watch from a new list ends: %v", event)
			case <-time.After(100 * time.Millisecond):
			}
		})
	}
}

// TestVisibleOld has servers whose reviews are kept, so that they learn of changes from the
// record alone.
func TestVisibleOld(t *testing.T) {
	o := small(t, visibility.Periods{Cache: time.Hour, Recheck: time.Hour})
	first := o.read(0, "ann,team", "v1beta1/clusters", plain)
	events, err := o.watch(t.Context(), 0, "ann,team", "resourceVersion="+first.Metadata.ResourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	o.grants.set(true, "ann", "green", "get")
	second := o.read(1, "ann,team", "v1beta1/clusters", plain) // the other server asks, and records it
	if got := second.names(); !slices.Equal(got, []string{"b1", "b2", "g1"}) {
		t.Fatalf("the other server shows %q", got)
	}
	// What the first server reports from now on, a client could go on from at the other one.
	o.put("b3", "blue")
	expect(t, events, "ERROR 410")
	if got := o.read(0, "ann,team", "v1beta1/clusters", plain).names(); !slices.Equal(got, []string{"b1", "b2", "b3", "g1"}) {
		t.Errorf("the first server shows %q", got)
	}
}

// TestVisibleRecords loses the record, has another credential of the same user, and reads
// from a watch cache that lags.
func TestVisibleRecords(t *testing.T) {
	o := small(t, quick)
	from := o.read(0, "ann,team", "v1beta1/clusters", plain).Metadata.ResourceVersion
	_, records := o.stored.at("/clusterids/views/", o.stored.revision)
	if len(records) != 1 {
		t.Errorf("recorded %v", records)
	}
	for key := range records {
		o.stored.mu.Lock()
		err := o.stored.put(key, nil, nil)
		o.stored.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	events, err := o.watch(t.Context(), 0, "ann,team", "resourceVersion="+from)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, events, "ERROR 410")

	// The cache lags behind the new record: a list of any age must be of use for a watch.
	o.stored.lag = 100
	for _, query := range []string{"resourceVersion=0", "resourceVersion=" + from} {
		list := o.read(1, "ann,team", "v1beta1/clusters?"+query, plain)
		if events, err = o.watch(t.Context(), 1, "ann,team", "resourceVersion="+list.Metadata.ResourceVersion); err != nil {
			t.Fatal(err)
		}
		o.put("b-"+strings.ToLower(query[len(query)-1:]), "blue")
		expect(t, events, "ADDED b-"+query[len(query)-1:])
	}
}

// TestVisibleExact lists clusters at a version of before a grant, when one was in the set that
// is granted: what the caller sees now is no reason to show where it was then.
func TestVisibleExact(t *testing.T) {
	o := small(t, quick)
	list := o.read(0, "bob", "v1beta1/clusters", plain)
	before := list.Metadata.ResourceVersion
	o.move("none", "green")
	o.move("none", "blue")
	o.move("none", "")
	within := o.stored.revision - 1
	o.grants.set(true, "ann", "blue", "get")
	for server := range o.servers {
		if got := o.read(server, "ann", "v1beta1/clusters", plain).names(); !slices.Equal(got, []string{"b1", "b2"}) {
			t.Errorf("ann sees %q", got)
		}
		for _, version := range []string{before, fmt.Sprint(within)} {
			for _, query := range []string{"resourceVersionMatch=Exact&resourceVersion=", "limit=5&resourceVersion=", "limit=1&resourceVersion="} {
				if code, body := o.do(server, "ann", "GET", "v1beta1/clusters?"+query+version, plain, ""); code != http.StatusGone || strings.Contains(body, "none") {
					t.Errorf("%s%s: answered %d %s", query, version, code, body)
				}
			}
		}
		// Whose sets have not changed since may list what was.
		if got := o.read(server, "bob", "v1beta1/clusters?resourceVersionMatch=Exact&resourceVersion="+before, plain).names(); !slices.Equal(got, list.names()) {
			t.Errorf("bob saw %q, not %q", list.names(), got)
		}
	}
}

// TestVisibleOldGet gets a cluster from a watch cache that has it in the set which it has left.
func TestVisibleOldGet(t *testing.T) {
	o := small(t, quick)
	was := o.stored.revision
	o.move("b1", "green")
	o.stored.lag = o.stored.revision - was
	for _, path := range []string{"v1beta1/clusters/b1?resourceVersion=0", "v1beta1/clusters/b1/status?resourceVersion=0"} {
		if code, body := o.do(0, "ann,team", "GET", path, plain, ""); code != http.StatusNotFound {
			t.Errorf("%s: answered %d %s", path, code, body)
		}
	}
}

// TestVisibleDoubt ends a watch whose caller's reviews fail, and lets it go on when one did.
func TestVisibleDoubt(t *testing.T) {
	o := small(t, visibility.Periods{Recheck: 100 * time.Millisecond})
	from := o.read(0, "ann,team", "v1beta1/clusters", plain).Metadata.ResourceVersion
	events, err := o.watch(t.Context(), 0, "ann,team", "resourceVersion="+from)
	if err != nil {
		t.Fatal(err)
	}
	o.grants.mu.Lock()
	o.grants.fails = true
	o.grants.mu.Unlock()
	expect(t, events, "ERROR 503")
}

// TestVisibleRenewal keeps the record of a client that only lists.
func TestVisibleRenewal(t *testing.T) {
	o := small(t, quick)
	o.read(0, "ann,team", "v1beta1/clusters", plain)
	stored := func() (key string, record *metav1.PartialObjectMetadata) {
		o.stored.mu.Lock()
		defer o.stored.mu.Unlock()
		for key, object := range second(o.stored.at("/clusterids/views/", o.stored.revision)) {
			return key, object.DeepCopyObject().(*metav1.PartialObjectMetadata)
		}
		t.Fatal("nothing is recorded")
		return "", nil
	}
	key, old := stored()
	since := old.ResourceVersion
	old.CreationTimestamp, old.Annotations["since"] = metav1.NewTime(time.Now().Add(-20*time.Minute)), since
	o.stored.mu.Lock()
	err := o.stored.put(key, old, &metav1.PartialObjectMetadata{})
	o.stored.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	from := o.read(1, "ann,team", "v1beta1/clusters", plain).Metadata.ResourceVersion
	if _, now := stored(); time.Since(now.CreationTimestamp.Time) > time.Minute || now.Annotations["since"] != since {
		t.Errorf("a list leaves the record of %s, since %s", now.CreationTimestamp, now.Annotations["since"])
	}
	events, err := o.watch(t.Context(), 0, "ann,team", "resourceVersion="+from)
	if err != nil {
		t.Fatal(err)
	}
	o.put("b3", "blue")
	expect(t, events, "ADDED b3")
}

// TestVisibleInitialEvents begins a watch with all clusters while the record is slow to read: one
// confirmation covers all that the store has reported by then.
func TestVisibleInitialEvents(t *testing.T) {
	const n = 600
	o := newOffice(t, visibility.Periods{Cache: time.Hour, Recheck: time.Hour})
	for i := range n {
		o.stored.mu.Lock()
		name := fmt.Sprintf("c%d", i)
		err := o.stored.put("/clusters/"+name, &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}, &clusterregistry.Cluster{})
		o.stored.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	var reads atomic.Int64
	o.stored.reading = func(key string) {
		if !strings.Contains(key, "/views/") || o.stored.reported.Load() == 0 {
			return
		}
		reads.Add(1)
		for began := time.Now(); o.stored.reported.Load() < n; time.Sleep(time.Millisecond) {
			if time.Since(began) > 5*time.Second {
				return // nothing more comes before this is answered
			}
		}
	}
	events, err := o.watch(t.Context(), 0, "root", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		event, open := <-events
		if !open || event.Type != watch.Added {
			t.Fatalf("event %d: %v (open: %t)", i, event, open)
		}
		if got := reads.Load(); got > 2 {
			t.Fatalf("%d events took %d reads of the record", i+1, got)
		}
	}
}

func second[A, B any](_ A, b B) B { return b }
