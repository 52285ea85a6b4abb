package clusterregistry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
)

// hostWith returns how to reach a host through which a registry serves v1alpha1
// and v1beta1, or fails.
func hostWith(t *testing.T, serves bool) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		group, resource, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/apis/"), "/clusters")
		switch {
		case !serves:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "ServiceUnavailable", "code": 503, "message": "no"}`)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"kind": "Cluster", "apiVersion": %q, "metadata": {"name": "a"}}`, group)
		case strings.HasSuffix(r.URL.Path, "/clusters"+resource) && strings.Contains(r.URL.Path, "/clusters"):
			fmt.Fprintf(w, `{"kind": "ClusterList", "apiVersion": %q, "metadata": {}, "items": []}`, group)
		default:
			fmt.Fprintf(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": %q, "resources": [{"name": "clusters", "kind": "Cluster", "verbs": ["get"]}]}`, group)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// TestVerification is about what counts against a new release: what its servers
// fail to do, from when that was first seen, and nothing else.
func TestVerification(t *testing.T) {
	const down, up = false, true
	ago := func(d time.Duration) func(s *scope, r *Reconciler) {
		return func(s *scope, r *Reconciler) {
			s.upgrade.FailingSince = &metav1.Time{Time: s.now.Add(-d)}
			r.notes.change(s.registry.UID, func(n *note) { n.failing = s.now.Add(-d) })
		}
	}
	holds := func(condition string, v verdict.Verdict) func(*scope) {
		return func(s *scope) { s.record(condition, v) }
	}
	for _, test := range []struct {
		reason  string
		serves  bool
		before  func(*scope, *Reconciler)
		with    func(*scope)
		phase   string // that follows
		failing bool   // whether it counts from now on, or goes on counting
		says    string
	}{
		{"all is well", up, nil, nil, "StorageMigration", false, ""},
		{"all is well again", up, ago(time.Hour), nil, "StorageMigration", false, ""},
		{"a node of etcd is away for an hour", up, nil, holds("EtcdReady", verdict.Waiting("MembersNotReady", "2 of 3").DegradedIf(true)), "StorageMigration", false, ""},
		{"cert-manager is away for an hour", up, nil, holds("CertificatesReady", verdict.Waiting("CertManagerNotInstalled", "").DegradedIf(true)), "StorageMigration", false, ""},
		{"etcd has lost its majority: no server can serve", down, ago(time.Hour), func(s *scope) {
			holds("EtcdReady", verdict.Waiting("MembersNotReady", "1 of 3"))(s)
			holds("ServerReady", verdict.Waiting("ReplicasNotReady", "0 of 2"))(s)
		}, "Verification", false, "EtcdReady is not True: 1 of 3"},
		{"a server's node is away, and the others serve", up, ago(time.Hour), holds("ServerReady", verdict.Waiting("ReplicasNotReady", "1 of 2").DegradedIf(true)), "Verification", false, "ServerReady is not True"},
		{"the API is somebody else's now", up, ago(time.Hour), holds("APIServiceReady", verdict.Waiting("GroupTaken", "a CRD")), "Verification", false, "a CRD"},
		{"the API fails for the first time, an hour after the phase began, as when the operator was down", down, nil, nil, "Verification", true, "clusterregistry.k8s.io/v1alpha1 is not discovered"},
		{"no server serves for the first time", up, nil, holds("ServerReady", verdict.Waiting("ReplicasNotReady", "0 of 2")), "Verification", true, "0 of 2"},
		{"the host does not reach them for the first time", up, nil, holds("APIServiceReady", verdict.Waiting("BackendDown", "no route")), "Verification", true, "no route"},
		{"the API fails for nine minutes", down, ago(9 * time.Minute), nil, "Verification", true, "not discovered"},
		{"the API fails for eleven minutes, most of which the operator was down", down, func(s *scope, _ *Reconciler) {
			s.upgrade.FailingSince = &metav1.Time{Time: s.now.Add(-11 * time.Minute)}
		}, nil, "Verification", true, "not discovered"},
		{"the API fails for eleven minutes", down, ago(11 * time.Minute), nil, "Rollback", false, "v0.2.0 does not serve as it should, for 10m0s by now"},
		{"new servers crash for eleven minutes, while one serves", up, ago(11 * time.Minute), func(s *scope) {
			s.serversFailed = "pod x"
			holds("ServerReady", verdict.Waiting("ReplicasNotReady", "1 of 2").DegradedIf(true))(s)
		}, "Rollback", false, "1 of 2"},
		{"the host does not reach them for eleven minutes", up, ago(11 * time.Minute), holds("APIServiceReady", verdict.Waiting("BackendDown", "no route")), "Rollback", false, "no route"},
	} {
		s := upgrading(t, "v0.1.0", "v0.2.0", "Verification", "")
		s.registry.Status.Operation.PhaseStartedTime = metav1.NewTime(s.now.Add(-time.Hour))
		if v := s.plan(released); !v.Complete() {
			t.Fatal(v)
		}
		r := reading(t)
		r.Host = hostWith(t, test.serves)
		if test.before != nil {
			test.before(s, r)
		}
		if test.with != nil {
			test.with(s)
		}
		v := r.advance(t.Context(), s)
		if v.Complete() || !strings.Contains(v.Message, test.says) || string(s.upgrade.Phase) != test.phase || (s.upgrade.FailingSince != nil) != test.failing {
			t.Errorf("%s: in phase %s, failing since %v: %+v", test.reason, s.upgrade.Phase, s.upgrade.FailingSince, v)
		}
		if seen := r.notes.of(s.registry.UID).failing; test.phase == "Verification" && seen.IsZero() == test.failing {
			t.Errorf("%s: the operator has seen it fail since %v", test.reason, seen)
		}
	}
}

// TestResumed is about an upgrade that was paused, for weeks perhaps.
func TestResumed(t *testing.T) {
	for phase, test := range map[string]struct {
		then string
		why  string
	}{
		"Preflight":    {"Preflight", "what was in order may not be now"},
		"Snapshot":     {"Preflight", "the snapshot lacks what was written since"},
		"Etcd":         {"Preflight", "no server was touched yet, and the snapshot is what is left when none can go back"},
		"Server":       {"Server", "servers may have failed since"},
		"Verification": {"Verification", "it may not serve any more"},
	} {
		s := upgrading(t, "v0.2.0", "v0.3.0", phase, "")
		s.registry.Status.Operation.PhaseCompleted, s.registry.Status.Operation.Snapshot = true, "old"
		s.before = *s.registry.Status.DeepCopy()
		if phase == "Etcd" {
			s.before.Etcd.Members = []operatorv1alpha1.EtcdMember{{Name: "fleet-etcd-0", Version: "v3.7.3"}}
		}
		if v := s.plan(released); !v.Complete() {
			t.Fatal(v)
		}
		s.aggregation = verdict.Waiting(operatorv1alpha1.ReasonAggregationNotAllowed, "not here")
		if v := reading(t).advance(t.Context(), s); v.Complete() || string(s.upgrade.Phase) != phase || !s.upgrade.PhaseCompleted {
			t.Errorf("%s: it goes on where nothing may be changed: %+v", phase, v)
		}
		s.aggregation = done
		v := reading(t).advance(t.Context(), s)
		if v.Complete() || string(s.upgrade.Phase) != test.then || s.upgrade.PhaseCompleted {
			t.Errorf("%s: %s: it goes on in %s (complete: %t): %+v", phase, test.why, s.upgrade.Phase, s.upgrade.PhaseCompleted, v)
		}
		if phase != "Etcd" {
			continue
		}
		// Members that run the new etcd keep it, although the upgrade begins again.
		again := upgrading(t, "v0.2.0", "v0.3.0", "Preflight", "")
		again.before.Etcd = s.before.Etcd
		if v := again.plan(released); !v.Complete() || again.release.Members.Etcd != "v3.7.3" || again.release.Members.Helper != "v0.3.0" || again.release.Version != "v0.2.0" {
			t.Errorf("it renders %+v, %+v", again.release, v)
		}
	}
}
