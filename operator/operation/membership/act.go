package membership

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/etcd/plan"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Act takes a step, and says what is being done or waited for. It is called with the step
// that Next returned in the same reconcile, and not with plan.Done.
func (c *Change) Act(ctx context.Context, step plan.Step) verdict.Verdict {
	switch step.Action {
	case plan.Wait:
		return c.wait(ctx, step)
	case plan.Hold:
		return c.blocked("%s", step.Message)
	case plan.IssueNames:
		return c.changing("the certificates of etcd are issued with the names of %d members", step.Size)
	case plan.AddLearner, plan.Promote, plan.MoveLeader, plan.Remove, plan.Disarm:
		return c.actOnEtcd(ctx, step)
	case plan.Retain, plan.DeleteClaim, plan.DeletePod:
		return c.actOnVolume(ctx, step)
	case plan.TakeSnapshot:
		return c.takeSnapshot(ctx)
	case plan.RecreateSet:
		return c.recreate(ctx)
	case plan.ReleaseVolume:
		return c.release(ctx)
	case plan.Verify:
		if v := c.verify(ctx, c.member(step.Ordinal)); !v.Complete() {
			return v
		}
	}
	return c.write(ctx, step)
}

// verify is done when a member that has got its vote holds the same data as the others that
// serve, which are a majority with it.
func (c *Change) verify(ctx context.Context, joined string) verdict.Verdict {
	var names []string
	for _, m := range c.State.Members {
		if c.Identity.Record.Members[m.Name] != "" && m.Err == nil {
			names = append(names, m.Name)
		}
	}
	if !slices.Contains(names, joined) || len(names) < len(c.Identity.Record.Members)/2+1 {
		return c.changing("%s has a vote, and its data is compared with that of the others when a majority serves", joined)
	}
	err := c.Etcd.Agree(ctx, names...)
	if errors.As(err, new(*etcd.DataDiffers)) {
		return c.blocked("%s, after %s has joined: keep all volumes; which of them is right, etcd finds out at its next compaction, and raises its alarm CORRUPT for the other one", err, joined)
	}
	if err != nil {
		return c.changing("%s has a vote; its data is compared with that of the others: %s", joined, err)
	}
	return verdict.Verdict{}
}

// actOnEtcd changes etcd's own list of members, or who leads.
func (c *Change) actOnEtcd(ctx context.Context, step plan.Step) verdict.Verdict {
	if err := c.Writer().Err(); err != nil {
		return c.changing("nothing is changed until %s", c.ReadOnlyUntil()).In(verdict.Vigil)
	}
	name := c.member(step.Ordinal)
	var err error
	reason, did := "", ""
	switch step.Action {
	case plan.Disarm:
		name, reason, did = "alarm CORRUPT", "AlarmDisarmed", "was disarmed: the member with other data was removed, and those that are left agree"
		err = c.Etcd.DisarmCorrupt(ctx, c.State)
	case plan.AddLearner:
		reason, did = "MemberAdded", "was added to etcd as a learner, without a vote until it has the data"
		err = c.Etcd.AddLearner(ctx, c.State, render.EtcdMembers(c.Registry, []string{name})[0].PeerURL())
	case plan.Promote:
		reason, did = "MemberPromoted", "has caught up and got its vote"
		err = c.Etcd.Promote(ctx, c.State, step.ID)
	case plan.MoveLeader:
		reason, did = "LeaderMoved", "has handed over the leadership, since it is removed"
		err = c.Etcd.MoveLeader(ctx, c.State)
	default:
		reason, did = "MemberRemoved", "was removed from etcd"
		if name == c.differs {
			err = c.Etcd.Compare(ctx, name) // the last moment to find it as whole as the others
		}
		if err == nil {
			err = c.Etcd.Remove(ctx, c.State, step.ID)
		}
	}
	if err != nil {
		return c.changing("%s: %s", name, err)
	}
	c.Event(corev1.EventTypeNormal, reason, operatorv1alpha1.ConditionEtcdReady, "etcd: %s %s", name, did)
	return c.changing("%s %s", name, did).In(verdict.AtOnce)
}

// actOnVolume changes the claim or the pod of a member that etcd does not have.
func (c *Change) actOnVolume(ctx context.Context, step plan.Step) verdict.Verdict {
	name := c.member(step.Ordinal)
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: c.Registry.Namespace, Name: contract.EtcdMemberClaim(name)}
	err := c.Live.Get(ctx, key, claim)
	if step.Action == plan.DeletePod {
		return c.restart(ctx, name)
	}
	if client.IgnoreNotFound(err) != nil {
		return verdict.Failed(err)
	}
	if string(claim.UID) != step.UID {
		return c.changing("PersistentVolumeClaim %s is another one than a moment ago, or was deleted", key.Name).In(verdict.AtOnce)
	}
	if step.Action == plan.Retain {
		return c.retain(ctx, step.Ordinal, claim)
	}
	if err := c.Writer().DeleteClaim(ctx, claim); err != nil {
		return verdict.Failed(fmt.Errorf("delete PersistentVolumeClaim %s of an etcd member that was removed: %w", claim.Name, err))
	}
	return c.changing("PersistentVolumeClaim %s of %s, which was removed from etcd, is deleted", claim.Name, name).In(verdict.AtOnce)
}

