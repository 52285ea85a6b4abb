package integration

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/client/clientset/versioned"
	clustersv1alpha1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestWatchedLoad writes, reads and watches through the aggregator, while
// somebody else stores the same clusters again and again, as the operator does
// after the storage version has changed.
func TestWatchedLoad(t *testing.T) {
	t.Parallel()
	host, _ := framework.StartAggregated(t, newest)
	config := *host.Config
	config.QPS = -1
	clients, err := versioned.NewForConfig(&config)
	if err != nil {
		t.Fatal(err)
	}
	clusters := clients.ClusterregistryV1alpha1().Clusters()
	load := framework.StartLoad(t, &config, 50, framework.Watchers(3), framework.Population(10), framework.Rewritten(), framework.Pending(20))
	load.Settle(t)
	load.Mark("rewritten")
	for start, round := time.Now(), 0; time.Since(start) < 20*time.Second; round++ { // longer than a watch
		rewrite(t, clusters, round)
		load.Settle(t)
	}
	report := load.Stop()
	t.Log(report)
	for _, failure := range report.Failed {
		t.Error(failure)
	}
	compare(t, clusters, report)
	if report.Conflicts == 0 {
		t.Error("nothing conflicted with what was stored anew")
	}
	for i, w := range report.Watches {
		if w.Resumed == 0 || w.Events <= load.Acknowledged() {
			t.Errorf("watch %d was told of %d changes, of %d and those of others, and resumed %d times", i, w.Events, load.Acknowledged(), w.Resumed)
		}
	}
}

// rewrite stores clusters anew. That they differ in an annotation is nothing to
// a load.
func rewrite(t *testing.T, clusters clustersv1alpha1.ClusterInterface, round int) {
	t.Helper()
	list, err := clusters.List(t.Context(), metav1.ListOptions{LabelSelector: "load=yes", Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"rewritten":"%d"}}}`, round)
		_, err := clusters.Patch(t.Context(), c.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) { // one is deleted meanwhile
			t.Errorf("rewrite %s: %v", c.Name, err)
		}
	}
}
