package membership

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/etcd/plan"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/volumes"
)

// Begin returns the operation that a first step begins.
func (c *Change) Begin(step plan.Step) *operatorv1alpha1.Operation {
	members, wanted := len(c.Identity.Record.Members), int(c.Registry.Spec.Etcd.Replicas)
	out := &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationScale, From: fmt.Sprint(members), To: fmt.Sprint(wanted)}
	record := c.Identity.Record
	switch {
	case step.Ordinal != plan.None && record.Abandons(c.member(step.Ordinal)).UID != "":
		// It is to join, and is no member any more.
	case step.Ordinal != plan.None && step.Ordinal < wanted && (step.Action == plan.RecordLeaving || record.Leaving == c.member(step.Ordinal)):
		*out = operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationReplacement, To: c.member(step.Ordinal)}
	case record.Joining != "" && int(record.Target) == wanted && int(record.Claimed) == wanted && int(record.Endpoints) == wanted:
		*out = operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationReplacement, To: record.Joining}
	}
	operation.Enter(out, operatorv1alpha1.PhasePreflight, c.Now)
	return out
}

// Handler is a change as operation.Driver knows it.
type Handler struct {
	*Change
	// Step is what is next.
	Step plan.Step
}

// Steps implements operation.Handler. All phases do what is next, in the phase that it is a
// part of: the order is the plan's.
func (h Handler) Steps() []operation.Step {
	at := h.Registry.Status.Operation.Phase
	if !slices.Contains([]operatorv1alpha1.OperationPhase{operatorv1alpha1.PhasePreflight, operatorv1alpha1.PhaseSnapshot,
		operatorv1alpha1.PhaseMemberAddition, operatorv1alpha1.PhaseMemberRemoval, operatorv1alpha1.PhaseServerEndpoints}, at) {
		return nil
	}
	return []operation.Step{{Phase: at, Run: h.run}}
}

// Rollback implements operation.Handler. A change of mind is one more thing to plan.
func (h Handler) Rollback() operation.Step { return operation.Step{} }

// Resume implements operation.Handler.
func (h Handler) Resume(at operatorv1alpha1.OperationPhase) operatorv1alpha1.OperationPhase {
	return at
}

// Waiting implements operation.Handler.
func (h Handler) Waiting(format string, args ...any) verdict.Verdict {
	return h.changing("%s: %s", h.Title(), fmt.Sprintf(format, args...))
}

// Title says what the operation is about.
func (h Handler) Title() string {
	o := h.Registry.Status.Operation
	if o.Type == operatorv1alpha1.OperationReplacement {
		return "etcd member " + o.To + " is replaced"
	}
	title := fmt.Sprintf("the number of etcd members is changed from %s to %s", o.From, o.To)
	if o.To == "1" {
		title += ", and from then on any failure or replacement of that member interrupts the service"
	}
	return title
}

// run takes the next step in its phase. It is complete when nothing is left to do.
func (h Handler) run(ctx context.Context) verdict.Verdict {
	o := h.Registry.Status.Operation
	if h.Step.Action == plan.Done {
		return verdict.Verdict{}
	}
	if phase := h.phase(); phase != o.Phase {
		if phase == operatorv1alpha1.PhaseSnapshot {
			h.nameSnapshot(o)
		}
		operation.Enter(o, phase, h.Now)
		return h.Waiting("starts").In(verdict.AtOnce)
	}
	if h.Step.Action == plan.RecordTarget {
		o.Type, o.To = operatorv1alpha1.OperationScale, fmt.Sprint(h.Step.Size)
		if o.From == "" {
			o.From = fmt.Sprint(len(h.Identity.Record.Members))
		}
	}
	v := h.Act(ctx, h.Step)
	if v.Err == nil {
		v.Message = h.Title() + ": " + v.Message
	}
	o.Progress = fmt.Sprintf("%s %d/%s", o.Phase, len(h.Identity.Record.Members), o.To)
	if o.Type == operatorv1alpha1.OperationReplacement {
		o.Progress = string(o.Phase)
	}
	return v
}

