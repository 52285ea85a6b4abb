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
)

// sample is the outcome of one turn.
type sample struct {
	latencies []time.Duration
	elapsed   time.Duration
	// costs are those of the contestant's servers, in their order.
	costs []cost
}

// operation is something that clients do. Its run takes a contestant's turn,
// of about the length of a window, with the given number of objects.
type operation struct {
	name string
	run  func(t *testing.T, c *contestant, size int, window time.Duration) sample
}

const (
	opCreate = "create"
	opList   = "list all"
	opField  = "list by indexed field, 1 %"
)

// operations have those that write last: four contestants write to the registry,
// one to the custom resource, and watch caches remember what was written.
var operations = []operation{
	{"get", func(t *testing.T, c *contestant, size int, window time.Duration) sample {
		return c.turn(t, window, func(ctx context.Context, n int) (*http.Request, error) {
			return c.get(ctx, "/"+objectName(n%100*(size/100)), nil)
		})
	}},
	{"list by label, 1 %", func(t *testing.T, c *contestant, _ int, window time.Duration) sample {
		return c.turn(t, window, func(ctx context.Context, n int) (*http.Request, error) { return c.get(ctx, "", byLabel(n)) })
	}},
	{opField, func(t *testing.T, c *contestant, _ int, window time.Duration) sample {
		return c.turn(t, window, func(ctx context.Context, n int) (*http.Request, error) { return c.get(ctx, "", byField(n)) })
	}},
	{opList, func(t *testing.T, c *contestant, _ int, window time.Duration) sample {
		return c.turn(t, window, func(ctx context.Context, _ int) (*http.Request, error) { return c.get(ctx, "", nil) })
	}},
	{opCreate, func(t *testing.T, c *contestant, _ int, window time.Duration) sample {
		s := c.turn(t, window, func(ctx context.Context, n int) (*http.Request, error) { return c.create(ctx, newName(n), n) })
		c.remove(t, len(s.latencies))
		return s
	}},
	{"watch, 100 watchers", func(t *testing.T, c *contestant, _ int, window time.Duration) sample { return c.fanOut(t, window) }},
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
	for _, server := range c.servers {
		ends = append(ends, server.begin(t))
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
