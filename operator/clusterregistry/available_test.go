package clusterregistry

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
)

// leading returns the APIService of v1alpha1 of a registry, which the host calls
// available or not.
func leading(registry string, status apiregistrationv1.ConditionStatus) *apiregistrationv1.APIService {
	service := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.clusterregistry.k8s.io", Labels: map[string]string{
		operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: registry}}}
	service.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: status, LastTransitionTime: *timeAt(time.Now()), Message: "no route"}}
	return service
}

// TestAvailable is about whether clients are served: what a read says, and how long a
// failing one is not believed.
func TestAvailable(t *testing.T) {
	const (
		fresh     = "{version: v0.1.0}"
		installed = "{version: v0.1.0" + complete + "}"
		now       = 0 * time.Second
	)
	blocked, degraded := verdict.Waiting("R", "m"), verdict.Waiting("R", "m").DegradedIf(true)
	all := func(v verdict.Verdict) map[string]verdict.Verdict {
		return map[string]verdict.Verdict{"VersionSupported": done, "CertificatesReady": done, "EtcdReady": v, "ServerReady": v, "APIServiceReady": v}
	}
	ours, others, unreached := leading("fleet", "True"), leading("other", "True"), leading("fleet", "False")
	for _, test := range []struct {
		reason, status string
		was            string // the condition before, as status and message
		failing        time.Duration
		results        map[string]verdict.Verdict
		serves         bool
		service        client.Object
		answering      int // -1 when servers were not asked
		want           string
		after          time.Duration
	}{
		{"an installation has not come this far", fresh, "", now, map[string]verdict.Verdict{"VersionSupported": done, "CertificatesReady": done, "EtcdReady": blocked}, true, ours, -1, "Unknown Waiting: Waiting for EtcdReady", 0},
		{"an installation is complete", fresh, "", now, all(done), false, nil, 2, "True Available: clients are served in the host", 0},
		{"it serves with one server of two, before it is complete", fresh, "", now, all(degraded), true, ours, 1, "True Available", 0},
		{"its first read fails", fresh, "", now, all(degraded), false, ours, 1, "Unknown Waiting: no read has succeeded yet", backstop},
		{"all is well", installed, "True", now, all(done), false, nil, 2, "True Available", 0},
		{"every part has a problem that clients do not notice", installed, "True", now, all(blocked), true, ours, 1, "True Available", 0},
		{"nothing could be rendered", installed, "True", now, map[string]verdict.Verdict{"VersionSupported": blocked}, true, ours, -1, "True Available", 0},
		{"one read fails", installed, "True: as before", now, all(degraded), false, ours, 1, "True Available: as before", verdict.Soon},
		{"reads fail for a while", installed, "True: as before", 59 * time.Second, all(degraded), false, ours, 1, "True Available: as before", verdict.Soon},
		{"reads fail for too long", installed, "True", 61 * time.Second, all(degraded), false, ours, 1, "False NotAvailable: clients are not served, although 1 servers answer the operator: clusters can't be listed", backstop},
		{"no server answers", installed, "True", now, all(blocked), false, ours, 0, "False NotAvailable: no server answers, and clients are not served: clusters can't be listed", backstop},
		{"no server answers the operator, but the host does", installed, "True", now, all(blocked), true, ours, 0, "True Available", 0},
		{"servers were not asked, since an earlier part failed", installed, "True", now, all(blocked), false, ours, -1, "True Available", verdict.Soon},
		{"they were not for too long", installed, "True", time.Hour, all(blocked), false, ours, -1, "False NotAvailable: clients are not served: clusters can't be listed", backstop},
		{"it stays away", installed, "False", now, all(blocked), false, ours, 1, "False NotAvailable", backstop},
		{"it is back", installed, "False", time.Hour, all(blocked), true, ours, 1, "True Available", 0},
		{"an earlier operator has never asked", installed, "", now, all(degraded), false, ours, 1, "Unknown Waiting", backstop},
		{"an earlier operator has never asked, and reads fail for too long", installed, "", time.Hour, all(degraded), false, ours, 1, "False NotAvailable: clients are not served, although 1 servers answer the operator: clusters can't be listed", backstop},
		{"an installation is not complete for long", fresh, "", time.Hour, all(degraded), false, ours, 1, "Unknown Waiting: no read has succeeded yet", backstop},
		{"the APIService is gone", installed, "True", time.Hour, all(blocked), true, nil, 2, "False NotAvailable: clients are not served, although 2 servers answer the operator: APIService v1alpha1.clusterregistry.k8s.io does not exist", backstop},
		{"the API is someone else's", installed, "True", time.Hour, all(blocked), true, others, 2, "False NotAvailable: clients are not served, although 2 servers answer the operator: APIService v1alpha1.clusterregistry.k8s.io does not belong", backstop},
		{"the host does not reach it", installed, "True", time.Hour, all(blocked), true, unreached, 2, "False NotAvailable: clients are not served, although 2 servers answer the operator: kube-apiserver does not reach", backstop},
	} {
		s := look(t, "{spec: {mode: Aggregated, etcd: {replicas: 3}}, status: "+test.status+"}")
		if status, message, _ := strings.Cut(test.was, ": "); status != "" {
			reason := map[string]string{"True": "Available", "False": "NotAvailable"}[status]
			s.before.Conditions = []metav1.Condition{isAvailable(metav1.ConditionStatus(status), reason, message)}
		}
		s.results = test.results
		if test.answering >= 0 {
			s.answering, s.serversAsked = test.answering, true
		}
		var objects []client.Object
		if test.service != nil {
			objects = append(objects, test.service.DeepCopyObject().(client.Object))
		}
		r := reading(t, objects...)
		r.Host = hostWith(t, test.serves)
		key := client.ObjectKeyFromObject(s.registry)
		if test.failing > 0 {
			r.outages.begin(key, s.now.Add(-test.failing))
		}
		got := r.available(t.Context(), s)
		c := got.condition
		if text := string(c.Status) + " " + c.Reason + ": " + c.Message; c.Type != "Available" || !strings.HasPrefix(text, test.want) || got.after != test.after {
			t.Errorf("%s: %q after %s", test.reason, text, got.after)
		}
		if strings.HasPrefix(test.want, "True Available: as before") && c.Message != "as before" {
			t.Errorf("%s: the status would be written: %q", test.reason, c.Message)
		}
		if _, failing := r.outages.since[key]; failing != (test.after > 0) {
			t.Errorf("%s: it is remembered that it fails: %t", test.reason, failing)
		}
	}
}