// phase returns the phase that the next step is a part of: the present one where it is only
// waited.
func (h Handler) phase() operatorv1alpha1.OperationPhase {
	record := h.Identity.Record
	switch h.Step.Action {
	case plan.Wait, plan.Hold, plan.ReleaseVolume, plan.RecreateSet:
		return h.Registry.Status.Operation.Phase
	case plan.TakeSnapshot:
		return operatorv1alpha1.PhaseSnapshot
	case plan.PointServers:
		return operatorv1alpha1.PhaseServerEndpoints
	case plan.RecordTarget, plan.IssueNames, plan.RecordClaimed:
		return operatorv1alpha1.PhasePreflight
	}
	if record.Joining != "" && h.Step.Action != plan.RecordLeaving || h.Step.Action == plan.RecordJoining {
		return operatorv1alpha1.PhaseMemberAddition
	}
	return operatorv1alpha1.PhaseMemberRemoval
}

// nameSnapshot names the next snapshot before it is taken.
func (c *Change) nameSnapshot(o *operatorv1alpha1.Operation) {
	o.Snapshot, o.SnapshotTime = strings.ToLower("before-scale-to-"+o.To+"-"+c.Now.UTC().Format("20060102T150405Z")), nil
}

// takeSnapshot takes the snapshot that the operation names, in its phase. One that has become
// old while something else was waited for is taken again under another name.
func (c *Change) takeSnapshot(ctx context.Context) verdict.Verdict {
	o := c.Registry.Status.Operation
	if !operation.ChangesMembers(o) {
		return c.changing("a snapshot is taken before the last member but one is removed, once the operation that is under way is complete")
	}
	saved, v := c.TakeSnapshot(ctx, o.Snapshot)
	if !v.Complete() {
		return v.In(verdict.Soon)
	}
	if c.Now.Sub(saved.CompletionTime) >= fresh {
		c.nameSnapshot(o)
		return c.changing("snapshot %s is too old by now, and the next one is %s", saved.Name, o.Snapshot).In(verdict.AtOnce)
	}
	o.SnapshotTime = &metav1.Time{Time: saved.CompletionTime}
	return c.changing("snapshot %s is complete", o.Snapshot).In(verdict.AtOnce)
}

// stale is how old the pod of a learner must be to be replaced, so that it is started with
// what is recorded by now and without the delay that kubelet adds after each failure.
const stale = time.Minute

// wait waits. The pod of a learner that its guard holds back may have begun before the
// learner was recorded.
func (c *Change) wait(ctx context.Context, step plan.Step) verdict.Verdict {
	name := c.Identity.Record.Joining
	if name != "" {
		claim := &corev1.PersistentVolumeClaim{}
		if err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.Registry.Namespace, Name: contract.EtcdMemberClaim(name)}, claim); err == nil && c.stuck(claim) {
			step.Message += fmt.Sprintf(": %s, and it is of StorageClass %q; if that class makes no volume for it, set spec.etcd.storage.storageClassName to another class", c.Diagnoser().Unbound(ctx, claim), volumes.Class(claim))
		}
	}
	if name == "" || c.Identity.Record.Members[name] == "" {
		return c.changing("%s", step.Message)
	}
	pods, err := c.Pods(ctx, operand.ComponentEtcd)
	if err != nil {
		return verdict.Failed(err)
	}
	found := pod(pods, name)
	if found == nil || !held(found) || c.Now.Sub(found.CreationTimestamp.Time) < stale {
		return c.changing("%s", step.Message)
	}
	return c.restart(ctx, name)
}

// held reports whether the guard holds a member back, and kubelet waits before it asks
// again.
func held(pod *corev1.Pod) bool {
	return diagnose.CrashLooping(pod, operand.ComponentEtcd) && slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		failure := diagnose.Failure(status)
		return failure != nil && slices.Contains([]int32{contract.GuardRefused, contract.GuardWaits, contract.GuardEmpty}, failure.ExitCode)
	})
}

// Completed says what the operation has done, for an event.
func (h Handler) Completed() string {
	o := h.Registry.Status.Operation
	if o.Type == operatorv1alpha1.OperationReplacement {
		return "etcd member " + o.To + " was replaced: the new one has the same data as all others"
	}
	return fmt.Sprintf("the number of etcd members was changed from %s to %s", o.From, o.To)
}
