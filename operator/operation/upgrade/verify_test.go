package upgrade

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestVerification is about what counts against a new release: what its servers
// fail to do, from when that was first seen, and nothing else.
func TestVerification(t *testing.T) {
	down, up := errors.New("clusterregistry.k8s.io/v1alpha1 is not discovered"), error(nil)
	ago := func(d time.Duration) func(h Handler) {
		return func(h Handler) {
			h.FailingSince = &metav1.Time{Time: now.Add(-d)}
			h.Notes.change(h.Registry.UID, func(n *note) { n.failing = now.Add(-d) })
		}
	}
	holds := func(condition string, v verdict.Verdict) func(*Handler) {
		return func(h *Handler) { h.Verdicts[condition] = v }
	}
	for _, test := range []struct {
		reason  string
		serves  error
		before  func(Handler)
		with    func(*Handler)
		phase   string // that follows
		failing bool   // whether it counts from now on, or goes on counting
		says    string
	}{
		{"all is well", up, nil, nil, "StorageMigration", false, ""},
		{"all is well again", up, ago(time.Hour), nil, "StorageMigration", false, ""},
		{"a node of etcd is away for an hour", up, nil, holds("EtcdReady", verdict.Waiting("MembersNotReady", "2 of 3").DegradedIf(true)), "StorageMigration", false, ""},
		{"cert-manager is away for an hour", up, nil, holds("CertificatesReady", verdict.Waiting("CertManagerNotInstalled", "").DegradedIf(true)), "StorageMigration", false, ""},
		{"etcd has lost its majority: no server can serve", down, ago(time.Hour), func(h *Handler) {
			holds("EtcdReady", verdict.Waiting("MembersNotReady", "1 of 3"))(h)
			holds("ServerReady", verdict.Waiting("ReplicasNotReady", "0 of 2"))(h)
		}, "Verification", false, "EtcdReady is not True: 1 of 3"},
		{"a server's node is away, and the others serve", up, ago(time.Hour), holds("ServerReady", verdict.Waiting("ReplicasNotReady", "1 of 2").DegradedIf(true)), "Verification", false, "ServerReady is not True"},
		{"the API is somebody else's now", up, ago(time.Hour), holds("APIServiceReady", verdict.Waiting("GroupTaken", "a CRD")), "Verification", false, "a CRD"},
		{"the API fails for the first time, an hour after the phase began, as when the operator was down", down, nil, nil, "Verification", true, "clusterregistry.k8s.io/v1alpha1 is not discovered"},
		{"no server serves for the first time", up, nil, holds("ServerReady", verdict.Waiting("ReplicasNotReady", "0 of 2")), "Verification", true, "0 of 2"},
		{"the host does not reach them for the first time", up, nil, holds("APIServiceReady", verdict.Waiting("BackendDown", "no route")), "Verification", true, "no route"},
		{"the API fails for nine minutes", down, ago(9 * time.Minute), nil, "Verification", true, "not discovered"},
		{"the API fails for eleven minutes, most of which the operator was down", down, func(h Handler) {
			h.FailingSince = &metav1.Time{Time: now.Add(-11 * time.Minute)}
		}, nil, "Verification", true, "not discovered"},
		{"the API fails for eleven minutes", down, ago(11 * time.Minute), nil, "Rollback", false, "v0.2.0 has failed verification for 10m0s"},
		{"new servers crash for eleven minutes, while one serves", up, ago(11 * time.Minute), func(h *Handler) {
			h.Servers.Failure = errors.New("pod x")
			holds("ServerReady", verdict.Waiting("ReplicasNotReady", "1 of 2").DegradedIf(true))(h)
		}, "Rollback", false, "1 of 2"},
		{"the host does not reach them for eleven minutes", up, ago(11 * time.Minute), holds("APIServiceReady", verdict.Waiting("BackendDown", "no route")), "Rollback", false, "no route"},
	} {
		h := upgrading(t, "v0.1.0", "v0.2.0", "Verification")
		h.Actions = &actions{verifies: test.serves}
		if test.before != nil {
			test.before(h)
		}
		if test.with != nil {
			test.with(&h)
		}
		driver := operation.Driver{Status: h.Operation, Recorded: h.DeepCopy(), Now: now}
		v, _ := driver.Advance(t.Context(), h)
		if v.Complete() || !strings.Contains(v.Message, test.says) || string(h.Phase) != test.phase || (h.FailingSince != nil) != test.failing {
			t.Errorf("%s: in phase %s, failing since %v: %+v", test.reason, h.Phase, h.FailingSince, v)
		}
		if seen := h.Notes.of(h.Registry.UID).failing; test.phase == "Verification" && seen.IsZero() == test.failing {
			t.Errorf("%s: the operator has seen it fail since %v", test.reason, seen)
		}
	}
}
