package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// sample is the outcome of one turn.
type sample struct {
	latencies []time.Duration
	elapsed   time.Duration
	// costs are those of the contestant's processes, in their order.
	costs []cost
}

// operation is something that clients do. Its run takes a contestant's turn,
// of about the length of a window, with the given number of objects.
type operation struct {
	name string
	// at returns with how many connections it is measured, of those that are set.
	at func(connections []int) []int
	// takes reports whether a contestant takes part.
	takes func(*contestant) bool
	run   func(t *testing.T, c *contestant, size int, window time.Duration) sample
}

const (
	opGet    = "get"
	opNewGet = "get, new names"
	opPatch  = "patch, one after the other"
	opCreate = "create"
	opID     = "create with an id"
	opList   = "list all"
	opLabel  = "list by label, 1 %"
	opField  = "list by indexed field, 1 %"
	opWatch  = "watch, 100 watchers"
)

// operations have those that write last: several contestants write to the registry, one
// to the custom resource, and watch caches remember what was written.
var operations = []operation{
	{opGet, each, all, func(t *testing.T, c *contestant, size int, window time.Duration) sample {
		return c.turn(t, window, func(ctx context.Context, n int) (*http.Request, error) {
			return c.get(ctx, "/"+objectName(n%100*(size/100)), nil)
		})
	}},
	{opNewGet, most, all, func(t *testing.T, c *contestant, size int, window time.Duration) sample {
		return c.turn(t, window, func(ctx context.Context, _ int) (*http.Request, error) {
			return c.get(ctx, "/"+objectName(int(fresh.Add(1))%size), nil)
		})
	}},
	{opLabel, least, ordinary, func(t *testing.T, c *contestant, _ int, window time.Duration) sample {
		return c.turn(t, window, func(ctx context.Context, n int) (*http.Request, error) { return c.get(ctx, "", byLabel(n)) })
	}},
	{opField, least, ordinary, func(t *testing.T, c *contestant, _ int, window time.Duration) sample {
		return c.turn(t, window, func(ctx context.Context, n int) (*http.Request, error) { return c.get(ctx, "", byField(n)) })
	}},
	{opList, least, ordinary, func(t *testing.T, c *contestant, _ int, window time.Duration) sample {
		return c.turn(t, window, func(ctx context.Context, _ int) (*http.Request, error) { return c.get(ctx, "", nil) })
	}},
	{opPatch, one, inJSONAlone, func(t *testing.T, c *contestant, size int, window time.Duration) sample {
		return c.turn(t, window, func(ctx context.Context, n int) (*http.Request, error) {
			return c.request(ctx, http.MethodPatch, "/"+objectName(n%100*(size/100)), string(types.MergePatchType), []byte(note(fresh.Add(1))))
		})
	}},
	{opCreate, each, all, func(t *testing.T, c *contestant, _ int, window time.Duration) sample {
		return c.creations(t, window, c.create)
	}},
	{opID, most, identifying, func(t *testing.T, c *contestant, _ int, window time.Duration) sample {
		if c.group != clusterregistry.GroupName {
			return c.creations(t, window, c.create)
		}
		return c.creations(t, window, c.createIdentified)
	}},
	{opWatch, least, watched, func(t *testing.T, c *contestant, _ int, window time.Duration) sample { return c.fanOut(t, window) }},
}

// With how many connections an operation is measured.

func each(connections []int) []int  { return connections }
func least(connections []int) []int { return connections[:1] }
func most(connections []int) []int  { return connections[len(connections)-1:] }
func one([]int) []int               { return []int{1} }

// Who takes part in an operation.

func all(*contestant) bool           { return true }
func ordinary(c *contestant) bool    { return !c.administrator }
func inJSONAlone(c *contestant) bool { return c.encoding.name == inJSON.name }
func identifying(c *contestant) bool { return ordinary(c) && inJSONAlone(c) }
func watched(c *contestant) bool     { return ordinary(c) && c.way != ceiling }

// fresh counts what must not be the same again soon: names that are asked for, since a
// registry's server remembers for ten seconds what the host has said of each, and values
// that are written.
var fresh atomic.Int64

