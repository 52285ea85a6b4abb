package clusterregistry

import (
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// backScope returns the scope of a registry of whose members 1 and 2 were set back from revision
// 140 to 100, and 0 is not ready, with an approval in YAML.
func backScope(t *testing.T, approval string) (*Reconciler, *scope) {
	t.Helper()
	r, s, _ := lostScope(t, approval)
	record := *s.Identity.Record
	record.Joining, record.Newest, record.WentBack = "", etcd.Newest{Position: etcd.Position{Revision: 140}, Time: s.Now}, &etcd.WentBack{ID: "c1-2", From: 140, To: 100, Time: s.Now}
	if err := s.Identity.Write(t.Context(), &record); err != nil {
		t.Fatal(err)
	}
	s.Registry.Status.Recovery = &operatorv1alpha1.RecoveryStatus{ID: "c1-2", LastRevision: 140}
	s.Members.State = etcd.State{Members: []etcd.Member{{Name: "fleet-etcd-0", Err: errors.New("it does not answer")}, {Name: "fleet-etcd-1", ID: "a1", Revision: 110}, {Name: "fleet-etcd-2", ID: "a2", Revision: 110}}}
	s.Members.Verdict = verdict.Waiting(operatorv1alpha1.ReasonWentBack, "etcd went back").AsReadOnly()
	return r, s
}

// TestDecide shows both sides of an etcd that went back, and does nothing before a person has
// decided for one of them: neither replaced, nor upgraded, nor backed up.
func TestDecide(t *testing.T) {
	const running, other = "{from: Member, name: fleet-etcd-1, acceptDataLossUpTo: 40, approvedFor: c1-2}", "{from: Member, name: fleet-etcd-0, approvedFor: c1-2}"
	for _, test := range []struct {
		reason, approval string
		change           func(*scope)
		says             string // by EtcdReady
		frozen           bool
		accepted, begins bool
	}{
		{"nothing is approved", "null", nil, "etcd went back", true, false, false},
		{"another loss is approved", "{from: Member, name: fleet-etcd-1, acceptDataLossUpTo: 40, approvedFor: c1-1}", nil, "etcd went back", true, false, false},
		{"it continues with what it has", running, nil, "etcd continues with what it has", false, true, false},
		{"more is lost than is accepted", "{from: Member, name: fleet-etcd-1, acceptDataLossUpTo: 39, approvedFor: c1-2}", nil, "lacks 40 known revisions", true, false, false},
		{"it is paused", running, func(s *scope) { s.Freeze("spec.paused is false") }, "nothing is decided until spec.paused is false", true, false, false},
		{"it was just found", running, func(s *scope) { s.Registry.Status.Recovery = nil }, "etcd went back", true, false, false},
		{"it continues with the one that may know more", other, nil, "continues with the data of member fleet-etcd-0", false, false, true},
		{"there is no such member", "{from: Member, name: fleet-etcd-7, approvedFor: c1-2}", nil, "etcd has no such member", true, false, false},
	} {
		r, s := backScope(t, test.approval)
		if test.change != nil {
			test.change(s)
		}
		s.Members.Verdict = r.recovery(s).Decide(t.Context())
		s.record(operatorv1alpha1.ConditionEtcdReady, s.Members.Verdict)
		if v := s.Members.Verdict; v.Err != nil || !strings.Contains(v.Message, test.says) {
			t.Errorf("%s: %+v", test.reason, v)
		}
		if frozen := s.Frozen() != ""; frozen != test.frozen || frozen == r.members(s).Changeable() {
			t.Errorf("%s: frozen by %q, changeable: %t", test.reason, s.Frozen(), r.members(s).Changeable())
		}
		stored := identity.Read(t.Context(), s.Objects).Record
		if accepted := stored.WentBack == nil; accepted != test.accepted || accepted && (stored.Newest.Revision != 110 || s.Registry.Status.Recovery != nil) {
			t.Errorf("%s: recorded is %+v, %+v", test.reason, stored.WentBack, stored.Newest)
		}
		if stored.Recovered.Pending() != test.begins {
			t.Errorf("%s: %+v", test.reason, stored.Recovered)
		}
		if test.accepted {
			continue
		}
		sides := s.Registry.Status.Recovery
		if sides == nil || sides.ID != "c1-2" || sides.LastRevision != 140 || len(sides.Members) != 3 || sides.Members[0].DataGone || sides.Members[0].Revision != 0 || sides.Members[1].Revision != 100 || sides.Members[1].RevisionsLost != 40 {
			t.Errorf("%s: %+v", test.reason, sides)
		}
		if got := s.measured().WentBack; (got == 40) == test.begins {
			t.Errorf("%s: the metric is %d", test.reason, got)
		}
	}
}

// TestWentBackStopsBackups ends the Job of a backup that is under way, which may remove the copy
// that has what is missing; not one of another registry, and none while the registry is paused.
func TestWentBackStopsBackups(t *testing.T) {
	for _, test := range []struct {
		reason, owner string
		change        func(*scope)
		stays         bool
	}{
		{"it runs", "fleet", nil, false},
		{"it is another registry's", "other", nil, true},
		{"it is paused", "fleet", func(s *scope) { s.Freeze("spec.paused is false") }, true},
		{"it did not go back", "fleet", func(s *scope) { s.Members.Verdict = done }, true},
	} {
		r, s := backScope(t, "null")
		kinds := meta.NewDefaultRESTMapper([]schema.GroupVersion{batchv1.SchemeGroupVersion})
		kinds.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace)
		s.Applier = apply.New(operandtest.Mapped{Client: s.Client, Kinds: kinds}, s.Live)
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-backup", Labels: map[string]string{
			operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: test.owner}}}
		if err := s.Client.Create(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if test.change != nil {
			test.change(s)
		}
		s.Members.Verdict = r.recovery(s).Decide(t.Context())
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job)
		if client.IgnoreNotFound(err) != nil || s.Members.Err != nil || apierrors.IsNotFound(err) == test.stays {
			t.Errorf("%s: %v, %v", test.reason, err, s.Members.Err)
		}
	}
}
