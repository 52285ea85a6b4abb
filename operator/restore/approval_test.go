package restore

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// lost is a loss with one member that said its revision, one that did not, and one whose data
// is gone.
var lost = operatorv1alpha1.RecoveryStatus{ID: "c-1", LastRevision: 100, Members: []operatorv1alpha1.RecoveryMember{
	{Name: "fleet-etcd-0", Revision: 90, RevisionsLost: 10}, {Name: "fleet-etcd-1", Message: "it does not answer"}, {Name: "fleet-etcd-2", DataGone: true, Message: "its volume is gone"},
	{Name: "fleet-etcd-3", Revision: 100}, {Name: "fleet-etcd-4", Revision: 100, Corrupt: true}}}

// TestApprovalOfLearner takes the member that was being added where no other one has data left, and
// no more is lost than is accepted.
func TestApprovalOfLearner(t *testing.T) {
	alone := operatorv1alpha1.RecoveryStatus{ID: "c-1", LastRevision: 100, Members: []operatorv1alpha1.RecoveryMember{{Name: "fleet-etcd-0", DataGone: true}, {Name: "fleet-etcd-1", Revision: 95}}}
	for accepted, refused := range map[int64]bool{5: false, 4: true} {
		a := Approval{Recovery: operatorv1alpha1.Recovery{From: "Member", Name: "fleet-etcd-1", AcceptDataLossUpTo: accepted, ApprovedFor: "c-1"}, Lost: alone, Joining: "fleet-etcd-1"}
		if err := a.Refuse(); (err != nil) != refused {
			t.Errorf("%d are accepted: %v", accepted, err)
		}
	}
}

// TestApproval begins a recovery by an approval of this loss alone, with a copy that is left and
// lacks no more than is accepted.
func TestApproval(t *testing.T) {
	for reason, test := range map[string]struct {
		approval operatorv1alpha1.Recovery
		says     string
		least    int64
	}{
		"it fits":                    {operatorv1alpha1.Recovery{From: "Member", Name: "fleet-etcd-0", AcceptDataLossUpTo: 10, ApprovedFor: "c-1"}, "", 90},
		"more than is accepted":      {operatorv1alpha1.Recovery{From: "Member", Name: "fleet-etcd-0", AcceptDataLossUpTo: 9, ApprovedFor: "c-1"}, "lacks 10 known revisions, and spec.recovery.acceptDataLossUpTo is 9: set it to 10", 0},
		"a revision that is unknown": {operatorv1alpha1.Recovery{From: "Member", Name: "fleet-etcd-1", AcceptDataLossUpTo: 30, ApprovedFor: "c-1"}, "", 70},
		"everything is accepted":     {operatorv1alpha1.Recovery{From: "Member", Name: "fleet-etcd-1", AcceptDataLossUpTo: 300, ApprovedFor: "c-1"}, "", 0},
		"more than it needs":         {operatorv1alpha1.Recovery{From: "Member", Name: "fleet-etcd-0", AcceptDataLossUpTo: 99, ApprovedFor: "c-1"}, "", 1},
		"data that is gone":          {operatorv1alpha1.Recovery{From: "Member", Name: "fleet-etcd-2", ApprovedFor: "c-1"}, "is gone (its volume is gone): set spec.recovery.name to a member whose data is left (fleet-etcd-0, fleet-etcd-1, fleet-etcd-3)", 0},
		"no member":                  {operatorv1alpha1.Recovery{From: "Member", Name: "fleet-etcd-7", ApprovedFor: "c-1"}, "etcd has no such member: set it to a member whose data is left (fleet-etcd-0, fleet-etcd-1, fleet-etcd-3), or recover with a backup", 0},
		"data that may be wrong":     {operatorv1alpha1.Recovery{From: "Member", Name: "fleet-etcd-4", AcceptDataLossUpTo: 300, ApprovedFor: "c-1"}, "etcd's alarm CORRUPT names fleet-etcd-4", 0},
		"another loss":               {operatorv1alpha1.Recovery{From: "Member", Name: "fleet-etcd-0", AcceptDataLossUpTo: 10, ApprovedFor: "c-0"}, "is approved for the loss c-0, and this one is c-1", 0},
		"no source":                  {operatorv1alpha1.Recovery{From: "Elsewhere", Name: "x", ApprovedFor: "c-1"}, "set it to Member or Backup", 0},
		"a backup":                   {operatorv1alpha1.Recovery{From: "Backup", Name: "nightly", ApprovedFor: "c-1"}, "", 100},
		"a member that joined":       {operatorv1alpha1.Recovery{From: "Member", Name: "fleet-etcd-3", AcceptDataLossUpTo: 300, ApprovedFor: "c-1"}, "fleet-etcd-3 was being added to etcd, and may lack data that the others had", 0},
	} {
		a := Approval{Recovery: test.approval, Lost: lost, Joining: "fleet-etcd-3"}
		err := a.Refuse()
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", reason, err, test.says)
		}
		if err == nil && a.Least() != test.least {
			t.Errorf("%s: at least revision %d, want %d", reason, a.Least(), test.least)
		}
	}
}

// TestApprovalOfBackup takes a backup of the same data alone.
func TestApprovalOfBackup(t *testing.T) {
	b := &operatorv1alpha1.ClusterRegistryBackup{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}
	b.Status.Lineage, b.Status.Revision = "one", 80
	a := Approval{Recovery: operatorv1alpha1.Recovery{From: "Backup", Name: "nightly", AcceptDataLossUpTo: 20, ApprovedFor: "c-1"}, Lost: lost}
	if err := a.RefuseBackup(b, "one"); err != nil {
		t.Error(err)
	}
	if err := a.RefuseBackup(b, "two"); err == nil || !strings.Contains(err.Error(), "is of other data (lineage one) than that of this registry (two)") {
		t.Error(err)
	}
	if err := a.RefuseBackup(b, ""); err == nil || !strings.Contains(err.Error(), "it has no backups") {
		t.Error(err)
	}
	if err := errors.Join(RefuseRelease("nightly", "v0.4.0", "v0.4.0"), RefuseRelease("nightly", "v0.4.0", "v0.5.0")); err == nil || !strings.Contains(err.Error(), "backup nightly was taken from release v0.4.0, and the registry runs v0.5.0") {
		t.Error(err)
	}
	b.Status.Revision = 99
	a.AcceptDataLossUpTo = 0
	if err := a.RefuseBackup(b, "one"); err == nil || !strings.Contains(err.Error(), "backup nightly lacks one known revision, and spec.recovery.acceptDataLossUpTo is 0: set it to 1") {
		t.Error(err)
	}
	b.Status.Revision = 80
	a.AcceptDataLossUpTo = 19
	if err := a.RefuseBackup(b, "one"); err == nil || !strings.Contains(err.Error(), "backup nightly lacks 20 known revisions") {
		t.Error(err)
	}
}
