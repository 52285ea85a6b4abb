package members

import (
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/volumes"
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
		s := newStage(t, "{spec: {etcd: {replicas: 3}}, status: "+test.status+"}", test.claims...)
		s.Authorities.Etcd.Current = []byte("CA")
		var err error
		if s.Volumes, err = volumes.Read(t.Context(), s.Live, s.Registry, s.Identity.Members()); err != nil {
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
		"as it was recorded":            {3, "CA", ""},
		"another CA":                    {3, "another", operatorv1alpha1.ReasonIdentityMismatch},
		"others are to be added, later": {5, "CA", ""},
		"no CA":                         {5, "", operatorv1alpha1.ReasonIdentityMismatch},
	} {
		s := newStage(t, "{spec: {etcd: {replicas: 3}}}")
		s.Registry.Spec.Etcd.Replicas, s.Authorities.Etcd.Current = test.replicas, []byte(test.ca)
		s.Identity.Record = &etcd.Record{Replicas: 3, CA: trust.KeyFingerprint([]byte("CA"))}
		v := s.identityProblem()
		if (v.Complete()) != (test.want == "") || !v.Complete() && (v.Reason != test.want || v.State != verdict.ReadOnly) {
			t.Errorf("%s: %+v", reason, v)
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
		s := newStage(t, "{spec: {version: v0.4.0, mode: Aggregated, etcd: {replicas: 3}}, status: {inventory: [{kind: ConfigMap, namespace: team, name: fleet-etcd-identity}]}}")
		if err := s.Identity.Write(t.Context(), &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: 3, EtcdRelease: "v0.3.0", Identity: etcd.Identity{ClusterID: "c"}}); err != nil {
			t.Fatal(err)
		}
		s.Release = "v0.4.0"
		s.found.State.Members = test.answers
		learned, err := s.learn(t.Context(), test.current)
		if err != nil || learned != (test.want == "v0.4.0") {
			t.Errorf("%s: learned %v, %v", test.reason, learned, err)
		}
		// The next operator reads it, and so does the next registry of this name.
		if id := identity.Read(t.Context(), s.Objects); id.Err != nil || id.Record.EtcdRelease != test.want {
			t.Errorf("%s: recorded is %+v, %v", test.reason, id.Record, id.Err)
		}
	}
}

// TestIdentityOfRotatedCA is about the keys of two CAs, of which one signs and the one before
// is still trusted: neither may become another one.
func TestIdentityOfRotatedCA(t *testing.T) {
	key := func(content string) string { return trust.KeyFingerprint([]byte(content)) }
	for _, test := range []struct {
		reason        string
		inUse         generation.InUse
		recorded      [2]string
		current, also string
		withdrawn     bool
		says          string
	}{
		{"the next one is made, and is not recorded yet", generation.InUse{Signing: 1, Also: 2}, [2]string{key("1"), ""}, "1", "2", false, ""},
		{"it signs", generation.InUse{Signing: 2, Also: 1}, [2]string{key("2"), key("1")}, "2", "1", false, ""},
		{"it signs, and was replaced", generation.InUse{Signing: 2, Also: 1}, [2]string{key("2"), key("1")}, "3", "1", false, "the CA in Secret fleet-etcd-ca-2 has a different key than the one that etcd members trust"},
		{"the previous one was replaced", generation.InUse{Signing: 2, Also: 1}, [2]string{key("2"), key("1")}, "2", "3", false, "the CA in Secret fleet-etcd-ca, which signed for etcd members before, is missing or has a different key"},
		{"the previous one is missing", generation.InUse{Signing: 2, Also: 1}, [2]string{key("2"), key("1")}, "2", "", false, "is missing"},
		{"it is being withdrawn", generation.InUse{Signing: 2, Also: 1}, [2]string{key("2"), key("1")}, "2", "", true, ""},
		{"it was dropped", generation.InUse{Signing: 2}, [2]string{key("2"), ""}, "2", "", false, ""},
	} {
		s := newStage(t, "{spec: {mode: Aggregated, etcd: {replicas: 3}}}")
		s.Identity.Record = &etcd.Record{Replicas: 3, CA: test.recorded[0], AlsoCA: test.recorded[1], Generations: test.inUse}
		s.Authorities.Etcd = trust.Authority{Source: "Secret fleet-etcd-ca-2", InUse: test.inUse, Current: []byte(test.current), Withdrawn: test.withdrawn}
		if test.also != "" {
			s.Authorities.Etcd.Also = []byte(test.also)
		}
		v := s.identityProblem()
		if v.Complete() != (test.says == "") || !strings.Contains(v.Message, test.says) || test.says != "" && (v.State != verdict.ReadOnly || v.Reason != operatorv1alpha1.ReasonIdentityMismatch) {
			t.Errorf("%s: %+v", test.reason, v)
		}
	}
}

