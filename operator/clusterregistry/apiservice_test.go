package clusterregistry

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/clusterregistry/operator/operator/verdict"
)

func timeAt(t time.Time) *metav1.Time { return new(metav1.NewTime(t)) }

func TestAvailability(t *testing.T) {
	const complete = "{spec: {mode: Aggregated}, status: {history: [{version: v0.1.0, state: Completed, startTime: null}]}}"
	const begun = "{spec: {mode: Aggregated}, status: {history: [{version: v0.1.0, state: Progressing, startTime: null}]}}"
	for _, test := range []struct {
		what, registry string
		status         apiregistrationv1.ConditionStatus
		since          time.Duration
		// reason is empty when the host reaches the servers.
		reason string
		after  time.Duration
	}{
		{"it is reached", complete, "True", time.Hour, "", 0},
		{"the host has not looked", complete, "", 0, "NotAvailable", verdict.Soon},
		{"it went away just now", complete, "False", time.Second, "NotAvailable", backstop},
		{"soon it is too long", complete, "False", 50 * time.Second, "NotAvailable", 10 * time.Second},
		{"it is down", complete, "False", 61 * time.Second, "BackendDown", 0},
		{"unknown is down, too", complete, "Unknown", time.Hour, "BackendDown", 0},
		{"it was never up: that is an installation", begun, "False", time.Hour, "NotAvailable", verdict.Soon},
	} {
		s := look(t, test.registry)
		service := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.clusterregistry.k8s.io"}}
		if test.status != "" {
			service.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: test.status, LastTransitionTime: *timeAt(s.now.Add(-test.since)), Message: "dial: no route"}}
		}
		v := s.availability(service)
		if (v.Complete()) != (test.reason == "") {
			t.Errorf("%s: %+v", test.what, v)
			continue
		}
		if v.Complete() {
			continue
		}
		if v.Reason != test.reason || v.After.Round(time.Second) != test.after || !strings.Contains(v.Message, service.Name) || test.status != "" && !strings.Contains(v.Message, "dial: no route") {
			t.Errorf("%s: %+v", test.what, v)
		}
		if warns := strings.Contains(v.Message, "deletions of namespaces in the host cluster will hang"); warns != (test.reason == "BackendDown") {
			t.Errorf("%s: %s", test.what, v.Message)
		}
	}
}
