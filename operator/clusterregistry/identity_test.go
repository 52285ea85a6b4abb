package clusterregistry

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// TestFirstRecord is about a registry without a record: only where there never
// was data may etcd form anew.
func TestFirstRecord(t *testing.T) {
	claim := func(of string) client.Object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-" + of + "-etcd-0", Labels: map[string]string{operatorv1alpha1.LabelInstance: of}}}
	}
	const known = "{etcd: {clusterID: c, members: [{name: fleet-etcd-0, id: m0}, {name: fleet-etcd-1}]}}"
	for reason, test := range map[string]struct {
		status      string
		claims      []client.Object
		state, id   string
		memberCount int
	}{
		"there never was anything":             {"{}", nil, contract.StateNew, "", 0},
		"another registry's volumes":           {"{}", []client.Object{claim("other")}, contract.StateNew, "", 0},
		"volumes without a record have data":   {"{}", []client.Object{claim("fleet")}, contract.StateExisting, "", 0},
		"the record was lost, but not status":  {known, nil, contract.StateExisting, "c", 1},
		"the record was lost, and volumes are": {known, []client.Object{claim("fleet")}, contract.StateExisting, "c", 1},
	} {
		s := look(t, "{spec: {etcd: {replicas: 3}}, status: "+test.status+"}")
		s.trust.Etcd = []byte("CA")
		var err error
		if s.volumes, err = reading(t, test.claims...).readVolumes(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		id := s.firstRecord()
		if id.InitialClusterState != test.state || id.ClusterID != test.id || len(id.Members) != test.memberCount || id.Replicas != 3 || id.CA != trust.KeyFingerprint([]byte("CA")) {
			t.Errorf("%s: %+v", reason, id)
		}
	}
}

func TestIdentityProblem(t *testing.T) {
	for reason, test := range map[string]struct {
		replicas int32
		ca, want string
	}{
		"as it was recorded": {3, "CA", ""},
		"another CA":         {3, "another", operatorv1alpha1.ReasonIdentityMismatch},
		"other replicas":     {1, "CA", operatorv1alpha1.ReasonReplicasDiffer},
		"nothing is right":   {5, "", operatorv1alpha1.ReasonReplicasDiffer},
	} {
		s := look(t, "{spec: {etcd: {replicas: 3}}}")
		s.registry.Spec.Etcd.Replicas, s.trust.Etcd = test.replicas, []byte(test.ca)
		s.identity = &etcd.Record{Replicas: 3, CA: trust.KeyFingerprint([]byte("CA"))}
		v := s.identityProblem()
		if (v.Complete()) != (test.want == "") || !v.Complete() && (v.Reason != test.want || v.State != verdict.ReadOnly) {
			t.Errorf("%s: %+v", reason, v)
		}
	}
}

// TestReadIdentity tells a record that is damaged from one that is not there: without
// one, etcd would be taken for new.
func TestReadIdentity(t *testing.T) {
	s := look(t, "{spec: {etcd: {replicas: 3}}}")
	record := &corev1.ConfigMap{ObjectMeta: s.recordMeta(), Data: map[string]string{contract.RecordState: contract.StateExisting, contract.RecordCluster: "c", "replicas": "3"}}
	id, unmarked, err := reading(t, record).readIdentity(t.Context(), s)
	if err != nil || unmarked || id.InitialClusterState != contract.StateExisting || id.ClusterID != "c" || id.Replicas != 3 {
		t.Errorf("%+v, unmarked %t, %v", id, unmarked, err)
	}
	record.Data["replicas"] = ""
	if id, _, err := reading(t, record).readIdentity(t.Context(), s); err == nil || id != nil || !strings.Contains(err.Error(), "ConfigMap fleet-etcd-identity, the record of etcd's identity, is damaged: replicas is") {
		t.Errorf("a record without a number of members: %+v, %v", id, err)
	}
	if id, _, err := reading(t).readIdentity(t.Context(), s); id != nil || err != nil {
		t.Errorf("no record: %+v, %v", id, err)
	}
}

