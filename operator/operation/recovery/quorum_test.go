package recovery

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/pass/passtest"
)

// TestAssess says how much each copy of the data lacks of what is known.
func TestAssess(t *testing.T) {
	gone := operatorv1alpha1.RecoveryMember{Name: "fleet-etcd-2", DataGone: true, Message: "its data is lost or damaged"}
	answers := operatorv1alpha1.RecoveryMember{Name: "fleet-etcd-0", Revision: 90, Message: "it has its data"}
	silent := operatorv1alpha1.RecoveryMember{Name: "fleet-etcd-1", Message: "its data may be left"}
	saved := &operatorv1alpha1.RecoveryBackup{Name: "nightly", Revision: 80}
	first := assess(&operatorv1alpha1.RecoveryStatus{ID: "c-1"}, []operatorv1alpha1.RecoveryMember{answers, silent, gone}, saved, 100)
	if first.ID != "c-1" || first.LastRevision != 100 || first.Members[0].RevisionsLost != 10 || first.Members[1].RevisionsLost != 0 || first.Backup.RevisionsLost != 20 {
		t.Errorf("%+v", first)
	}
	answers.Revision, answers.Message = 0, "its data may be left"
	later := assess(first, []operatorv1alpha1.RecoveryMember{answers, silent, gone}, nil, 0)
	if later.LastRevision != 100 || later.Members[0].Revision != 90 || later.Members[0].RevisionsLost != 10 || later.Members[1].Revision != 0 {
		t.Errorf("what was said is forgotten: %+v", later)
	}
	first.Members[1].Corrupt = true
	if still := assess(first, []operatorv1alpha1.RecoveryMember{answers, silent, gone}, nil, 0); still.Members[0].Corrupt || !still.Members[1].Corrupt {
		t.Errorf("that data may be wrong is forgotten, or said of other data: %+v", still)
	} else if got := quorumLost(still); !strings.Contains(got, "and fleet-etcd-1, which may be wrong by etcd's alarm CORRUPT, and is not used;") {
		t.Errorf("%s", got)
	}
	answers.DataGone = true
	if lost := assess(later, []operatorv1alpha1.RecoveryMember{answers, silent, gone}, nil, 0); lost.Members[0].Revision != 0 || lost.LastRevision != 100 {
		t.Errorf("what is gone has a revision: %+v", lost)
	}
	if newest := assess(&operatorv1alpha1.RecoveryStatus{ID: "c-1"}, nil, &operatorv1alpha1.RecoveryBackup{Revision: 120}, 100); newest.LastRevision != 120 || newest.Backup.RevisionsLost != 0 {
		t.Errorf("%+v", newest)
	}
}

// TestQuorumLostSays tells a person what is left.
func TestQuorumLostSays(t *testing.T) {
	found := &operatorv1alpha1.RecoveryStatus{ID: "c-1", LastRevision: 100, Members: []operatorv1alpha1.RecoveryMember{
		{Name: "fleet-etcd-0", Revision: 90, RevisionsLost: 10}, {Name: "fleet-etcd-1", DataGone: true, Message: "its data is lost or damaged"}, {Name: "fleet-etcd-2", DataGone: true, Message: "its volume is gone"}},
		Backup: &operatorv1alpha1.RecoveryBackup{Name: "nightly", Revision: 99, RevisionsLost: 1, Time: metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))}}
	want := "etcd has lost its quorum for good: the data of 2 of 3 members is gone (fleet-etcd-1: its data is lost or damaged; fleet-etcd-2: its volume is gone), and the others can't agree on anything any more. " +
		"Left is the data of fleet-etcd-0 up to revision 90, which lacks 10 known revisions; the newest verified backup is nightly, taken at 2030-01-02T03:04:05Z, up to revision 99, which lacks one known revision. " +
		"The newest revision that is known is 100, and clients may have been answered newer ones. Keep all volumes and delete no claim: a person decides with which copy etcd continues, in spec.recovery (kubectl registry recover plan says how; this loss is c-1)"
	if got := quorumLost(found); got != want {
		t.Errorf("%s", got)
	}
	found.Members, found.Backup, found.LastRevision = found.Members[1:], nil, 0
	if got := quorumLost(found); !strings.Contains(got, "Left is the data of no member; there is no verified backup. Keep all volumes") {
		t.Errorf("%s", got)
	}
	found.Members = found.Members[:1]
	if got := quorumLost(found); !strings.HasPrefix(got, "the data of etcd's only member is gone (fleet-etcd-1: its data is lost or damaged), and no other member has it. If its volume can be brought back, nothing is lost; otherwise etcd can continue with a backup: there is no verified backup. Keep all volumes") {
		t.Errorf("%s", got)
	}
}

