package restore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Approval is the approval of a recovery from a lost quorum, and what is known of that loss.
type Approval struct {
	operatorv1alpha1.Recovery
	Lost operatorv1alpha1.RecoveryStatus
	// Joining is the member that was being added to etcd when the quorum was lost, "" for none
	// or where that is not known.
	Joining string
}

// Refuse returns why nothing is recovered by the approval and what to do, nil when something
// is. Of a backup, which the plan of a recovery looks up, it says what is known of the loss.
func (a Approval) Refuse() error {
	switch {
	case a.ApprovedFor != a.Lost.ID:
		return fmt.Errorf("spec.recovery is approved for the loss %s, and this one is %s: see what is left now, and set spec.recovery.approvedFor to that ID", a.ApprovedFor, a.Lost.ID)
	case a.From == operatorv1alpha1.RecoverFromMember:
		return a.refuseMember()
	case a.From != operatorv1alpha1.RecoverFromBackup:
		return fmt.Errorf("spec.recovery.from is %q: set it to Member or Backup", a.From) // past the schema
	}
	return nil
}

func (a Approval) refuseMember() error {
	m, ok := a.member()
	switch {
	case !ok:
		return fmt.Errorf("spec.recovery.name is %s, and etcd has no such member: set it to a member whose data is left (%s), or recover with a backup", a.Name, cmp.Or(strings.Join(a.left(), ", "), "there is none"))
	case m.DataGone:
		return fmt.Errorf("the data of %s is gone (%s): set spec.recovery.name to a member whose data is left (%s), or recover with a backup", m.Name, m.Message, cmp.Or(strings.Join(a.left(), ", "), "there is none"))
	case m.Corrupt:
		return fmt.Errorf("etcd's alarm CORRUPT names %s, or could not say which member's data is wrong, and no other member is left to compare it with: set spec.recovery to another member, or to a backup", m.Name)
	case m.Name == a.Joining && len(a.left()) > 1:
		return fmt.Errorf("%s was being added to etcd, and may lack data that the others had: name another member in spec.recovery.name, or a backup", m.Name)
	case m.Revision > 0:
		return a.refuseLoss(m.Name, m.Revision)
	}
	return nil
}

// RefuseBackup returns why nothing is recovered with a backup of some data, for an etcd whose
// data has the given lineage, nil when something is.
func (a Approval) RefuseBackup(b *operatorv1alpha1.ClusterRegistryBackup, lineage string) error {
	if lineage == "" || b.Status.Lineage != lineage {
		return fmt.Errorf("ClusterRegistryBackup %s is of other data (lineage %s) than that of this registry (%s): name another one; to begin with that one, create another ClusterRegistry with spec.restoreFrom", b.Name, cmp.Or(b.Status.Lineage, "unknown"), cmp.Or(lineage, "it has no backups"))
	}
	return a.refuseLoss("backup "+b.Name, b.Status.Revision)
}

// RefuseRelease returns why no recovery continues with a backup that was taken from a release
// while another one runs, nil where it is the one that runs: no other is known to read it.
func RefuseRelease(backup, release, runs string) error {
	if release == runs {
		return nil
	}
	return fmt.Errorf("backup %s was taken from release %s, and the registry runs %s: name another backup, or create another ClusterRegistry with spec.restoreFrom, which restores it with that release and is upgraded then", backup, release, runs)
}

// Known says how many revisions that are known.
func Known(revisions int64) string {
	if revisions == 1 {
		return "one known revision"
	}
	return fmt.Sprintf("%d known revisions", revisions)
}

// refuseLoss returns an error where a copy that ends with a revision lacks more than is
// accepted.
func (a Approval) refuseLoss(name string, revision int64) error {
	lacks := a.Lost.LastRevision - revision
	if lacks <= a.AcceptDataLossUpTo {
		return nil
	}
	return fmt.Errorf("%s lacks %s, and spec.recovery.acceptDataLossUpTo is %d: set it to %d to give up as many, or name another copy", name, Known(lacks), a.AcceptDataLossUpTo, lacks)
}

// Least returns the lowest revision that the data of the member may end with, whatever the
// member said: as many less than the newest that is known as are accepted.
func (a Approval) Least() int64 { return max(a.Lost.LastRevision-a.AcceptDataLossUpTo, 0) }

func (a Approval) member() (operatorv1alpha1.RecoveryMember, bool) {
	i := slices.IndexFunc(a.Lost.Members, func(m operatorv1alpha1.RecoveryMember) bool { return m.Name == a.Name })
	if i < 0 {
		return operatorv1alpha1.RecoveryMember{}, false
	}
	return a.Lost.Members[i], true
}

// left returns the names of the members whose data is left, or may be, and can be used.
func (a Approval) left() (names []string) {
	for _, m := range a.Lost.Members {
		if !m.DataGone && !m.Corrupt {
			names = append(names, m.Name)
		}
	}
	return names
}