// TestRecordUnmarked takes labels and the annotation from a record: they are
// restored with nothing else changed, unless the pass is read-only.
func TestRecordUnmarked(t *testing.T) {
	for reason, spoil := range map[string]string{
		"the labels are removed":      `{"metadata":{"labels":null}}`,
		"one is changed":              `{"metadata":{"labels":{"app.kubernetes.io/component":"another"}}}`,
		"the annotation is removed":   `{"metadata":{"annotations":null}}`,
		"one that a person has added": `{"metadata":{"labels":{"team":"network"}}}`,
	} {
		s := look(t, "{spec: {version: v0.4.0, mode: Aggregated, etcd: {replicas: 3}}, status: {inventory: [{kind: ConfigMap, namespace: team, name: fleet-etcd-identity}]}}")
		r := reading(t)
		r.Applier = apply.New(r.Client, r.Live)
		if err := r.writeIdentity(t.Context(), s, &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: 3, CA: "f", Identity: etcd.Identity{ClusterID: "c", Members: map[string]string{"fleet-etcd-0": "1"}}}); err != nil {
			t.Fatal(err)
		}
		stored := func() *corev1.ConfigMap {
			record := &corev1.ConfigMap{}
			if err := r.Client.Get(t.Context(), s.key(contract.IdentitySuffix), record); err != nil {
				t.Fatal(err)
			}
			return record
		}
		before := stored()
		if err := r.Client.Patch(t.Context(), before.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(spoil))); err != nil {
			t.Fatal(err)
		}
		for _, frozen := range []bool{true, false} {
			var err error
			if s.identity, s.unmarked, err = r.readIdentity(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			s.readOnly = frozen
			if err := r.ownRecord(t.Context(), s); err != nil {
				t.Errorf("%s, frozen %t: %v", reason, frozen, err)
			}
		}
		after := stored()
		if !maps.Equal(after.Data, before.Data) || !marked(after, s) || s.unmarked {
			t.Errorf("%s: the record is %v, with labels %v and annotations %v", reason, after.Data, after.Labels, after.Annotations)
		}
	}
}

// TestLearnMembers is about the release that etcd's members are of: it is what
// has run, and not what was merely tried.
func TestLearnMembers(t *testing.T) {
	for _, test := range []struct {
		reason  string
		current []string
		answers []etcd.Member
		want    string
	}{
		{"no pod is of the new release yet", nil, []etcd.Member{{Name: "fleet-etcd-0", ID: "1"}}, "v0.3.0"},
		{"the first one that is does not start", []string{"fleet-etcd-1"}, []etcd.Member{{Name: "fleet-etcd-0", ID: "1"}, {Name: "fleet-etcd-1"}}, "v0.3.0"},
		{"it has started", []string{"fleet-etcd-1"}, []etcd.Member{{Name: "fleet-etcd-0", ID: "1"}, {Name: "fleet-etcd-1", ID: "2"}}, "v0.4.0"},
	} {
		s := look(t, "{spec: {version: v0.4.0, mode: Aggregated, etcd: {replicas: 3}}, status: {inventory: [{kind: ConfigMap, namespace: team, name: fleet-etcd-identity}]}}")
		r := reading(t)
		r.Applier = apply.New(r.Client, r.Live)
		if err := r.writeIdentity(t.Context(), s, &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: 3, EtcdRelease: "v0.3.0", Identity: etcd.Identity{ClusterID: "c"}}); err != nil {
			t.Fatal(err)
		}
		s.release.Members = version.Members{Release: "v0.4.0"}
		s.etcdState.Members = test.answers
		learned, err := r.learn(t.Context(), s, test.current)
		if err != nil || learned != (test.want == "v0.4.0") {
			t.Errorf("%s: learned %v, %v", test.reason, learned, err)
		}
		// The next operator reads it, and so does the next registry of this name.
		if id, _, err := r.readIdentity(t.Context(), s); err != nil || id.EtcdRelease != test.want {
			t.Errorf("%s: recorded is %+v, %v", test.reason, id, err)
		}
	}
}