// TestRecordReadOnly is about a reconcile that may change nothing: the stage only observes,
// and neither learns nor has a registry without a record begin one.
func TestRecordReadOnly(t *testing.T) {
	s := newStage(t, "{spec: {mode: Aggregated, etcd: {replicas: 3}}, status: {inventory: [{kind: ConfigMap, namespace: team, name: fleet-etcd-identity}]}}")
	s.Freeze("this is resolved: CertificatesReady: Secrets can't be read")
	s.Release = "v0.4.0"
	s.Identity.Record = &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: 3, Release: "v0.2.0", EtcdRelease: "v0.3.0", Identity: etcd.Identity{ClusterID: "c"}}
	before := *s.Identity.Record
	s.found.State.Members = []etcd.Member{{Name: "fleet-etcd-0", ID: "1"}}
	if learned, err := s.learn(t.Context(), []string{"fleet-etcd-0"}); learned || err != nil || !reflect.DeepEqual(*s.Identity.Record, before) {
		t.Errorf("learned %t, %v: %+v", learned, err, s.Identity.Record)
	}
	s.Identity.Record = nil
	if v := s.Run(t.Context()); v.Complete() || v.Err != nil || s.Identity.Record != nil {
		t.Errorf("without a record: %+v", v)
	}
	if stored := identity.Read(t.Context(), s.Objects); stored.Record != nil || stored.Err != nil {
		t.Errorf("without a record: %+v is made, %v", stored.Record, stored.Err)
	}
}

// TestOldRecord has the StatefulSet keep its pods where the record lacks a member that was
// known, and no one else's change of its size be taken for one.
func TestOldRecord(t *testing.T) {
	for _, test := range []struct {
		reason        string
		claimed, pods int32
		known         string
		freezes       bool
	}{
		{"the record is of before two were added", 1, 3, "fleet-etcd-2", true},
		{"two are being removed", 3, 3, "fleet-etcd-2", false},
		{"their pods are gone", 1, 1, "fleet-etcd-2", false},
		{"someone has scaled the StatefulSet", 1, 3, "", false},
	} {
		s := newStage(t, "{spec: {etcd: {replicas: 1}}}", &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd"}, Spec: appsv1.StatefulSetSpec{Replicas: new(test.pods)}})
		s.Before.Etcd.Members = []operatorv1alpha1.EtcdMember{{Name: "fleet-etcd-0", ID: "a0"}, {Name: test.known, ID: "a2"}}
		s.Identity.Record = &etcd.Record{Replicas: 1, Claimed: test.claimed, Identity: etcd.Identity{Members: map[string]string{"fleet-etcd-0": "a0"}}}
		if v := s.recordIsCurrent(t.Context()); (v.State == verdict.ReadOnly) != test.freezes || v.Complete() == test.freezes || test.freezes && !strings.Contains(v.Message, "etcd has fleet-etcd-") {
			t.Errorf("%s: %+v", test.reason, v)
		}
	}
}
