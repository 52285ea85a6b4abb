package members

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Run observes etcd, and replaces a member where one is to be replaced and may be.
func (s *Stage) Run(ctx context.Context) pass.Members {
	s.found = pass.Members{}
	if s.Registry.Spec.Etcd.External != nil {
		s.found.Verdict = s.external(ctx)
	} else {
		s.found.Verdict = s.selfHosted(ctx)
	}
	if s.found.Detail == "" {
		s.found.Detail = s.found.Message
	}
	return s.found
}

// selfHosted is done when every member of the registry's own etcd serves, as the one that it was
// recorded as, from a pod of the latest template.
func (s *Stage) selfHosted(ctx context.Context) verdict.Verdict {
	if s.Identity.Err != nil {
		return verdict.Failed(s.Identity.Err)
	}
	if s.Identity.Record == nil && s.ReadOnly() {
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "ConfigMap %s, the record of etcd's identity, does not exist yet", s.Registry.Name+contract.IdentitySuffix)
	}
	if replicas := s.Registry.Spec.Etcd.Replicas; s.Identity.Record == nil && replicas < 1 {
		// Past the schema; it must not be recorded.
		return verdict.Waiting(operatorv1alpha1.ReasonReplicasDiffer, "spec.etcd.replicas is %d, and etcd needs members: set it to 1, 3 or 5", replicas).AsReadOnly()
	}
	if s.Identity.Record == nil {
		first := s.firstRecord()
		if s.Begin != nil {
			first = s.Begin(first)
		}
		if err := s.Identity.Write(ctx, first); err != nil {
			return verdict.Failed(err)
		}
		if first.Restored.Pending() {
			// What is rendered is not for that yet.
			return verdict.Waiting(operatorv1alpha1.ReasonRestoring, "which backup etcd begins with was recorded just now").In(verdict.AtOnce)
		}
	}
	if err := s.Identity.Adopt(ctx); err != nil {
		return verdict.Failed(err)
	}
	if v := s.identityProblem(); !v.Complete() {
		return v
	}
	if v := trust.Reissue(ctx, s.Objects, s.Authorities.EtcdLeaves()); !v.Complete() {
		return v
	}
	if v := s.recordIsCurrent(ctx); !v.Complete() {
		return v
	}
	if err := apply.IgnoreReadOnly(s.Apply(ctx, s.Rendered.Stages[render.StageEtcd]...)); err != nil {
		return verdict.Failed(err)
	}
	again := s.grow(ctx)
	claims := s.claimsStay(ctx) // before any pod goes
	v := s.restoring(s.besides(claims, s.members(ctx)))
	if again > 0 && (v.After == 0 || again < v.After) {
		v = v.In(again)
	}
	return v
}