// creations creates clusters, and removes them when the turn is over.
func (c *contestant) creations(t *testing.T, window time.Duration, create func(ctx context.Context, name string, number int) (*http.Request, error)) sample {
	t.Helper()
	s := c.turn(t, window, func(ctx context.Context, n int) (*http.Request, error) { return create(ctx, newName(n), n) })
	c.remove(t, len(s.latencies))
	return s
}

func newName(n int) string    { return fmt.Sprintf("new-%06d", n) }
func objectName(n int) string { return fmt.Sprintf("cluster-%06d", n) }

func byLabel(n int) url.Values { return url.Values{"labelSelector": {"team=" + team(n)}} }
func byField(n int) url.Values {
	return url.Values{"fieldSelector": {"status.version.kubernetes=" + kubernetesVersion(n)}}
}

// turn sends requests, numbered from 0, one after the other on each connection
// until the window is over.
func (c *contestant) turn(t *testing.T, window time.Duration, request func(ctx context.Context, n int) (*http.Request, error)) sample {
	t.Helper()
	var (
		next atomic.Int64
		mu   sync.Mutex
		s    sample
	)
	s.costs, s.elapsed = c.account(t, func() {
		deadline := time.Now().Add(window)
		c.parallel(t, func(connection *http.Client) error {
			for time.Now().Before(deadline) {
				r, err := request(t.Context(), int(next.Add(1)-1))
				if err != nil {
					return err
				}
				latency, err := c.do(connection, r)
				if err != nil {
					return err
				}
				mu.Lock()
				s.latencies = append(s.latencies, latency)
				mu.Unlock()
			}
			return nil
		})
	})
	return s
}

// account returns what the contestant's servers spend, and the time that
// passes, while do runs.
func (c *contestant) account(t *testing.T, do func()) ([]cost, time.Duration) {
	t.Helper()
	var ends []func() cost
	for _, p := range c.processes() {
		ends = append(ends, p.begin(t))
	}
	start := time.Now()
	do()
	elapsed := time.Since(start)
	var costs []cost
	for _, end := range ends {
		costs = append(costs, end())
	}
	return costs, elapsed
}

// remove deletes the clusters that a turn created.
func (c *contestant) remove(t *testing.T, count int) {
	t.Helper()
	c.each(t, 0, count, func(connection *http.Client, n int) error {
		request, err := c.request(t.Context(), http.MethodDelete, "/"+newName(n), "", nil)
		if err != nil {
			return err
		}
		_, err = c.do(connection, request)
		return err
	})
}

// populate creates clusters with a status, from one number to before another.
func (c *contestant) populate(t *testing.T, first, last int) {
	t.Helper()
	c.each(t, first, last, func(connection *http.Client, n int) error {
		create, err := c.create(t.Context(), objectName(n), n)
		if err != nil {
			return err
		}
		if _, err = c.do(connection, create); err != nil {
			return err
		}
		status := fmt.Sprintf(`{"status":{"version":{"kubernetes":%q}}}`, kubernetesVersion(n))
		report, err := c.request(t.Context(), http.MethodPatch, "/"+objectName(n)+"/status", string(types.MergePatchType), []byte(status))
		if err != nil {
			return err
		}
		_, err = c.do(connection, report)
		return err
	})
}

// check makes sure that the contestant serves what is to be measured.
func (c *contestant) check(t *testing.T, size int) {
	t.Helper()
	for what, test := range map[string]struct {
		query url.Values
		want  int
	}{
		opList:  {nil, size},
		"label": {byLabel(42), size / 100},
		opField: {byField(42), size / 100},
	} {
		if list := c.listNames(t, test.query); len(list.Items) != test.want {
			t.Fatalf("%s: %s: %d clusters, want %d", c.name, what, len(list.Items), test.want)
		}
	}
}

// listNames lists the metadata of clusters.
func (c *contestant) listNames(t *testing.T, query url.Values) *metav1.PartialObjectMetadataList {
	t.Helper()
	request, err := c.get(t.Context(), "", query)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", inJSON.media)
	response, err := c.connections[0].Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	list := &metav1.PartialObjectMetadataList{}
	if err := json.NewDecoder(response.Body).Decode(list); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: list: status %s, %v", c.name, response.Status, err)
	}
	return list
}
