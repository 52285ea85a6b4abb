package clusterregistry

import (
	"errors"
	"testing"

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
		s.Registry.Status.Version = "v0.3.0"
		if phase == "Rollback" {
			s.Registry.Status.Version = "v0.2.0"
		}
		s.Registry.Status.Server.UpdatedReplicas = 2
		for _, name := range []string{"fleet-etcd-0", "fleet-etcd-1", "fleet-etcd-2"} {
			s.Registry.Status.Etcd.Members = append(s.Registry.Status.Etcd.Members, operatorv1alpha1.EtcdMember{Name: name, Version: "v3.7.3"})
		}
		if v := s.plan(released); !v.Complete() {
			t.Fatal(v)
		}
		s.Identity.Record = &etcd.Record{Release: "v0.2.0", Identity: etcd.Identity{ClusterID: "c"}}
		s.record("CertificatesReady", verdict.Waiting("CertificateNotReady", "Secrets can't be read").AsReadOnly())
		before := *s.Registry.Status.DeepCopy()
		// It has nothing to write with.
		v := reading(t, s).advance(t.Context(), s)
		if v.Complete() || v.Reason != phase || s.upgrade == nil || string(s.upgrade.Phase) != phase || s.upgrade.PhaseCompleted || s.Identity.Record.Release != "v0.2.0" ||
			len(s.Registry.Status.History) != len(before.History) || s.Registry.Status.History[0].State != before.History[0].State {
			t.Errorf("%s: it advances: %+v, %+v", phase, s.Registry.Status.Operation, v)
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
	s.Freeze("spec.paused is false")
	s.Identity.Record = &etcd.Record{Release: "v0.2.0", Identity: etcd.Identity{ClusterID: "c"}}
	reading(t, s)
	s.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageSnapshot: {{Object: map[string]any{"kind": "Job"}}}}
	s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{{Kind: "ConfigMap", Namespace: "team", Name: "fleet-old"}}
	for what, err := range map[string]error{
		"the release is recorded":        s.Identity.WriteRelease(t.Context(), "v0.3.0"),
		"objects are applied":            s.Apply(t.Context()),
		"what is not rendered is pruned": s.Prune(t.Context()),
	} {
		if !errors.Is(err, apply.ErrReadOnly) || apply.IgnoreReadOnly(err) != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s.Identity.Record.Release != "v0.2.0" {
		t.Errorf("it goes on as if %s were recorded", s.Identity.Record.Release)
	}
	if err := apply.IgnoreReadOnly(errors.New("no route")); err == nil {
		t.Error("an error of another kind is lost")
	}
}
