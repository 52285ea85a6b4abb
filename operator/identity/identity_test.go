package identity

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// recorded is a registry in YAML whose inventory has the record already.
const recorded = "{spec: {version: v0.4.0, mode: Aggregated, etcd: {replicas: 3}}, status: {inventory: [{kind: ConfigMap, namespace: team, name: fleet-etcd-identity}]}}"

// TestRead tells a record that is damaged from one that is not there: without one, etcd
// would be taken for new.
func TestRead(t *testing.T) {
	read := func(objects ...client.Object) *Store {
		o := operandtest.New(t, "{spec: {etcd: {replicas: 3}}}", objects...)
		// What the cache does not have yet is there nevertheless.
		o.Client = operandtest.Host(t).Client
		return Read(t.Context(), o)
	}
	record := &corev1.ConfigMap{ObjectMeta: meta(operandtest.New(t, "{}")), Data: map[string]string{contract.RecordState: contract.StateExisting, contract.RecordCluster: "c", "replicas": "3"}}
	if s := read(record); s.Err != nil || s.unmarked || s.Record.InitialClusterState != contract.StateExisting || s.Record.ClusterID != "c" || s.Record.Replicas != 3 {
		t.Errorf("%+v, unmarked %t, %v", s.Record, s.unmarked, s.Err)
	}
	record.Data["replicas"], record.ResourceVersion = "", ""
	if s := read(record); s.Err == nil || s.Record != nil || !strings.Contains(s.Err.Error(), "ConfigMap fleet-etcd-identity, the record of etcd's identity, is damaged: replicas is") {
		t.Errorf("a record without a number of members: %+v, %v", s.Record, s.Err)
	}
	if s := read(); s.Record != nil || s.Err != nil {
		t.Errorf("no record: %+v, %v", s.Record, s.Err)
	}
}

// TestUnmarked takes labels and the annotation from a record: they are restored with
// nothing else changed, unless the reconcile is read-only.
func TestUnmarked(t *testing.T) {
	for reason, spoil := range map[string]string{
		"the labels are removed":      `{"metadata":{"labels":null}}`,
		"one is changed":              `{"metadata":{"labels":{"app.kubernetes.io/component":"another"}}}`,
		"the annotation is removed":   `{"metadata":{"annotations":null}}`,
		"one that a person has added": `{"metadata":{"labels":{"team":"network"}}}`,
	} {
		o := operandtest.New(t, recorded)
		if err := New(o).Write(t.Context(), &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: 3, CA: "f", Identity: etcd.Identity{ClusterID: "c", Members: map[string]string{"fleet-etcd-0": "1"}}}); err != nil {
			t.Fatal(err)
		}
		before := stored(t, o)
		if err := o.Client.Patch(t.Context(), before.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(spoil))); err != nil {
			t.Fatal(err)
		}
		spoiled := stored(t, o)
		frozen := operandtest.New(t, recorded)
		frozen.HostCluster = o.HostCluster
		frozen.Freeze("spec.paused is false")
		own(t, frozen)
		if now := stored(t, o); now.ResourceVersion != spoiled.ResourceVersion {
			t.Errorf("%s: a read-only reconcile changes the record to %+v", reason, now)
		}
		s := own(t, o)
		after := stored(t, o)
		if !maps.Equal(after.Data, before.Data) || !marked(after, meta(o)) || s.unmarked {
			t.Errorf("%s: the record is %v, with labels %v and annotations %v", reason, after.Data, after.Labels, after.Annotations)
		}
	}
}