// TestNotAsked has no certificate to ask an independent registry with: that is no
// failure of its servers, which may not answer strangers.
func TestNotAsked(t *testing.T) {
	for failing, want := range map[time.Duration]string{
		0:               "True Available: as before",
		2 * time.Minute: "Unknown SecretInvalid: it can't be verified whether clients are served: there is no Secret fleet-admin with the administrator's certificate",
	} {
		s := look(t, "{spec: {mode: Independent, etcd: {replicas: 3}}, status: {version: v0.1.0"+complete+"}}")
		s.before.Conditions = []metav1.Condition{isAvailable("True", "Available", "as before")}
		s.serversAsked = true
		r := reading(t)
		if failing > 0 {
			r.outages.begin(client.ObjectKeyFromObject(s.registry), s.now.Add(-failing))
		}
		c := r.available(t.Context(), s).condition
		if string(c.Status)+" "+c.Reason+": "+c.Message != want {
			t.Errorf("after %s it is %+v", failing, c)
		}
		if c.Status == metav1.ConditionTrue {
			continue
		}
		// It can be asked again, and does not answer.
		ca, pair := keyPair(t)
		r = reading(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-admin"}, Data: pair})
		s.trust.Serving = ca
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		r.outages.begin(client.ObjectKeyFromObject(s.registry), s.now.Add(-failing))
		r.Host, s.before.Conditions, s.answering = hostWith(t, true), []metav1.Condition{c}, 2
		if c := r.available(gone, s).condition; c.Status != metav1.ConditionFalse || c.Reason != "NotAvailable" {
			t.Errorf("asked again it is %+v", c)
		}
	}
}

// TestReliable is about the versions that must be served: those that a client of
// before and after an upgrade uses alike.
func TestReliable(t *testing.T) {
	s := upgrading(t, "v0.1.0", "v0.2.0", "Verification", "")
	if v := s.plan(released); !v.Complete() {
		t.Fatal(v)
	}
	if got := strings.Join(s.reliable(released), " "); got != "v1alpha1" {
		t.Errorf("in the upgrade that brings v1beta1 they are %s", got)
	}
	s = look(t, "{spec: {mode: Aggregated}, status: {version: v0.2.0}}")
	s.release.Serves = nil
	if got := strings.Join(s.reliable(released), " "); got != "v1alpha1 v1beta1" {
		t.Errorf("where nothing is planned they are %s", got)
	}
	s.registry.Status.Operation = &operatorv1alpha1.Operation{From: "v0.2.0", To: "v9.0.0"}
	if got := s.reliable(released); len(got) > 0 {
		t.Errorf("in an upgrade that is not known they are %s", got)
	}
	s.registry.Status.Operation, s.registry.Status.Version = nil, "v9.0.0"
	if got := s.reliable(released); len(got) > 0 {
		t.Errorf("where the release is not known they are %s", got)
	}
	for _, serves := range []bool{true, false} {
		r := reading(t, leading("fleet", "True"))
		r.Host = hostWith(t, serves)
		// The host has an APIService for one version of those that could be.
		if err := r.read(t.Context(), s); (err == nil) != serves {
			t.Errorf("where the release is not known, and it serves: %t: %v", serves, err)
		}
	}
}

// TestAvailableReported is about the sum, and what is told.
func TestAvailableReported(t *testing.T) {
	s := look(t, "{spec: {mode: Aggregated}, status: {"+complete[2:]+"}}")
	for _, kind := range s.parts() {
		s.record(kind, done)
	}
	s.available = availability{isAvailable("False", "NotAvailable", "no server answers"), verdict.Soon}
	conditions := s.conditions()
	if c := meta.FindStatusCondition(conditions, "Ready"); c.Status != "False" || c.Reason != "NotAvailable" || c.Message != "Available: no server answers" {
		t.Errorf("Ready is %+v", c)
	}
	if c := conditions[len(conditions)-2]; c.Type != "Available" {
		t.Errorf("before Ready comes %s", c.Type)
	}
	if after, err := s.next(); after != verdict.Soon || err != nil {
		t.Errorf("it is asked again in %s, %v", after, err)
	}
	s.registry.DeletionTimestamp = timeAt(s.now)
	if c := s.availableCondition(); c.Status != "False" || c.Reason != "Deleting" || telling(&metav1.Condition{Type: "Available", Status: "True"}, c) {
		t.Errorf("in a deletion it is %+v", c)
	}
	for _, test := range []struct {
		old, now string
		want     bool
	}{{"", "Unknown", false}, {"Unknown", "True", true}, {"True", "True", false}, {"True", "False", true}, {"False", "False", false}, {"False", "True", true}} {
		var old *metav1.Condition
		if test.old != "" {
			old = &metav1.Condition{Status: metav1.ConditionStatus(test.old)}
		}
		if got := telling(old, isAvailable(metav1.ConditionStatus(test.now), "R", "")); got != test.want {
			t.Errorf("%q -> %q: an event: %t", test.old, test.now, got)
		}
	}
}
