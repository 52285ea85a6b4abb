package simulation

import (
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/internal/contract"
)

// TestRequestsAtRest counts what one reconcile of a registry at rest asks for, which the host
// cluster pays for every registry, every two minutes and whenever something of it changes. What
// is counted is all but what comes from the operator's cache. A number that has to grow is
// changed here, with the reason in the commit.
func TestRequestsAtRest(t *testing.T) {
	always := map[string]int{
		"GET ClusterRegistry": 1, "GET Namespace": 1, "GET /version": 1, "GET ConfigMap": 2, "GET StatefulSet": 2,
		// Each of those that there are, once.
		"GET Secret": 6,
		// Of two versions of the API: what is published, and whose they are.
		"GET APIService": 4,
		// As clients use it.
		"GET /apis/clusterregistry.k8s.io/v1alpha1": 1, "GET /apis/clusterregistry.k8s.io/v1beta1": 1, "LIST Cluster": 2,
		"a server": 2,
	}
	for _, test := range []struct {
		members int64
		// claims are read twice, beside one for snapshots.
		claims, etcd int
	}{{1, 3, 2}, {3, 7, 4}} {
		want := maps.Clone(always)
		want["GET PersistentVolumeClaim"], want["a connection to etcd"] = test.claims, test.etcd
		live(t, 1, func(w *world) {
			w.installed(test.members)
			w.rests(10 * time.Minute)
			w.operator.reconcile()
			w.requests.of = nil
			w.operator.reconcile()
			if got := w.requests.of; !maps.Equal(got, want) {
				t.Errorf("%d members: it asks for\n%v, want\n%v", test.members, got, want)
			}
		})
	}
}

// fills has a person replace what is in a Secret.
func (w *world) fills(secret id, data any) {
	w.note("a person fills %s", secret)
	_, err := w.host.update(secret, func(stored *unstructured.Unstructured) error {
		stored.Object["data"] = data
		return nil
	})
	must(err)
}

// TestSecretsAreReadAgain deletes and empties the Secrets that the operator itself needs: the next
// reconcile notices it, and one after they were restored that they are back. The others are
// cert-manager's to issue again.
func TestSecretsAreReadAgain(t *testing.T) {
	live(t, 1, func(w *world) {
		w.installed(1)
		for _, suffix := range []string{contract.EtcdCASuffix, contract.EtcdClientSuffix, contract.ServingCASuffix} {
			secret := id{secretKind, key.namespace, key.name + suffix}
			for _, emptied := range []bool{true, false} {
				w.operator.reconcile()
				if !w.ready() {
					t.Fatalf("before something happens to %s: %s", secret, w.conditions())
				}
				what, before := "deleted", w.host.objects[secret]
				if emptied {
					what = "emptied"
					w.fills(secret, nil)
				} else {
					w.deletes(secret)
				}
				w.operator.reconcile()
				if w.condition("Ready").Status != metav1.ConditionFalse || !strings.Contains(w.conditions(), secret.name) {
					t.Errorf("%s is %s, and the next reconcile does not notice: %s", secret, what, w.conditions())
				}
				if now := w.host.objects[secret]; now == nil {
					w.make("v1", "Secret", secret.namespace, secret.name, map[string]any{"metadata": map[string]any{"labels": before.Object["metadata"].(map[string]any)["labels"], "annotations": before.Object["metadata"].(map[string]any)["annotations"]}, "data": before.Object["data"]})
				} else {
					w.fills(secret, before.Object["data"])
				}
				w.until("the registry is ready again", 20*time.Minute, w.ready)
			}
		}
	})
}
