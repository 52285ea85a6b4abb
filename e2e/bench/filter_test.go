package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	// filtered is the name of a ClusterSet, and of the operation.
	filtered = "filtered"
	// filteredAim is how many times the time of a full list one of a set may take.
	filteredAim = 1.3
)

// TestFilteredList compares lists of the clusters in one ClusterSet with a full list of a
// small registry that has as many. The large registry has 10, then 100 times as many: what
// is in other sets should cost nothing.
func TestFilteredList(t *testing.T) {
	start, s := time.Now(), readSettings(t)
	size := s.sizes[len(s.sizes)-1]
	few := size / 100
	etcd := framework.StartEtcd(t, 1, s.etcdFlags()...)
	// Both start before there are objects: their idle memory is measured then.
	small, large := startIndependent(t, etcd, "--etcd-prefix=/small"), startIndependent(t, etcd, "--etcd-prefix=/large")
	ca := framework.NewAuthority(t, "example-ca").PEM
	queries, contestants := map[string]url.Values{}, []*contestant(nil)
	add := func(of site, name string, query url.Values) {
		c := of.contestant(inJSON)
		c.name, c.ca = name, ca
		c.connect(t, slices.Max(s.connections))
		queries[name], contestants = query, append(contestants, c)
	}
	add(small, fmt.Sprintf("all of %d", few), nil)
	add(large, "by field", url.Values{"fieldSelector": {"spec.clusterSet=" + filtered}})
	add(large, "by label", url.Values{"labelSelector": {clusterregistry.ClusterSetLabel + "=" + filtered}})
	for _, c := range contestants[:2] {
		c.populate(t, 0, few)
		c.gather(t, few)
	}
	for _, c := range contestants {
		c.url = c.root + "/v1beta1/clusters" // v1alpha1 has no such field
		if got := len(c.listNames(t, queries[c.name]).Items); got != few {
			t.Fatalf("%s: %d clusters, want %d", c.name, got, few)
		}
	}
	op := operation{name: "list of " + fmt.Sprint(few), at: least, takes: all, run: func(t *testing.T, c *contestant, _ int, window time.Duration) sample {
		return c.turn(t, window, func(ctx context.Context, _ int) (*http.Request, error) { return c.get(ctx, "", queries[c.name]) })
	}}
	r, populated := &report{contestants: contestants}, few
	for _, n := range []int{size / 10, size} {
		old := *contestants[1]
		old.url = old.root + "/v1alpha1/clusters"
		old.populate(t, populated, n)
		populated = n
		connections := s.connections[0]
		fmt.Print(r.add(n, connections, op.name, op.measure(t, contestants, n, connections, s)))
		for i, row := range r.measured[len(r.measured)-1].rows[1:] {
			fmt.Printf("%s %.2f  list of %d of %d %s: time <= %.1f x that of a full list of as many\n", verdict(row.ratio.time <= filteredAim), row.ratio.time, few, n, contestants[i+1].name, filteredAim)
		}
	}
	fmt.Printf("All took %s.\n", time.Since(start).Round(time.Second))
}

// gather puts the first clusters in a set, as an administrator.
func (c *contestant) gather(t *testing.T, count int) {
	t.Helper()
	a := c.contestant(inJSON)
	a.administrator = true
	a.connect(t, 1)
	send := func(method, url, contentType, body string) error {
		a.url = a.root + "/v1beta1/" + url
		request, err := a.request(t.Context(), method, "", contentType, []byte(body))
		if err != nil {
			return err
		}
		_, err = a.do(a.connections[0], request)
		return err
	}
	if err := send(http.MethodPost, "clustersets", a.media, fmt.Sprintf(`{"apiVersion":"%s/v1beta1","kind":"ClusterSet","metadata":{"name":%q}}`, a.group, filtered)); err != nil {
		t.Fatal(err)
	}
	for n := range count {
		if err := send(http.MethodPatch, "clusters/"+objectName(n), string(types.MergePatchType), fmt.Sprintf(`{"spec":{"clusterSet":%q}}`, filtered)); err != nil {
			t.Fatal(err)
		}
	}
}
