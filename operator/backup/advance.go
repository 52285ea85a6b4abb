package backup

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// Enter brings a backup to a phase. The message says what it waits for, or why it failed.
func Enter(b *operatorv1alpha1.ClusterRegistryBackup, phase operatorv1alpha1.BackupPhase, message string, now time.Time) {
	at := metav1.NewTime(now.Truncate(time.Second))
	status := &b.Status
	if status.Phase != phase {
		status.PhaseStartedTime = &at
	}
	if phase.Ended() && status.CompletionTime == nil {
		status.CompletionTime = &at
	}
	const most = 4 << 10
	if len(message) > most {
		message = message[:most] + "..."
	}
	status.Phase, status.Message, status.ObservedGeneration = phase, message, b.Generation
	condition := metav1.Condition{Type: operatorv1alpha1.BackupConditionCompleted, Status: metav1.ConditionFalse, Reason: string(phase), Message: message, ObservedGeneration: b.Generation}
	switch phase {
	case operatorv1alpha1.BackupCompleted, operatorv1alpha1.BackupSkipped:
		condition.Status = metav1.ConditionTrue
	case operatorv1alpha1.BackupPending, operatorv1alpha1.BackupSaving, operatorv1alpha1.BackupVerifying:
		condition.Status = metav1.ConditionUnknown
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	sumUp(&status.Conditions, condition, phase)
}

// sumUp sets the conditions by which tools that know only these tell that an object is not
// there yet (Reconciling), or never will be (Stalled). Each is there only while it is True.
func sumUp(conditions *[]metav1.Condition, completed metav1.Condition, phase operatorv1alpha1.BackupPhase) {
	for kind, is := range map[string]bool{
		operatorv1alpha1.BackupConditionReconciling: !phase.Ended(),
		operatorv1alpha1.BackupConditionStalled:     phase == operatorv1alpha1.BackupFailed || phase == operatorv1alpha1.BackupDamaged,
	} {
		if !is {
			meta.RemoveStatusCondition(conditions, kind)
			continue
		}
		condition := completed
		condition.Type, condition.Status = kind, metav1.ConditionTrue
		meta.SetStatusCondition(conditions, condition)
	}
}

// Advance brings the object of a task of Save or Verify to where the outcome of its Job
// leads. It returns false when nothing follows yet, and when the Job is to be done again.
func Advance(t Task, o Outcome, verify operatorv1alpha1.BackupVerification, now time.Time) (advanced, again bool) {
	if t.Request != "" {
		return verifiedAgain(t, o, now)
	}
	b := t.Object
	switch o.State {
	case Running:
		return false, false
	case Lost:
		return false, true
	case Damaged:
		Enter(b, operatorv1alpha1.BackupDamaged, o.Message, now)
		return true, false
	case Failed:
		message := o.Message
		if t.Step == Verify {
			message = "the backup is in its store, and could not be verified: " + message
		}
		Enter(b, operatorv1alpha1.BackupFailed, message, now)
		return true, false
	}
	if reason(b) == operatorv1alpha1.BackupDeletion {
		verify = operatorv1alpha1.VerifyAlways
	}
	report, ok := o.Report(t)
	if !ok {
		Enter(b, operatorv1alpha1.BackupFailed, otherReport, now)
		return true, false
	}
	fill(&b.Status, report)
	switch {
	case t.Step == Save && verify == operatorv1alpha1.VerifyAlways && report.VerifiedTime == nil:
		Enter(b, operatorv1alpha1.BackupVerifying, "", now)
	case b.Status.Name != b.Name:
		Enter(b, operatorv1alpha1.BackupSkipped, fmt.Sprintf("nothing has changed since backup %s", b.Status.Name), now)
	default:
		Enter(b, operatorv1alpha1.BackupCompleted, "", now)
	}
	return true, false
}

// otherReport is why a Job that succeeded does not count.
const otherReport = "the Job has reported something else than what was asked for: the image of the helper does not fit this operator"

// notVerified begins, in the message of a backup, why another verification has found out
// nothing.
const notVerified = "it could not be verified again: "

// verifiedAgain brings a backup that has ended to where another verification leads. One that
// could not be carried out says nothing about the backup: what it was it stays.
func verifiedAgain(t Task, o Outcome, now time.Time) (advanced, again bool) {
	b := t.Object
	report, ok := o.Report(t)
	switch {
	case o.State == Running:
		return false, false
	case o.State == Lost:
		return false, true
	case o.State == Damaged:
		end(b, operatorv1alpha1.BackupDamaged, o.Message, now)
	case o.State == Failed, !ok, report.VerifiedTime == nil:
		message := o.Message
		if o.State != Failed {
			message = otherReport
		}
		before, _, _ := strings.Cut(b.Status.Message, notVerified)
		if before = strings.TrimSuffix(before, "; "); before != "" {
			before += "; "
		}
		Enter(b, b.Status.Phase, before+notVerified+message, now)
	default:
		fill(&b.Status, report)
		end(b, operatorv1alpha1.BackupCompleted, "", now)
	}
	b.Status.VerifyRequest = t.Request
	return true, false
}

// end brings a backup that has ended to another last phase. That it is damaged is a failure of
// now; one that is good was so when it was taken, and is no newer for being verified again.
func end(b *operatorv1alpha1.ClusterRegistryBackup, phase operatorv1alpha1.BackupPhase, message string, now time.Time) {
	if b.Status.Phase != phase && phase == operatorv1alpha1.BackupDamaged {
		b.Status.CompletionTime = nil
	}
	Enter(b, phase, message, now)
}

// fill writes what is reported of a backup.
func fill(status *operatorv1alpha1.ClusterRegistryBackupStatus, report contract.BackupReport) {
	taken := metav1.NewTime(report.Time)
	status.Name, status.Location, status.Revision, status.Bytes, status.SHA256 = report.Name, report.Location, report.Revision, report.Bytes, report.SHA256
	status.EtcdVersion, status.Release, status.TakenTime = report.EtcdVersion, report.Release, &taken
	status.VerifiedTime = nil
	if report.VerifiedTime != nil {
		verified := metav1.NewTime(*report.VerifiedTime)
		status.VerifiedTime = &verified
		status.EncryptionKeys = report.EncryptionKeys // a server has read all of it
	}
	status.Keys = nil
	for _, resource := range slices.Sorted(maps.Keys(report.Keys)) {
		status.Keys = append(status.Keys, operatorv1alpha1.ResourceKeys{Resource: resource, Count: report.Keys[resource]})
	}
}