// TestRestored is about a record that a person has created again from a backup, without its
// labels or with those of another registry: it is not written, the error says which labels
// to add, and with these it is the registry's again.
func TestRestored(t *testing.T) {
	for reason, labels := range map[string]map[string]string{
		"does not have the labels":                        nil,
		"has the labels of ClusterRegistry staging/fleet": {operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "staging", operatorv1alpha1.LabelInstance: "fleet"},
	} {
		o := operandtest.New(t, recorded)
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd-identity", Labels: labels}, Data: map[string]string{contract.RecordState: contract.StateExisting, contract.RecordCluster: "c", "replicas": "3"}}
		if err := o.Client.Create(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		s := Read(t.Context(), o)
		err := errors.Join(s.Err, s.Adopt(t.Context()))
		var expected interface{ Reason() string }
		if !errors.As(err, &expected) || expected.Reason() != operatorv1alpha1.ReasonNotOwned {
			t.Fatalf("%s: %v", reason, err)
		}
		said := err.Error()
		_, command, _ := strings.Cut(said, "configmap fleet-etcd-identity ")
		if !strings.Contains(said, reason) || !strings.Contains(said, "never delete it") || strings.Contains(said, "delete it, or") {
			t.Errorf("%s: it says %q", reason, said)
		}
		record = stored(t, o)
		record.Labels = map[string]string{}
		for _, pair := range strings.Fields(command) {
			label, value, _ := strings.Cut(pair, "=")
			record.Labels[label] = value
		}
		if err := o.Client.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		own(t, o)
		if after := stored(t, o); !marked(after, meta(o)) || after.Data[contract.RecordCluster] != "c" {
			t.Errorf("%s: after the advice was followed, the record is %v with labels %v", reason, after.Data, after.Labels)
		}
	}
}

// TestNames is about a record whose names of members a person has removed, as the message
// about wrong ones says: it gets them again before any pod is made that needs them, but not
// in a read-only reconcile.
func TestNames(t *testing.T) {
	o := operandtest.New(t, recorded)
	if err := New(o).Write(t.Context(), &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: 3, Identity: etcd.Identity{ClusterID: "c"}}); err != nil {
		t.Fatal(err)
	}
	if err := o.Client.Patch(t.Context(), stored(t, o), client.RawPatch(types.MergePatchType, []byte(`{"data":{"members":null}}`))); err != nil {
		t.Fatal(err)
	}
	frozen := operandtest.New(t, recorded)
	frozen.HostCluster = o.HostCluster
	frozen.Freeze("spec.paused is false")
	if own(t, frozen); stored(t, o).Data[contract.RecordMembers] != "" {
		t.Error("a read-only reconcile writes names")
	}
	s := own(t, o)
	const want = "fleet-etcd-0,fleet-etcd-1,fleet-etcd-2"
	if after := stored(t, o); after.Data[contract.RecordMembers] != want || after.Data[contract.RecordCluster] != "c" || len(s.Record.Names) != 3 {
		t.Errorf("the record is %v", after.Data)
	}
	before := stored(t, o)
	if own(t, o); stored(t, o).ResourceVersion != before.ResourceVersion {
		t.Error("names that are there are written again")
	}
}

// TestFirst has two operators find no record, each of which begins another restore: the first
// one's stays, and the other one reads it. What is written after it, by the first one, follows.
func TestFirst(t *testing.T) {
	o := operandtest.New(t, recorded)
	first, stale := Read(t.Context(), o), Read(t.Context(), o)
	begins := func(lineage string) *etcd.Record {
		return &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: 1, Lineage: lineage, Identity: etcd.Identity{ClusterID: lineage}}
	}
	if err := first.Write(t.Context(), begins("a")); err != nil {
		t.Fatal(err)
	}
	if err := stale.Write(t.Context(), begins("b")); !apierrors.IsAlreadyExists(err) || stale.Record != nil {
		t.Errorf("the second one: %v", err)
	}
	if again := Read(t.Context(), o); again.Err != nil || again.Record.Lineage != "a" {
		t.Errorf("recorded is %+v, %v", again.Record, again.Err)
	}
	if err := first.WriteRelease(t.Context(), "v0.4.0"); err != nil {
		t.Error(err)
	}
}

// own reads the record of a registry and owns it.
func own(t *testing.T, o *operand.Objects) *Store {
	t.Helper()
	s := Read(t.Context(), o)
	if err := errors.Join(s.Err, s.Adopt(t.Context())); err != nil {
		t.Error(err)
	}
	return s
}

// stored returns the record as the host cluster has it.
func stored(t *testing.T, o *operand.Objects) *corev1.ConfigMap {
	t.Helper()
	record := &corev1.ConfigMap{}
	if err := o.Live.Get(t.Context(), o.Key(contract.IdentitySuffix), record); err != nil {
		t.Fatal(err)
	}
	return record
}

// TestAdopt has the record of a registry that took over in the inventory.
func TestAdopt(t *testing.T) {
	o := operandtest.New(t, "{status: {inventory: [{kind: ConfigMap, namespace: team, name: fleet-trust}]}}")
	o.HostCluster = operandtest.Host(t, o.Registry.DeepCopy())
	s := New(o)
	s.Record = &etcd.Record{Names: []string{"fleet-etcd-0"}}
	want := []operatorv1alpha1.ObjectReference{{Kind: "ConfigMap", Namespace: "team", Name: "fleet-trust"}, {Kind: "ConfigMap", Namespace: "team", Name: "fleet-etcd-identity"}}
	for range 2 {
		if err := s.Adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
		written := &operatorv1alpha1.ClusterRegistry{}
		if err := o.Live.Get(t.Context(), client.ObjectKeyFromObject(o.Registry), written); err != nil {
			t.Fatal(err)
		}
		for _, inventory := range [][]operatorv1alpha1.ObjectReference{written.Status.Inventory, o.Registry.Status.Inventory} {
			if !slices.Equal(inventory, want) {
				t.Errorf("the inventory is %v", inventory)
			}
		}
	}
}