// members observes the members and records who they are as soon as all are ready.
func (s *Stage) members(ctx context.Context) verdict.Verdict {
	set := &appsv1.StatefulSet{}
	if v := s.Applied(ctx, render.StageEtcd, set); !v.Complete() {
		s.found.Replacing = true
		return v
	}
	pods, err := s.Pods(ctx, operand.ComponentEtcd)
	if err != nil {
		return verdict.Failed(err)
	}
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return s.joinsLater(pod.Name) })
	access, v := s.access(ctx)
	if !v.Complete() {
		return v
	}
	s.reach(&access, pods)
	state := s.Ask(ctx, access)
	s.reportEtcd(state)
	s.found.State, s.found.Access = state, access
	if v := s.endEarlier(ctx, state, pods); !v.Complete() {
		return v
	}
	if err := state.Check(s.Identity.Record.Identity); err != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "%s; nothing is changed until the members that were recorded are back", err).AsReadOnly()
	}
	if s.Identity.Record.Restored.Pending() && state.Joined(s.Identity.Record.Identity, s.Identity.Members()[0]) {
		return s.restored(ctx)
	}
	if v := s.wentBack(ctx, state); !v.Complete() {
		return v
	}
	outdated := outdatedPods(set, pods)
	learned, err := s.learn(ctx, currentPods(set, pods, outdated))
	if err != nil {
		return verdict.Failed(err)
	}
	id := s.Identity.Record
	s.Registry.Status.Etcd.ClusterID = cmp.Or(id.ClusterID, s.Registry.Status.Etcd.ClusterID) // another one of a restored etcd
	current := len(pods) - len(outdated)
	// Pods of which the claim was deleted stay: what waits for the others does not wait for them.
	deleted := s.deletedClaims()
	outdated = slices.DeleteFunc(outdated, func(name string) bool { return deleted[name] != nil })
	next := roll{access, state, id.Identity, pods, outdated, s.Volumes.EtcdQuota(s.Registry)}
	s.found.Replacing = set.Status.ObservedGeneration < set.Generation || s.underWay(len(access.Endpoints)-state.Serving(), pods, outdated) || next.proceeds()
	if len(outdated) > 0 {
		s.found.Rolling = fmt.Sprintf("etcd: %d of %d members updated", current, len(pods))
	}
	if v := s.rollStuck(ctx, pods, outdated); !v.Complete() {
		return v
	}
	serves := id.ClusterID != "" && state.Serves() == nil
	if refusal := diagnose.Guard(s.staying(pods)); refusal != "" {
		return verdict.Waiting(operatorv1alpha1.ReasonDataLost, "%s", refusal).DegradedIf(serves)
	}
	if v := s.etcdTrouble(); !v.Complete() {
		if failures := state.Failures(); failures != "" && v.Reason != operatorv1alpha1.ReasonCorrupt {
			v.Message += "; besides, " + s.membersProblem(ctx, state, set, pods)
		}
		switch {
		case v.Reason != operatorv1alpha1.ReasonNoSpace || set.Status.ObservedGeneration < set.Generation:
		case learned: // which may change what the members should run
			v = v.In(verdict.AtOnce)
		default:
			v = s.makeRoom(ctx, v, next)
		}
		return v.DegradedIf(serves)
	}
	if state.Serving() < len(access.Endpoints) || id.ClusterID == "" {
		if next.mends() && !next.lingers(s.Now) {
			return s.rollMember(ctx, next)
		}
		return verdict.Waiting(operand.MemoryReason(operatorv1alpha1.ReasonMembersNotReady, pods, s.Now), "%d of %d etcd members ready: %s", state.Serving(), len(access.Endpoints), s.membersProblem(ctx, state, set, pods)).DegradedIf(serves)
	}
	if set.Status.ObservedGeneration < set.Generation {
		return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "StatefulSet %s has changed, and its controller has not observed the change yet", set.Name).In(verdict.Soon).DegradedIf(true)
	}
	if len(outdated) == 0 {
		return operand.NoteMemory(s.volumesNoted(s.spreadNoted(ctx, done, pods)), pods, s.Now)
	}
	if learned {
		return s.rolls(verdict.Waiting(operatorv1alpha1.ReasonProgressing, "what the members run was recorded just now, and may change what they should run").In(verdict.AtOnce).DegradedIf(true))
	}
	return s.rollMember(ctx, next)
}

// reach has the members be asked that there are, at their pods.
func (s *Stage) reach(access *etcd.Access, pods []corev1.Pod) {
	for _, member := range render.EtcdMembers(s.Registry, s.Identity.Members()) {
		if !s.joinsLater(member.Name) {
			access.Endpoints[member.Name] = member.ClientURL()
		}
	}
	for _, pod := range pods {
		if pod.Status.PodIP != "" {
			access.Addresses[pod.Name] = net.JoinHostPort(pod.Status.PodIP, contract.EtcdClientPort)
		}
	}
}

// joinsLater reports whether a pod is of an ordinal below that of the member with which etcd was
// recovered, and is to join: until then it is no member, and its guard does not let it start.
func (s *Stage) joinsLater(name string) bool {
	return s.Identity.Record.Recovered != nil && s.Identity.Record.Members[name] == ""
}

// staying returns the pods of members that neither join nor leave: what the guard of one of
// those says is no one's loss.
func (s *Stage) staying(pods []corev1.Pod) []corev1.Pod {
	record := s.Identity.Record
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return pod.Name == record.Joining || pod.Name == record.Leaving })
}
