package recovery

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestRecommended recommends what loses the least, and says what is not known.
func TestRecommended(t *testing.T) {
	runs := []runtime.Object{pod("fleet-etcd-0", "etcd", "node-1"), nodeThat("node-1", corev1.ConditionTrue), saved("eleven", 80, time.Hour), saved("ten", 60, 2*time.Hour)}
	unverified := func(b *b) { b.Status.VerifiedTime = nil }
	learner := func(r *r) {
		r.Status.Etcd.Members = []v1alpha1.EtcdMember{{Name: "fleet-etcd-0", Learner: true}}
	}
	for _, test := range []test{
		{reason: "a member that loses less", registry: fleet(newest("eleven", 80)), objects: runs, says: []string{"Copy: member fleet-etcd-0 (recommended), up to revision 90"}},
		{reason: "a member that loses nothing known", registry: fleet(known(100)), says: []string{"Copy: member fleet-etcd-0 (recommended), up to revision 100", "Lost: none of the revisions that are known; newer ones that clients were answered, if there are any.", `"name":"fleet-etcd-0","acceptDataLossUpTo":0,`}},
		{reason: "a member that loses one", registry: fleet(known(99)), says: []string{"Lost: one revision that is known, and newer ones"}},
		{reason: "a member that loses as much as a backup", registry: fleet(known(80), newest("eleven", 80)), objects: runs, says: []string{"Copy: member fleet-etcd-0 (recommended)"}},
		{reason: "a backup that loses less", registry: fleet(known(70), newest("eleven", 80)), objects: runs,
			says: []string{"Recommended: backup eleven, which loses the least of what is known. But member fleet-etcd-1 may have more: look first whether its pod and its node can be brought back, and plan again then. Which one", "Copy: backup eleven (recommended)", `"name":"fleet-etcd-1","acceptDataLossUpTo":20,`}},
		{reason: "a backup that loses nothing known", registry: fleet(allGone, newest("eleven", 100)), objects: []runtime.Object{saved("eleven", 100, time.Hour)}, says: []string{"Lost: none of the revisions that are known; all else that was written after 2026-11-23T11:00:00Z, 60 min ago."}, never: []string{"may have more"}},
		{reason: "a member that runs and does not say its revision", registry: fleet(known(0), newest("eleven", 80)), objects: runs,
			says: []string{"Recommended: member fleet-etcd-0, which runs, and does not say up to which revision its data goes: with the command below it loses no more of what is known than backup eleven would, since the operator refuses it otherwise, and backup eleven can be approved then.",
				"Copy: member fleet-etcd-0 (recommended)\n", "if it ends before revision 80", `"name":"fleet-etcd-0","acceptDataLossUpTo":20,`}},
		{reason: "the only copy is such a member", registry: fleet(known(0)), objects: runs[:2], says: []string{"Recommended: member fleet-etcd-0, which runs, and does not say up to which revision its data goes. Which one", "if it ends before revision 100"}},
		{reason: "no revision is known", registry: fleet(known(0), func(r *r) { r.Status.Recovery.LastRevision = 0 }), objects: runs[:2], says: []string{"Lost: up to which revision it goes is not known, nor how much there was"}, never: []string{"Newest revision"}},
		{reason: "a member that does not run, and a backup that was never verified", registry: fleet(known(0)), objects: []runtime.Object{saved("eleven", 80, time.Hour, unverified)},
			says: []string{"Recommended: member fleet-etcd-0: nothing surer is left.", `Known: it was never verified: that it is whole shows when it is restored; have it verified first with "kubectl registry backup verify eleven -n registries".`}},
		{reason: "a backup that was never verified is newer", registry: fleet(allGone, newest("ten", 60)), objects: []runtime.Object{saved("eleven", 80, time.Hour, unverified), saved("ten", 60, 2*time.Hour)}, says: []string{"Copy: backup ten (recommended)", "Copy: backup eleven, up to revision 80"}},
		{reason: "it alone is left", registry: fleet(allGone), objects: []runtime.Object{saved("eleven", 80, time.Hour, unverified)}, says: []string{"Recommended: backup eleven: nothing surer is left."}},
		{reason: "nothing is left", registry: fleet(allGone), says: []string{"Recommended: there is no copy with which the operator could continue"}, never: []string{"Copy:", "patch creg"}},
		{reason: "a member that was joining", registry: fleet(learner, newest("eleven", 80)), objects: runs, says: []string{"Copy: backup eleven (recommended)", "it was being added to etcd, and may lack data that the others had: the operator refuses it while data of another member is left."}},
	} {
		test.code = 4
		test.check(t)
	}
}

