package keychange

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/encryption/encryptiontest"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/keyring"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/version"
)

// TestRecordKeys records keys, of which the next reconcile finds the copy, without an owner
// that would take it along; and an operator that dies before the record leaves a Secret that no
// one reads.
func TestRecordKeys(t *testing.T) {
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	plain := encryption.Keys{encryption.Identity}
	s := encrypting(t, plain, encryptiontest.Key(t, "a"))
	s.Release = releases[len(releases)-1]
	s.Release.Members = version.Members{Release: s.Release.Version, Etcd: s.Release.Etcd, Helper: s.Release.Helper, Layout: s.Release.Layout}
	registry := s.Registry.DeepCopy()
	registry.ResourceVersion = ""
	s.HostCluster = operandtest.Host(t, registry)
	first := *s.Identity.Record
	s.Identity = identity.New(s.Objects)
	if err := s.Identity.Write(t.Context(), &first); err != nil {
		t.Fatal(err)
	}
	both := slices.Concat(plain, encryptiontest.Key(t, "a"))
	in := render.Input{Registry: s.Registry, Release: render.ReleaseOf(s.Release), HostVersion: "1.37", Members: s.Identity.Members(), Certified: s.Identity.Certified(), Endpoints: s.Identity.Endpoints(), Volumes: s.Volumes.Rendered(),
		Trust: s.Authorities.Rendered(), Authorities: s.Authorities.InUse(), Environment: render.Environment{Namespace: "clusterregistry-system", ClusterDomain: "cluster.local"}}
	if s.Rendered, err = render.Render(in); err != nil {
		t.Fatal(err)
	}
	record := func(keys encryption.Keys) error {
		d := s.drive()
		d.Input = in
		return d.record(t.Context(), keys)
	}
	if err := record(both); err != nil {
		t.Fatal(err)
	}
	copied := &corev1.Secret{}
	if err := s.Live.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet-encryption-" + both.Digest()}, copied); err != nil || len(copied.OwnerReferences) > 0 {
		t.Errorf("the copy: %v, owned by %v", err, copied.OwnerReferences)
	}
	again := identity.Read(t.Context(), s.Objects)
	if again.Err != nil || again.Record == nil {
		t.Fatalf("the record: %+v", again)
	}
	found := keyring.Read(t.Context(), s.Objects, again.Record)
	if !found.InUse.Equal(both) {
		t.Errorf("the next reconcile finds %v", found.InUse)
	}
	s.Identity, s.Keys = again, found
	if err := record(plain); err != nil {
		t.Fatal(err)
	}
	if last := identity.Read(t.Context(), s.Objects); last.Record.Keys != "" || !slices.Equal(last.Record.KeyIDs, []string{"identity"}) {
		t.Errorf("switched off, the record has %q, %v", last.Record.Keys, last.Record.KeyIDs)
	}
}
