package recovery

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Drive is what one reconcile does about an etcd that has lost its quorum, or that went back: it
// says what is left, begins the recovery that a person approves, and takes it further.
type Drive struct {
	pass.Pass
	// Changes are those of members, which know what is left of each one's data.
	Changes membership.Drive
	// Revisions are those at which each etcd was seen.
	Revisions *etcd.Revisions
	// Backups are those of the registry, and Backup is the one that is approved.
	Backups []*operatorv1alpha1.ClusterRegistryBackup
	Backup  Backup
	// ReadClear has servers read what is stored in clear, too.
	ReadClear func(context.Context) error
	// Forget forgets what was found to be stored: the copy may have something else.
	Forget func()
}

// Backup is what is known of the backup that a recovery is approved with.
type Backup struct {
	// Verdict says why it can't be used, or is not known yet.
	verdict.Verdict
	// Restored is what is to be restored, nil when it is not known.
	Restored *etcd.Restored
}

// Found is what came of a step.
type Found struct {
	// Verdict is what the recovery waits for, done where none is under way.
	verdict.Verdict
	// Etcd is what is said of etcd from now on, nil where its stage has said it.
	Etcd *verdict.Verdict
}

// done is the verdict where there is nothing to say.
var done verdict.Verdict

// Stopped is what does not run while a lost quorum is recovered: no server serves what etcd is
// about to give up, and none writes before the new etcd is recorded.
func Stopped(p pass.Pass) render.Stopped {
	recovered := p.Recovering()
	return render.Stopped{Servers: recovered != nil, Members: recovered != nil && recovered.Phase == operatorv1alpha1.RecoveryStopping}
}

// Held is the verdict on an approval that does nothing as it is.
func Held(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonQuorumLost, format, args...).In(verdict.Backstop)
}

// Step takes the recovery that is under way one step further.
func (d *Drive) Step(ctx context.Context) Found {
	status := &d.Registry.Status
	if status.Recovery == nil {
		recovered := d.Recovering() // of an earlier ClusterRegistry of the name
		status.Recovery = &operatorv1alpha1.RecoveryStatus{ID: recovered.ID, LostTime: metav1.NewTime(recovered.LostTime), LastRevision: recovered.LastRevision}
		for _, name := range slices.Sorted(maps.Keys(recovered.Members)) {
			status.Recovery.Members = append(status.Recovery.Members, operatorv1alpha1.RecoveryMember{Name: name, Message: "what is left of it is not known any more"})
		}
	}
	if operation.ChangesMembers(status.Operation) {
		operation.End(d.Registry) // it was about members that are no more
	}
	gone, err := d.copyGone(ctx)
	if err != nil {
		return Found{Verdict: verdict.Failed(fmt.Errorf("find out what is left of the data that etcd is to continue with: %w", err))}
	}
	held := d.Approve(ctx, status.Recovery)
	if held.Err != nil {
		return Found{Verdict: held}
	}
	step := &Recovery{Objects: d.Objects, Identity: d.Identity, State: d.Members.State, Members: d.Members.Verdict, Rolling: d.Members.Rolling}
	v := step.Step(ctx)
	recovered := d.Recovering()
	if recovered == nil {
		status.Recovery = nil
		Report(d.Pass)
		return Found{Verdict: v}
	}
	if gone != "" && recovered.Phase == operatorv1alpha1.RecoveryRestoring {
		v.Message = gone
	}
	status.Recovery.Phase, status.Recovery.Message = recovered.Phase, v.Message
	if gone == "" && !held.Complete() {
		status.Recovery.Message += "; spec.recovery does nothing yet: " + held.Message
	}
	said := verdict.Waiting(operatorv1alpha1.ReasonRecovering, "%s", status.Recovery.Message).In(v.After)
	return Found{Verdict: v, Etcd: &said}
}

// Report writes to the status how the last lost quorum was recovered from.
func Report(p pass.Pass) {
	if p.Identity.Record == nil || p.Identity.Record.Recovered == nil || p.Identity.Record.Recovered.Pending() {
		return
	}
	recovered := p.Identity.Record.Recovered
	p.Registry.Status.Recovered = &operatorv1alpha1.RecoveredStatus{
		ID: recovered.ID, From: recovered.From, Name: recovered.Name, LostTime: metav1.NewTime(recovered.LostTime), LastRevision: recovered.LastRevision,
		Revision: recovered.Ended, Lineage: recovered.Lineage, CompletionTime: metav1.NewTime(*recovered.Completed),
	}
}
