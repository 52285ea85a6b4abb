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
	// several is how many sets a caller of several sees.
	several = 10
)

// TestFilteredList compares lists of the clusters in one ClusterSet with a full list of a
// small registry that has as many. The large registry has 10, then 100 times as many: what
// is in other sets should cost nothing. Beside those who select a set, two callers list all that
// they see of the large one: the clusters of one set, and as many in several, which have no aim.
func TestFilteredList(t *testing.T) {
	start, s := time.Now(), readSettings(t)
	size := s.sizes[len(s.sizes)-1]
	few := size / 100
	etcd := framework.StartEtcd(t, 1, s.etcdFlags()...)
	// Both start before there are objects: their idle memory is measured then.
	small, large := startIndependent(t, etcd, "--etcd-prefix=/small"), startIndependent(t, etcd, "--etcd-prefix=/large")
	seen := startVisible(t, etcd, "--etcd-prefix=/large")
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
	populated := 2 * few
	contestants[0].populate(t, 0, few)
	contestants[1].populate(t, 0, populated)
	for _, c := range contestants[:2] {
		c.gather(t, filtered, 0, few)
	}
	parts := make([]string, several)
	for i := range parts {
		parts[i] = fmt.Sprintf("part-%d", i)
		contestants[1].gather(t, parts[i], few+i*few/several, few+(i+1)*few/several)
	}
	aimed := len(contestants)
	add(seen(t, "one", filtered), "seen by one set", nil)
	add(seen(t, "some", parts...), fmt.Sprintf("seen by %d sets", several), nil)
	for _, c := range contestants {
		c.url = c.root + "/v1beta1/clusters" // v1alpha1 has no such field
		if got := len(c.listNames(t, queries[c.name]).Items); got != few {
			t.Fatalf("%s: %d clusters, want %d", c.name, got, few)
		}
	}
	op := operation{name: "list of " + fmt.Sprint(few), at: least, takes: all, run: func(t *testing.T, c *contestant, _ int, window time.Duration) sample {
		return c.turn(t, window, func(ctx context.Context, _ int) (*http.Request, error) { return c.get(ctx, "", queries[c.name]) })
	}}
	r := &report{contestants: contestants}
	for _, n := range []int{size / 10, size} {
		old := *contestants[1]
		old.url = old.root + "/v1alpha1/clusters"
		old.populate(t, populated, n)
		populated = n
		connections := s.connections[0]
		fmt.Print(r.add(n, connections, op.name, op.measure(t, contestants, n, connections, s)))
		for i, row := range r.measured[len(r.measured)-1].rows[1:] {
			judged, aim := "      ", "time, in comparison with"
			if i+1 < aimed {
				judged, aim = verdict(row.ratio.time <= filteredAim), fmt.Sprintf("time <= %.1f x that of", filteredAim)
			}
			fmt.Printf("%s %.2f  list of %d of %d %s: %s a full list of as many\n", judged, row.ratio.time, few, n, contestants[i+1].name, aim)
		}
	}
	fmt.Printf("All took %s.\n", time.Since(start).Round(time.Second))
}

// gather makes a set and puts clusters in it, those of the numbers from first to before last, as
// an administrator.
func (c *contestant) gather(t *testing.T, set string, first, last int) {
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
	if err := send(http.MethodPost, "clustersets", a.media, fmt.Sprintf(`{"apiVersion":"%s/v1beta1","kind":"ClusterSet","metadata":{"name":%q}}`, a.group, set)); err != nil {
		t.Fatal(err)
	}
	for n := first; n < last; n++ {
		if err := send(http.MethodPatch, "clusters/"+objectName(n), string(types.MergePatchType), fmt.Sprintf(`{"spec":{"clusterSet":%q}}`, set)); err != nil {
			t.Fatal(err)
		}
	}
}
