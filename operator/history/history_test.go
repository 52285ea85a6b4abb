package history

import (
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fleet returns a registry with a history, newest first.
func fleet(transitions ...operatorv1alpha1.Transition) *operatorv1alpha1.ClusterRegistry {
	registry := &operatorv1alpha1.ClusterRegistry{}
	registry.Generation, registry.Status.History = 7, transitions
	return registry
}

// TestHistoryIsBounded keeps the last transition that was completed, however many
// failed since.
func TestHistoryIsBounded(t *testing.T) {
	registry := fleet(operatorv1alpha1.Transition{Version: "v0.1.0", State: operatorv1alpha1.TransitionCompleted})
	for range 40 {
		Begin(registry, "v0.2.0", now)
		Complete(registry, operatorv1alpha1.TransitionRolledBack, "no image", now.Add(time.Hour))
	}
	history := registry.Status.History
	if len(history) != limit || !Installed(registry) || history[len(history)-1].Version != "v0.1.0" {
		t.Fatalf("%d transitions: %+v", len(history), history)
	}
	last := Last(registry)
	if last.Version != "v0.2.0" || last.Message != "no image" || last.Generation != 7 || !last.StartTime.Time.Equal(now) || !last.CompletionTime.Time.Equal(now.Add(time.Hour)) {
		t.Errorf("%+v", last)
	}
}

// TestMessages is about what a transition says: of an external etcd from its second
// release on, and at the end why it ended, if there is a reason.
func TestMessages(t *testing.T) {
	const external = "etcd is external: there is no snapshot of it, and its version is not changed"
	for _, test := range []struct {
		reason              string
		external, installed bool
		end, want           string
	}{
		{"there is nothing to say", false, true, "", ""},
		{"the first installation on an external etcd", true, false, "", ""},
		{"an upgrade on an external etcd", true, true, "", external},
		{"why it ended", true, true, "no image", "no image"},
	} {
		registry := fleet()
		if test.installed {
			registry = fleet(operatorv1alpha1.Transition{State: operatorv1alpha1.TransitionCompleted})
		}
		if test.external {
			registry.Spec.Etcd.External = &operatorv1alpha1.ExternalEtcd{}
		}
		Begin(registry, "v0.2.0", now)
		Complete(registry, operatorv1alpha1.TransitionCompleted, test.end, now)
		if got := Last(registry).Message; got != test.want {
			t.Errorf("%s: %q", test.reason, got)
		}
	}
}

// TestEmpty is about a registry that was created just now.
func TestEmpty(t *testing.T) {
	registry := fleet()
	if last := Last(registry); last.State != "" || Installed(registry) {
		t.Errorf("%+v", last)
	}
}