// TestMembers goes by the record. No member that there is loses its pod by what a person has
// written there, and certificates have the names of those that are asked for, too.
func TestMembers(t *testing.T) {
	s := New(operandtest.New(t, "{spec: {etcd: {replicas: 3}}}"))
	three := []string{"fleet-etcd-0", "fleet-etcd-1", "fleet-etcd-2"}
	four := append(slices.Clone(three), "fleet-etcd-3")
	for _, test := range []struct {
		reason                        string
		record                        *etcd.Record
		members, certified, endpoints []string
	}{
		{"there is no record yet", nil, three, three, three},
		{"three are recorded", &etcd.Record{Replicas: 3}, three, three, three},
		{"more are asked for", &etcd.Record{Replicas: 1, Endpoints: 1}, three[:1], three, three[:1]},
		{"one has been added, and servers do not use it yet", &etcd.Record{Replicas: 2, Endpoints: 1}, three[:2], three, three[:1]},
		{"more are being added than are asked for", &etcd.Record{Replicas: 2, Target: 4, Endpoints: 1}, three[:2], four, three[:1]},
		{"a person wrote another number into the record", &etcd.Record{Replicas: 1, Identity: etcd.Identity{Members: map[string]string{"fleet-etcd-0": "a0", "fleet-etcd-2": "a2"}}}, three, three, three[:1]},
		{"retained data has more", &etcd.Record{Replicas: 4, Endpoints: 4}, four, four, four},
	} {
		s.Record = test.record
		for what, got := range map[string][2][]string{"members": {s.Members(), test.members}, "certified": {s.Certified(), test.certified}, "endpoints": {s.Endpoints(), test.endpoints}} {
			if !slices.Equal(got[0], got[1]) {
				t.Errorf("%s: %s %q, want %q", test.reason, what, got[0], got[1])
			}
		}
	}
	external := New(operandtest.New(t, "{spec: {etcd: {external: {endpoints: ['https://a:1']}}}}"))
	if got := slices.Concat(external.Members(), external.Certified(), external.Endpoints()); got != nil {
		t.Errorf("with an external etcd: %q", got)
	}
}

// TestReadOnly is about what relies on the record that it writes: it gets an error, not
// silence, and the record stays as it was.
func TestReadOnly(t *testing.T) {
	o := operandtest.New(t, recorded)
	s := New(o)
	if err := s.Write(t.Context(), &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: 3, Release: "v0.2.0", Identity: etcd.Identity{ClusterID: "c"}}); err != nil {
		t.Fatal(err)
	}
	before := stored(t, o)
	o.Freeze("this is resolved: CertificatesReady: Secrets can't be read")
	for what, err := range map[string]error{
		"an identity is recorded": s.Write(t.Context(), &etcd.Record{}),
		"the release is recorded": s.WriteRelease(t.Context(), "v0.3.0"),
	} {
		if !errors.Is(err, apply.ErrReadOnly) || apply.IgnoreReadOnly(err) != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := stored(t, o); s.Record.Release != "v0.2.0" || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("it goes on as if %+v were recorded, and %v is", s.Record, after.Data)
	}
}

// TestWriteRelease writes a release that is another one than the recorded, and nothing
// where no etcd is recorded.
func TestWriteRelease(t *testing.T) {
	o := operandtest.New(t, recorded)
	s := New(o)
	if err := s.WriteRelease(t.Context(), "v0.3.0"); err != nil || s.Record != nil {
		t.Errorf("without a record: %+v, %v", s.Record, err)
	}
	if err := s.Write(t.Context(), &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: 3, Release: "v0.2.0", Identity: etcd.Identity{ClusterID: "c"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteRelease(t.Context(), "v0.3.0"); err != nil {
		t.Fatal(err)
	}
	if now := Read(t.Context(), o); now.Err != nil || now.Record.Release != "v0.3.0" || now.Record.ClusterID != "c" || s.Record.Release != "v0.3.0" {
		t.Errorf("%+v, %v", now.Record, now.Err)
	}
	before := stored(t, o)
	if err := s.WriteRelease(t.Context(), "v0.3.0"); err != nil || stored(t, o).ResourceVersion != before.ResourceVersion {
		t.Errorf("the recorded one is written again: %v", err)
	}
}
