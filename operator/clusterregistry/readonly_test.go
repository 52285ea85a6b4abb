package clusterregistry

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestReadOnly is about a pass that an early stage made read-only: the upgrade
// stays where it is, however complete its phase is.
func TestReadOnly(t *testing.T) {
	for _, phase := range []string{"Preflight", "Snapshot", "Etcd", "Server", "Verification", "StorageMigration", "Rollback"} {
		s := upgrading(t, "v0.2.0", "v0.3.0", phase, "")
		s.registry.Status.Version = "v0.3.0"
		if phase == "Rollback" {
			s.registry.Status.Version = "v0.2.0"
		}
		s.registry.Status.Server.UpdatedReplicas = 2
		for _, name := range []string{"fleet-etcd-0", "fleet-etcd-1", "fleet-etcd-2"} {
			s.registry.Status.Etcd.Members = append(s.registry.Status.Etcd.Members, operatorv1alpha1.EtcdMember{Name: name, Version: "v3.7.3"})
		}
		if v := s.plan(released); !v.Complete() {
			t.Fatal(v)
		}
		s.identity = &etcd.Record{Release: "v0.2.0", Identity: etcd.Identity{ClusterID: "c"}}
		s.record("CertificatesReady", verdict.Waiting("CertificateNotReady", "Secrets can't be read").AsReadOnly())
		before := *s.registry.Status.DeepCopy()
		// It has nothing to write with.
		v := reading(t).advance(t.Context(), s)
		if v.Complete() || v.Reason != phase || s.upgrade == nil || string(s.upgrade.Phase) != phase || s.upgrade.PhaseCompleted || s.identity.Release != "v0.2.0" ||
			len(s.registry.Status.History) != len(before.History) || s.registry.Status.History[0].State != before.History[0].State {
			t.Errorf("%s: it advances: %+v, %+v", phase, s.registry.Status.Operation, v)
		}
	}
}

// TestReadOnlyWrites is about what relies on what it writes: it gets an error, not
// silence.
func TestReadOnlyWrites(t *testing.T) {
	s := upgrading(t, "v0.2.0", "v0.3.0", "Snapshot", "")
	if v := s.plan(released); !v.Complete() {
		t.Fatal(v)
	}
	s.readOnly, s.identity = true, &etcd.Record{Release: "v0.2.0", Identity: etcd.Identity{ClusterID: "c"}}
	r := reading(t)
	s.rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageSnapshot: {{Object: map[string]any{"kind": "Job"}}}}
	s.registry.Status.Inventory = []operatorv1alpha1.ObjectReference{{Kind: "ConfigMap", Namespace: "team", Name: "fleet-old"}}
	for what, err := range map[string]error{
		"an identity is recorded":          r.writeIdentity(t.Context(), s, &etcd.Record{}),
		"the Job of a snapshot is removed": snapshotHost{r, s}.DeleteJob(t.Context()),
		"the Job of a snapshot is made":    snapshotHost{r, s}.Apply(t.Context(), s.rendered.Stages[render.StageSnapshot][0]),
		"the release is recorded":          upgradeActions{r, s}.RecordRelease(t.Context(), "v0.3.0"),
		"a member is replaced":             r.replace(t.Context(), s, &corev1.Pod{}),
		"objects are applied":              r.apply(t.Context(), s),
		"the Service is applied":           r.applyService(t.Context(), rendersService(s)),
		"what is not rendered is pruned":   r.prune(t.Context(), s),
	} {
		if !errors.Is(err, apply.ErrReadOnly) || unlessReadOnly(err) != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s.identity.Release != "v0.2.0" {
		t.Errorf("it goes on as if %s were recorded", s.identity.Release)
	}
	// Stages only observe.
	if _, err := r.learn(t.Context(), s, nil); err != nil {
		t.Error(err)
	}
	if err := unlessReadOnly(errors.New("no route")); err == nil {
		t.Error("an error of another kind is lost")
	}
	s.identity = nil
	if v := r.etcd(t.Context(), s); v.Complete() || v.Err != nil || s.identity != nil {
		t.Errorf("without a record: %+v", v)
	}
}

// rendersService returns a scope in which there is a Service to apply.
func rendersService(s *scope) *scope {
	service := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service"}}
	s.rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageCertificates: {service}}
	return s
}
