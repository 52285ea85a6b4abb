package available

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/verdict"
)

// leading returns the APIService of v1alpha1 of a registry, which the host calls
// available or not.
func leading(registry string, status apiregistrationv1.ConditionStatus) *apiregistrationv1.APIService {
	service := operandtest.APIService(registry, nil)
	service.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: status, LastTransitionTime: metav1.Now(), Message: "no route"}}
	return service
}

// checkOf returns the check of a registry whose release serves v1alpha1.
func checkOf(o *operand.Objects, host *rest.Config) *Check {
	return &Check{Access: servers.Access{Objects: o, Host: host}, Outages: &Outages{}, Versions: []string{"v1alpha1"}, Known: []string{"v1alpha1", "v1beta1"}}
}

// TestAvailable is about whether clients are served: what a read says, and how long a
// failing one is not believed.
func TestAvailable(t *testing.T) {
	const (
		fresh     = "{version: v0.1.0}"
		installed = "{version: v0.1.0" + operandtest.Complete + "}"
		now       = 0 * time.Second
		backstop  = verdict.Backstop
	)
	// How far the stages have got. The last one has read through the host when it is done.
	type stages struct {
		awaits   string
		verified bool
	}
	done, degraded, blocked := stages{verified: true}, stages{}, stages{awaits: "EtcdReady"}
	ours, others, unreached := leading("fleet", "True"), leading("other", "True"), leading("fleet", "False")
	for _, test := range []struct {
		reason, status string
		was            string // the condition before, as status and message
		failing        time.Duration
		got            stages
		serves         bool
		service        client.Object
		answering      int // -1 when servers were not asked
		want           string
		after          time.Duration
	}{
		{"an installation has not come this far", fresh, "", now, blocked, true, ours, -1, "Unknown Waiting: Waiting for EtcdReady", 0},
		{"an installation is complete", fresh, "", now, done, false, nil, 2, "True Available: clients are served in the host", 0},
		{"it serves with one server of two, before it is complete", fresh, "", now, degraded, true, ours, 1, "True Available", 0},
		{"its first read fails", fresh, "", now, degraded, false, ours, 1, "Unknown Waiting: no read has succeeded yet", backstop},
		{"all is well", installed, "True", now, done, false, nil, 2, "True Available", 0},
		{"every part has a problem that clients do not notice", installed, "True", now, blocked, true, ours, 1, "True Available", 0},
		{"nothing could be rendered", installed, "True", now, stages{awaits: "VersionSupported"}, true, ours, -1, "True Available", 0},
		{"one read fails", installed, "True: as before", now, degraded, false, ours, 1, "True Available: as before", verdict.Soon},
		{"reads fail for a while", installed, "True: as before", 59 * time.Second, degraded, false, ours, 1, "True Available: as before", verdict.Soon},
		{"reads fail for too long", installed, "True", 61 * time.Second, degraded, false, ours, 1, "False NotAvailable: clients are not served, although 1 of 2 servers answer the operator: clusters can't be listed", backstop},
		{"no server answers once", installed, "True: as before", now, blocked, false, ours, 0, "True Available: as before", verdict.Soon},
		{"no server answers another operator either", installed, "False", now, blocked, false, ours, 0, "False NotAvailable: no server answers, and clients are not served", backstop},
		{"no server answers", installed, "True", verdict.Soon, blocked, false, ours, 0, "False NotAvailable: no server answers, and clients are not served: clusters can't be listed", backstop},
		{"no server answers the operator, but the host does", installed, "True", now, blocked, true, ours, 0, "True Available", 0},
		{"servers were not asked, since an earlier part failed", installed, "True", now, blocked, false, ours, -1, "True Available", verdict.Soon},
		{"they were not for too long", installed, "True", time.Hour, blocked, false, ours, -1, "False NotAvailable: clients are not served: clusters can't be listed", backstop},
		{"it stays away", installed, "False", now, blocked, false, ours, 1, "False NotAvailable", backstop},
		{"it is back", installed, "False", time.Hour, blocked, true, ours, 1, "True Available", 0},
		{"it was complete, and the condition is lost", installed, "", now, degraded, false, ours, 1, "Unknown Waiting", backstop},
		{"it was complete, the condition is lost, and reads fail for too long", installed, "", time.Hour, degraded, false, ours, 1, "False NotAvailable: clients are not served, although 1 of 2 servers answer the operator: clusters can't be listed", backstop},
		{"an installation is not complete for long", fresh, "", time.Hour, degraded, false, ours, 1, "Unknown Waiting: no read has succeeded yet", backstop},
		{"the APIService is gone", installed, "True", time.Hour, blocked, true, nil, 2, "False NotAvailable: clients are not served, although 2 of 2 servers answer the operator: APIService v1alpha1.clusterregistry.k8s.io does not exist", backstop},
		{"the API is someone else's", installed, "True", time.Hour, blocked, true, others, 2, "False NotAvailable: clients are not served, although 2 of 2 servers answer the operator: APIService v1alpha1.clusterregistry.k8s.io does not belong", backstop},
		{"the host does not reach it", installed, "True", time.Hour, blocked, true, unreached, 2, "False NotAvailable: clients are not served, although 2 of 2 servers answer the operator: kube-apiserver does not reach", backstop},
	} {
		var objects []client.Object
		if test.service != nil {
			objects = append(objects, test.service.DeepCopyObject().(client.Object))
		}
		s := checkOf(operandtest.New(t, "{spec: {mode: Aggregated, etcd: {replicas: 3}}, status: "+test.status+"}", objects...), operandtest.Serving(t, test.serves))
		if status, message, _ := strings.Cut(test.was, ": "); status != "" {
			reason := map[string]string{"True": "Available", "False": "NotAvailable"}[status]
			s.Before.Conditions = []metav1.Condition{Condition(metav1.ConditionStatus(status), reason, message)}
		}
		s.Awaits, s.Verified = test.got.awaits, test.got.verified
		if test.answering >= 0 {
			s.Servers = pass.Servers{Asked: true, Answering: test.answering}
		}
		key := client.ObjectKeyFromObject(s.Registry)
		if test.failing > 0 {
			s.Outages.begin(key, s.Now.Add(-test.failing))
		}
		got := s.Run(t.Context())
		c := got.Condition
		if text := string(c.Status) + " " + c.Reason + ": " + c.Message; c.Type != "Available" || !strings.HasPrefix(text, test.want) || got.After != test.after {
			t.Errorf("%s: %q after %s", test.reason, text, got.After)
		}
		if strings.HasPrefix(test.want, "True Available: as before") && c.Message != "as before" {
			t.Errorf("%s: the status would be written: %q", test.reason, c.Message)
		}
		if _, failing := s.Outages.since[key]; failing != (test.after > 0) {
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
		ca, pair := operandtest.KeyPair(t)
		s := checkOf(operandtest.New(t, "{spec: {mode: Independent, etcd: {replicas: 3}}, status: {version: v0.1.0"+operandtest.Complete+"}}"), operandtest.Serving(t, true))
		s.Before.Conditions = []metav1.Condition{Condition("True", "Available", "as before")}
		s.Servers.Asked = true
		if failing > 0 {
			s.Outages.begin(client.ObjectKeyFromObject(s.Registry), s.Now.Add(-failing))
		}
		c := s.Run(t.Context()).Condition
		if string(c.Status)+" "+c.Reason+": "+c.Message != want {
			t.Errorf("after %s it is %+v", failing, c)
		}
		if c.Status == metav1.ConditionTrue {
			continue
		}
		// It can be asked again, and does not answer.
		s.HostCluster = operandtest.Host(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-admin"}, Data: pair})
		s.Serving, s.Outages = ca, &Outages{}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		s.Outages.begin(client.ObjectKeyFromObject(s.Registry), s.Now.Add(-failing))
		s.Before.Conditions, s.Servers.Answering = []metav1.Condition{c}, 2
		if c := s.Run(gone).Condition; c.Status != metav1.ConditionFalse || c.Reason != "NotAvailable" {
			t.Errorf("asked again it is %+v", c)
		}
	}
}

// TestUnknownRelease is about servers that are not of any release that the operator knows:
// one version of the API that could be theirs is enough.
func TestUnknownRelease(t *testing.T) {
	for _, known := range [][]string{{"v1alpha1", "v1beta1"}, {"v1beta1", "v1alpha1"}} {
		for _, serves := range []bool{true, false} {
			s := checkOf(operandtest.New(t, "{spec: {mode: Aggregated}, status: {version: v9.0.0}}", leading("fleet", "True")), operandtest.Serving(t, serves))
			s.Versions, s.Known = nil, known
			// The host has an APIService for one version of those that could be.
			if err := s.read(t.Context()); (err == nil) != serves {
				t.Errorf("it serves: %t: %v", serves, err)
			}
		}
	}
}
