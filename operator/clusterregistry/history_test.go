package clusterregistry

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestDataTakenOver has a registry find the record of etcd that an earlier one of its name has
// left: the entry of its installation says so and an event does, once. A record of its own, and
// one that is found when the registry was complete already, are nothing to tell.
func TestDataTakenOver(t *testing.T) {
	created := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		reason, status string
		record         time.Duration // when it was made, from the creation of the registry on
		want           bool
	}{
		{"an earlier registry has left it", "{}", -time.Hour, true},
		{"it is this registry's own", "{}", 0, false},
		{"it was made again later", "{}", time.Hour, false},
		{"the registry was complete before", "{version: v0.1.0" + operandtest.Complete + "}", -time.Hour, false},
	} {
		s := look(t, "{spec: {mode: Aggregated, etcd: {replicas: 1}}, status: "+test.status+"}")
		s.Registry.CreationTimestamp = metav1.NewTime(created)
		s.HostCluster = operandtest.Host(t, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd-identity", CreationTimestamp: metav1.NewTime(created.Add(test.record))},
			Data:       map[string]string{"initial-cluster-state": "existing", "cluster-id": "c", "replicas": "1"},
		})
		if s.Identity = identity.Read(t.Context(), s.Objects); s.Identity.Err != nil {
			t.Fatal(s.Identity.Err)
		}
		for range 2 {
			s.advanceHistory(nil)
		}
		told := len(s.Events.(*events.FakeRecorder).Events)
		message := history.Last(s.Registry).Message
		if !test.want && (told > 0 || message != "") || test.want && told != 1 {
			t.Errorf("%s: %d events, and %q", test.reason, told, message)
		}
		if told == 0 {
			continue
		}
		event := <-s.Events.(*events.FakeRecorder).Events
		for _, word := range []string{"Normal DataTakenOver", "an earlier ClusterRegistry of this name", "2030-01-02T02:04:05Z", "deletionPolicy"} {
			if !strings.Contains(event, word) {
				t.Errorf("%s: the event does not say %q: %s", test.reason, word, event)
			}
		}
		history.Complete(s.Registry, operatorv1alpha1.TransitionCompleted, "", s.Now)
		if message = history.Last(s.Registry).Message; !strings.Contains(message, "an earlier ClusterRegistry of this name") || !strings.Contains(message, "2030-01-02T02:04:05Z") {
			t.Errorf("%s: the entry says %q", test.reason, message)
		}
	}
}