// TestBackups are those that the operator could continue with, and why it would refuse others.
func TestBackups(t *testing.T) {
	encrypted := func(b *b) { b.Status.EncryptionKeys = []string{"aescbc/a"} }
	release := func(v string) func(*b) { return func(b *b) { b.Status.Release = v } }
	of := func(lineage string) func(*b) { return func(b *b) { b.Status.Lineage = lineage } }
	one := []runtime.Object{saved("eleven", 80, time.Hour)}
	for _, test := range []test{
		{reason: "a few, the newest first", registry: fleet(newest("eleven", 80)), objects: []runtime.Object{saved("eleven", 80, time.Hour), saved("ten", 60, 2*time.Hour), saved("nine", 50, 3*time.Hour), saved("eight", 40, 4*time.Hour), saved("seven", 30, 5*time.Hour)},
			says: []string{"Copy: backup eleven,", "Copy: backup ten,", "Copy: backup nine,", "Copy: backup eight,"}, never: []string{"backup seven"}},
		{reason: "others are no copies", registry: fleet(), objects: []runtime.Object{saved("other", 80, time.Hour, of("two")), saved("failed", 80, time.Hour, func(b *b) { b.Status.Phase = v1alpha1.BackupFailed }),
			saved("damaged", 80, time.Hour, func(b *b) { b.Status.Phase = v1alpha1.BackupDamaged }), saved("going", 80, time.Hour, func(b *b) { b.DeletionTimestamp, b.Finalizers = at(0), []string{"f"} })}, never: []string{"Copy: backup"}},
		{reason: "the lineage is not known", registry: fleet(func(r *r) { r.Status.Backup = nil }), objects: one, says: []string{"Not known here: which other backups are of this data"}, never: []string{"Copy: backup"}},
		{reason: "the lineage of an earlier recovery", registry: fleet(func(r *r) {
			r.Status.Backup, r.Status.Recovered = nil, &v1alpha1.RecoveredStatus{ID: "c-0", From: "Member", Name: "fleet-etcd-0", Lineage: "one"}
		}), objects: one, says: []string{"Copy: backup eleven"}},
		{reason: "the lineage of the newest", registry: fleet(newest("eleven", 80), func(r *r) { r.Status.Backup = nil }), objects: append(one, saved("ten", 60, 2*time.Hour)), says: []string{"Copy: backup ten"}},
		{reason: "the lineage of the new etcd", registry: fleet(in(v1alpha1.RecoveryRestoring, "m")), objects: one, never: []string{"Copy: backup"}},
		{reason: "the newest was deleted since", registry: fleet(newest("eleven", 80)), says: []string{"Refused: there is no ClusterRegistryBackup eleven in namespace registries"}, never: []string{`"name":"eleven"`, "Copy: backup eleven (recommended)"}},
		{reason: "the newest is damaged since", registry: fleet(newest("eleven", 80)), objects: []runtime.Object{saved("eleven", 80, time.Hour, func(b *b) { b.Status.Phase, b.Status.Message = v1alpha1.BackupDamaged, "no" })}, says: []string{"Refused: ClusterRegistryBackup registries/eleven is damaged (no): recover with another backup."}},
		{reason: "no store", registry: fleet(newest("eleven", 80), func(r *r) { r.Spec.Backup = nil }), objects: one, says: []string{"Refused: registries/fleet has no spec.backup, which says where backup eleven is stored: set it first."}},
		{reason: "another release", registry: fleet(), objects: []runtime.Object{saved("eleven", 80, time.Hour, release("v0.4.0"))}, says: []string{"Refused: backup eleven was taken from release v0.4.0, and the registry runs v0.5.0"}, never: []string{`"name":"eleven"`}},
		{reason: "a release of another plugin", registry: fleet(func(r *r) { r.Status.Version = "v0.9.0" }), objects: []runtime.Object{saved("eleven", 80, time.Hour, release("v0.9.0"))}, says: []string{"Not known here: whether the backups fit: this plugin does not know release v0.9.0.", `"name":"eleven"`}},
		{reason: "an encryption key is gone", registry: fleet(), objects: []runtime.Object{saved("eleven", 80, time.Hour, encrypted)}, says: []string{"Refused: backup eleven can't be restored here: clusters in it are encrypted with aescbc/a"}},
		{reason: "an encryption key that servers have", registry: fleet(func(r *r) {
			r.Status.Encryption = &v1alpha1.EncryptionStatus{Writes: "aescbc/a", Reads: []string{"aescbc/a"}}
		}), objects: []runtime.Object{saved("eleven", 80, time.Hour, encrypted)}, says: []string{`"name":"eleven"`}},
		{reason: "too large", registry: fleet(), objects: []runtime.Object{saved("eleven", 80, time.Hour, func(b *b) { b.Status.Bytes = 8 << 30 })}, says: []string{"Refused: backup eleven can't be restored here: it has 8192 MiB"}},
	} {
		test.code = 4
		test.check(t)
	}
}

// TestCommand quotes what the status says for a shell.
func TestCommand(t *testing.T) {
	s := &scene{registry: fleet(func(r *r) { r.Status.Recovery.ID = "c'; rm -rf \x1b" })}
	const want = `kubectl -n registries patch creg fleet --type=merge -p '{"spec":{"recovery":{"from":"Member","name":"fleet-etcd-0","acceptDataLossUpTo":0,"approvedFor":"c'\''; rm -rf \u001b"}}}'`
	if got := s.command(&Copy{From: "Member", Name: "fleet-etcd-0"}); got != want {
		t.Errorf("%s", got)
	}
}