// TestLearnJoined is about a member that a person added again, and wrote so into
// the record: as soon as it serves, the record no longer lets it start empty, and
// stays so. Another one can join after that.
func TestLearnJoined(t *testing.T) {
	s := look(t, "{spec: {version: v0.4.0, mode: Aggregated, etcd: {replicas: 3}}, status: {inventory: [{kind: ConfigMap, namespace: team, name: fleet-etcd-identity}]}}")
	r := reading(t)
	r.Applier = apply.New(r.Client, r.Live)
	ids := etcd.Identity{ClusterID: "c", Members: map[string]string{"fleet-etcd-0": "1", "fleet-etcd-1": "2"}}
	if err := r.writeIdentity(t.Context(), s, &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: 3, Identity: ids}); err != nil {
		t.Fatal(err)
	}
	person := func(joining string) {
		t.Helper()
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd-identity"}}
		if err := r.Client.Patch(t.Context(), record, client.RawPatch(types.MergePatchType, []byte(`{"data":{"joining":"`+joining+`"}}`))); err != nil {
			t.Fatal(err)
		}
	}
	look := func(reason string, list []etcd.Listed, version, want string) {
		t.Helper()
		var err error
		if s.identity, s.unmarked, err = r.readIdentity(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		s.etcdState = etcd.State{Members: []etcd.Member{{Name: "fleet-etcd-0", ID: "1", ClusterID: "c"}, {Name: "fleet-etcd-1", ID: "2", ClusterID: "c"}}, List: list}
		s.registry.Status.Etcd.Members = []operatorv1alpha1.EtcdMember{{Name: "fleet-etcd-0", Version: version}}
		if _, err := r.learn(t.Context(), s, nil); err != nil {
			t.Fatal(err)
		}
		if id, _, err := r.readIdentity(t.Context(), s); err != nil || id.Joining != want || id.EtcdVersion != version || len(id.Members) != 2 {
			t.Errorf("%s: recorded is %+v, %v", reason, id, err)
		}
	}
	voters := []etcd.Listed{{ID: "1", Name: "fleet-etcd-0"}, {ID: "2", Name: "fleet-etcd-1"}}
	person("fleet-etcd-1")
	look("a learner, while something else is recorded", []etcd.Listed{voters[0], {ID: "2", Name: "fleet-etcd-1", Learner: true}}, "v3.7.1", "fleet-etcd-1")
	look("promoted", voters, "v3.7.1", "")
	look("and after that", voters, "v3.7.2", "")
	person("fleet-etcd-0")
	look("the next one", voters[1:], "v3.7.3", "fleet-etcd-0")
	look("and it has joined", voters, "v3.7.3", "")
}

// TestMemberNames goes by the record and by the spec: certificates are issued before it is
// found that the two differ, and must not lack a member that runs.
func TestMemberNames(t *testing.T) {
	s := look(t, "{spec: {etcd: {replicas: 3}}}")
	for _, test := range []struct {
		reason string
		record *etcd.Record
		want   []string
	}{
		{"there is no record yet", nil, []string{"fleet-etcd-0", "fleet-etcd-1", "fleet-etcd-2"}},
		{"three are recorded", &etcd.Record{Replicas: 3}, []string{"fleet-etcd-0", "fleet-etcd-1", "fleet-etcd-2"}},
		{"a person wrote another number into the record", &etcd.Record{Replicas: 1}, []string{"fleet-etcd-0", "fleet-etcd-1", "fleet-etcd-2"}},
		{"retained data has more", &etcd.Record{Replicas: 4}, []string{"fleet-etcd-0", "fleet-etcd-1", "fleet-etcd-2", "fleet-etcd-3"}},
	} {
		if got := memberNames(s.registry, test.record); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}
