package health

import (
	"errors"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// TestRetract switches the function off: what it has said goes, what others have said
// stays, and clusters that it never spoke of are not written.
func TestRetract(t *testing.T) {
	east, west, north := entry("east"), entry("west"), entry("north")
	b := newBench(t, east, west, north)
	b.check("east", "west")
	stored := b.get("east")
	stored.Status.Reporters = append(stored.Status.Reporters, v1beta1.Reporter{Name: "agent"})
	stored.Status.Conditions = append(stored.Status.Conditions, metav1.Condition{Type: "Joined", Status: metav1.ConditionTrue})
	if _, err := b.client.ClusterregistryV1beta1().Clusters().UpdateStatus(t.Context(), stored, metav1.UpdateOptions{FieldManager: "agent"}); err != nil {
		t.Fatal(err)
	}
	before, failures := b.writes.Load(), 1
	b.client.PrependReactor("patch", "clusters", func(action kubetesting.Action) (bool, runtime.Object, error) {
		if action.(kubetesting.PatchAction).GetName() != "east" || failures == 0 {
			return false, nil, nil
		}
		failures--
		return true, nil, errors.New("away")
	})
	synctest.Test(t, func(t *testing.T) {
		Retract(t.Context(), b.client.ClusterregistryV1beta1().Clusters(), clock.RealClock{}) // again after the failure
	})
	for _, name := range []string{"east", "west", "north"} {
		status := statusOf(b.get(name))
		if ownEntry(status) != nil || property(status.Properties) != nil || status.Version.Kubernetes != "" || reportedOf(b.get(name)) {
			t.Errorf("%s: %+v", name, status)
		}
		for _, c := range status.Conditions {
			if c.Type != "Joined" {
				t.Errorf("%s: %+v stays", name, c)
			}
		}
	}
	if status := statusOf(b.get("east")); len(status.Reporters) != 1 || len(status.Conditions) != 1 {
		t.Errorf("what others say of east: %+v", status)
	}
	if n := b.writes.Load() - before; n != 2 {
		t.Errorf("%d writes, of two reports", n)
	}
	if n, err := retract(t.Context(), b.client.ClusterregistryV1beta1().Clusters()); n != 0 || err != nil {
		t.Errorf("%d more, %v", n, err)
	}
}