// hangs is how long after its grace period a pod is taken for one whose node is gone.
const hangs = 2 * time.Minute

// restart has the pod of a member replaced.
func (c *Change) restart(ctx context.Context, name string) verdict.Verdict {
	pods, err := c.Pods(ctx, operand.ComponentEtcd)
	if err != nil {
		return verdict.Failed(err)
	}
	found := pod(pods, name)
	switch {
	case found == nil:
		return c.changing("pod %s is replaced", name)
	case found.DeletionTimestamp != nil && c.Now.Sub(found.DeletionTimestamp.Time) > hangs:
		return c.blocked("pod %s does not terminate: node %s, on which it is, may be gone. When you know that it does not run any more, delete that Node, or taint it: kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", name, found.Spec.NodeName, found.Spec.NodeName)
	case found.DeletionTimestamp != nil:
		return c.changing("pod %s on node %s is terminating", name, found.Spec.NodeName)
	}
	if err := c.Writer().Evict(ctx, found); err != nil {
		return c.changing("pod %s is to be replaced, but its eviction is refused for now: %s", name, err)
	}
	return c.changing("pod %s is replaced", name).In(verdict.AtOnce)
}

// write takes a step that changes the record.
func (c *Change) write(ctx context.Context, step plan.Step) verdict.Verdict {
	before := c.Identity.Record
	record := *before
	record.Members = maps.Clone(before.Members)
	message := change(&record, step, c.member(step.Ordinal))
	if same(before, &record) {
		return c.changing("%s", message) // what follows from it is under way
	}
	if err := c.Identity.Write(ctx, &record); err != nil {
		return c.notRecorded(err)
	}
	return c.changing("%s", message).In(verdict.AtOnce)
}

// notRecorded is the verdict on a record that could not be written.
func (c *Change) notRecorded(err error) verdict.Verdict {
	if apierrors.IsConflict(err) {
		return c.changing("ConfigMap %s, the record of etcd's identity, was changed at the same time", c.Name(contract.IdentitySuffix)).In(verdict.AtOnce)
	}
	return verdict.Failed(err)
}

// change changes a record as a step says, and returns what that is for.
func change(record *etcd.Record, step plan.Step, name string) string {
	size := int32(step.Size) //nolint:gosec // G115: the plan has no more than five
	switch step.Action {
	case plan.RecordTarget:
		record.Target = size
		return "etcd is to have " + count(size)
	case plan.RecordJoining:
		record.Joining, record.Claimed = name, max(record.Claimed, int32(step.Ordinal)+1) //nolint:gosec // G115: as above
		return name + " is added next"
	case plan.RecordID:
		// Its pod comes with that: the guard of each member learns of all that have one.
		record.Members[name], record.Replicas = step.ID, max(record.Replicas, int32(step.Ordinal)+1) //nolint:gosec // G115: as above
		return name + " was added as a learner, and starts"
	case plan.Resize:
		record.Replicas = size
		return fmt.Sprintf("the StatefulSet is scaled to %d", size)
	case plan.Verify:
		record.Joining = ""
		return name + " is a member, with the same data as all others"
	case plan.RecordLeaving:
		record.Joining, record.Leaving, record.LeavingClaim = "", name, step.UID
		if step.Message != "" {
			return name + " is removed next, and a new member takes its place: " + step.Message
		}
		return name + " is removed next"
	case plan.RecordStays:
		record.Leaving, record.LeavingClaim = "", ""
		return name + " stays"
	case plan.RecordRemoved:
		delete(record.Members, name)
		return name + " was removed from etcd"
	case plan.RecordClaimed:
		record.Claimed = size
		return "etcd has " + count(size)
	case plan.RecordLeft:
		*record = *record.Vacated(name)
		record.Joining, record.Leaving, record.LeavingClaim = "", "", ""
		return "nothing of " + name + " is left"
	case plan.PointServers:
		record.Endpoints = size
		return fmt.Sprintf("the servers are replaced one by one, to use %s", count(size))
	}
	return fmt.Sprintf("this operator does not know the step %s", step.Action)
}

// count returns a number of members, for a person.
func count(members int32) string {
	if members == 1 {
		return "one member"
	}
	return fmt.Sprintf("%d members", members)
}

// same reports whether a step has changed nothing.
func same(before, after *etcd.Record) bool {
	return before.Target == after.Target && before.Claimed == after.Claimed && before.Replicas == after.Replicas && before.Endpoints == after.Endpoints &&
		before.Joining == after.Joining && before.Leaving == after.Leaving && before.LeavingClaim == after.LeavingClaim && maps.Equal(before.Members, after.Members)
}
