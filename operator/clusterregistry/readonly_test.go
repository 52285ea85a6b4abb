package clusterregistry

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
)

// TestReadOnly is about a pass that an early stage made read-only: the upgrade
// stays where it is, however complete its phase is.
func TestReadOnly(t *testing.T) {
	for _, phase := range []string{"Preflight", "Snapshot", "Etcd", "Server", "Verification", "StorageRewrite", "Return"} {
		s := upgrading(t, "v0.2.0", "v0.3.0", phase, "")
		s.registry.Status.Version = "v0.3.0"
		if phase == "Return" {
			s.registry.Status.Version = "v0.2.0"
		}
		s.registry.Status.Server.Updated = 2
		for _, name := range []string{"fleet-etcd-0", "fleet-etcd-1", "fleet-etcd-2"} {
			s.registry.Status.Etcd.Members = append(s.registry.Status.Etcd.Members, operatorv1alpha1.EtcdMember{Name: name, Version: "v3.7.3"})
		}
		if h := s.plan(released); h != nil {
			t.Fatal(h)
		}
		s.identity = &identity{release: "v0.2.0", Identity: etcd.Identity{ClusterID: "c"}}
		s.record("CertificatesReady", waitFor("CertificateNotReady", "Secrets can't be read").frozen())
		before := *s.registry.Status.DeepCopy()
		// It has nothing to write with.
		h := reading(t).advance(t.Context(), s)
		if h == nil || h.reason != phase || s.upgrade == nil || string(s.upgrade.Phase) != phase || s.upgrade.PhaseCompleted || s.identity.release != "v0.2.0" ||
			len(s.registry.Status.History) != len(before.History) || s.registry.Status.History[0].State != before.History[0].State {
			t.Errorf("%s: it advances: %+v, %+v", phase, s.registry.Status.Upgrade, h)
		}
	}
}

// TestReadOnlyWrites is about what relies on what it writes: it gets an error, not
// silence.
func TestReadOnlyWrites(t *testing.T) {
	s := upgrading(t, "v0.2.0", "v0.3.0", "Snapshot", "")
	if h := s.plan(released); h != nil {
		t.Fatal(h)
	}
	s.frozen, s.identity = true, &identity{release: "v0.2.0", Identity: etcd.Identity{ClusterID: "c"}}
	r := reading(t)
	holdErr := func(h *hold) error {
		if h == nil {
			return nil
		}
		return h.err
	}
	for what, err := range map[string]error{
		"the release is recorded":          r.recordRelease(t.Context(), s, "v0.3.0"),
		"an identity is recorded":          r.writeIdentity(t.Context(), s, &identity{}),
		"the Job of a snapshot is removed": holdErr(r.snapshotAgain(t.Context(), s, "")),
		"the Job of a snapshot is made":    holdErr(r.snapshot(t.Context(), s)),
		"the phase Server is prepared":     holdErr(r.prepare(t.Context(), s, operatorv1alpha1.PhaseServer)),
		"a member is replaced":             r.replace(t.Context(), s, &corev1.Pod{}),
	} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s.identity.release != "v0.2.0" {
		t.Errorf("it goes on as if %s were recorded", s.identity.release)
	}
	// Stages only observe.
	_, learnErr := r.learn(t.Context(), s, nil)
	if err := errors.Join(r.apply(t.Context(), s), learnErr, r.prune(t.Context(), s)); err != nil {
		t.Error(err)
	}
	s.identity = nil
	if h := r.etcd(t.Context(), s); h == nil || h.err != nil || s.identity != nil {
		t.Errorf("without a record: %+v", h)
	}
}
