package integration

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestClusterAPIFleet brings 300 clusters, or 1,000 in "make test-full", into a registry at
// once. The controller is killed in the middle, and another one continues. It prints how long
// that takes, and how much is written.
func TestClusterAPIFleet(t *testing.T) {
	t.Parallel()
	fleet := 300
	if framework.Full() {
		fleet = 1000
	}
	i := newImporter(t)
	i.install(nil)
	i.label("registries")
	for n := range fleet {
		i.provision([]string{"team-a", "team-b"}[n%2], fmt.Sprintf("c-%04d", n))
	}
	before, _ := i.list()
	begin := time.Now()
	i.start()
	i.awaitFleet(fleet / 10)
	i.Kill()
	_, there := i.list()
	t.Logf("killed after %s, with %d entries", time.Since(begin).Round(time.Millisecond), len(there))
	if len(there) == fleet {
		t.Error("the controller was killed too late to be in the middle")
	}
	i.start() // waits until the Lease of the other one has expired
	second := time.Now()
	i.awaitFleet(len(there) + 1)
	led := time.Now()
	i.awaitFleet(fleet)
	now, all := i.list()
	t.Logf("%d clusters after %s, of which %s passed until the second controller led, and %s for the rest; %d writes in all", fleet,
		time.Since(begin).Round(time.Second), led.Sub(second).Round(time.Second), time.Since(led).Round(time.Second), now-before)
	// Each is made, and reported of, once; what was under way at the kill is done again. Half of
	// them are in a ClusterSet, for which a hold is taken and released. 8 are worked on at a time.
	if most := 2*fleet + 2*fleet/2 + 8*4; now-before > most || len(all) != fleet {
		t.Errorf("%d writes for %d entries, want at most %d", now-before, len(all), most)
	}
	// The restart of a steady fleet writes nothing.
	i.Stop()
	before, _ = i.list()
	i.provision("team-a", "one-more")
	i.start()
	i.await("one-more", metav1.ConditionTrue, "Imported")
	if after, _ := i.list(); after-before > 4+2 { // the two of a hold
		t.Errorf("a restart and one more cluster cost %d writes", after-before)
	}
}

// list returns how many writes there were in the registry, and the entries that are reported
// of. The servers count the clusters of a ClusterSet at most every few seconds, which makes
// more writes the longer a test takes: those are left out.
func (i *importer) list() (writes int, reported []string) {
	i.t.Helper()
	list, err := i.clusters.List(i.t.Context(), metav1.ListOptions{})
	if err != nil {
		i.t.Fatal(err)
	}
	if writes, err = strconv.Atoi(list.ResourceVersion); err != nil {
		i.t.Fatal(err)
	}
	set, err := i.etcd.Client.Get(i.t.Context(), "/registry/clusterregistry.k8s.io/clustersets/gold")
	if err != nil || len(set.Kvs) != 1 {
		i.t.Fatalf("the ClusterSet: %v, %v", set, err)
	}
	for k := range list.Items {
		if complete(&list.Items[k]) {
			reported = append(reported, list.Items[k].Name)
		}
	}
	return writes - int(set.Kvs[0].Version), reported
}

func complete(entry *v1beta1.Cluster) bool {
	return conditionOf(entry, "Joined").Reason == "Imported" && len(entry.Spec.Endpoints) == 1
}

// awaitFleet waits until at least so many entries are reported of.
func (i *importer) awaitFleet(n int) {
	i.t.Helper()
	framework.Eventually(i.t, fmt.Sprintf("%d entries", n), func(context.Context) error {
		if _, reported := i.list(); len(reported) < n {
			return fmt.Errorf("%d", len(reported))
		}
		return nil
	})
}