// ofThree returns what is done about the etcd of a complete registry that is ready, with three
// members.
func ofThree(t *testing.T) *Drive {
	t.Helper()
	known := passtest.New(t, "{spec: {version: v0.1.0, mode: Aggregated, etcd: {replicas: 3}}, status: {version: v0.1.0, etcdVersion: v3.6.14"+operandtest.Complete+"}}")
	recorded := etcd.Identity{ClusterID: "c", Members: map[string]string{"m0": "a0", "m1": "a1", "m2": "a2"}}
	known.Identity.Record = &etcd.Record{EtcdVersion: "v3.6.14", Identity: recorded}
	for _, name := range []string{"m0", "m1", "m2"} {
		known.Members.State.Members = append(known.Members.State.Members, etcd.Member{Name: name, ID: recorded.Members[name], ClusterID: "c", Leader: "a0", Term: 1})
		known.Members.State.List = append(known.Members.State.List, etcd.Listed{ID: recorded.Members[name], Name: name})
	}
	known.Ready()
	return &Drive{Pass: known.Pass, Revisions: &etcd.Revisions{}}
}

// TestNewestVerified chooses no backup of other data, and none that was not verified.
func TestNewestVerified(t *testing.T) {
	s := ofThree(t)
	s.Identity.Record.Lineage = "l"
	now := metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	add := func(name, lineage string, phase operatorv1alpha1.BackupPhase, revision int64, verified *metav1.Time) {
		b := &operatorv1alpha1.ClusterRegistryBackup{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Status.Lineage, b.Status.Phase, b.Status.Revision, b.Status.VerifiedTime, b.Status.TakenTime = lineage, phase, revision, verified, &now
		s.Backups = append(s.Backups, b)
	}
	add("unverified", "l", operatorv1alpha1.BackupCompleted, 9, nil)
	add("damaged", "l", operatorv1alpha1.BackupDamaged, 8, &now)
	add("of-other-data", "x", operatorv1alpha1.BackupCompleted, 7, &now)
	if got := s.newestVerified(); got != nil {
		t.Errorf("%+v", got)
	}
	add("older", "l", operatorv1alpha1.BackupCompleted, 2, &now)
	add("newest", "l", operatorv1alpha1.BackupCompleted, 3, &now)
	add("oldest", "l", operatorv1alpha1.BackupCompleted, 1, &now)
	if got := s.newestVerified(); got == nil || got.Name != "newest" || got.Revision != 3 {
		t.Errorf("%+v", got)
	}
}

// TestNoteQuorum forgets a loss as soon as a majority answers, and no earlier. An approval of it
// does nothing while it is not certain.
func TestNoteQuorum(t *testing.T) {
	for _, test := range []struct {
		reason string
		known  error
		stays  bool
	}{
		{"a majority answers", nil, false},
		{"it is not certain at the moment", errors.New("no member answers that has a leader"), true},
	} {
		s := ofThree(t)
		s.Registry.Status.Recovery = &operatorv1alpha1.RecoveryStatus{ID: "c-1"}
		s.Registry.Spec.Recovery = &operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromMember, Name: "fleet-etcd-0", AcceptDataLossUpTo: 1 << 40, ApprovedFor: "c-1"}
		if s.Members.State.ListErr = test.known; test.known != nil {
			for i := range s.Members.State.Members {
				s.Members.State.Members[i].Leader, s.Members.State.Members[i].Err = "", test.known
			}
		}
		change := &membership.Change{Objects: s.Objects, Identity: s.Identity, State: s.Members.State}
		found := s.Quorum(t.Context(), change)
		if !found.Complete() {
			t.Fatal(found)
		}
		if got := s.Registry.Status.Recovery; (got != nil) != test.stays {
			t.Errorf("%s: %+v", test.reason, got)
		}
		if found.Etcd != nil {
			t.Errorf("%s: %+v", test.reason, found.Etcd)
		}
		if s.Recovering() != nil {
			t.Errorf("%s: members that may serve are given up: %+v", test.reason, s.Recovering())
		}
	}
}
