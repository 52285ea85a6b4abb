package membership

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/etcd/plan"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/placement"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/turn"
	"github.com/clusterregistry/operator/operator/verdict"
)

// fresh is how old a snapshot may be for a member to be removed that is the last but one.
const fresh = 30 * time.Minute

// observe returns what there is. Claims are read from the host cluster itself: what is
// deleted is decided by them.
func (c *Change) observe(ctx context.Context, record plan.Record) (plan.Observed, verdict.Verdict) {
	set := &appsv1.StatefulSet{}
	if v := c.Applied(ctx, render.StageEtcd, set); !v.Complete() {
		return plan.Observed{}, v
	}
	if set.DeletionTimestamp != nil {
		return plan.Observed{}, c.changing("StatefulSet %s is being deleted, and is recreated then", set.Name)
	}
	if set.Status.ObservedGeneration < set.Generation || set.Spec.Replicas == nil {
		return plan.Observed{}, c.changing("StatefulSet %s has changed, and its controller has not observed the change yet", set.Name)
	}
	seen := plan.Observed{Known: c.State.ListErr == nil, Size: int(*set.Spec.Replicas), Pods: map[int]plan.Pod{}, Claims: map[int]plan.Claim{}, Lost: map[int]string{}, Moves: map[int]string{}, Nodes: Most}
	if !operation.ChangesMembers(c.Registry.Status.Operation) {
		// What else changes the StatefulSet's size is undone when it is applied.
		seen.Size = len(c.Identity.Members())
	}
	seen.Kept = len(c.Identity.Record.Kept) > 0 && c.Registry.Spec.DeletionPolicy == operatorv1alpha1.DeletionPolicyDelete
	seen.List = c.list()
	c.alarms(ctx, &seen)
	claims, err := c.claims(ctx, record)
	if err != nil {
		return plan.Observed{}, verdict.Failed(err)
	}
	pods, err := c.Pods(ctx, operand.ComponentEtcd)
	if err != nil {
		return plan.Observed{}, verdict.Failed(err)
	}
	for i := range pods {
		if ordinal := c.ordinal(pods[i].Name); ordinal != plan.None {
			seen.Pods[ordinal] = plan.Pod{Claim: startedWith(&pods[i], claims[ordinal], record.Claim)}
		}
	}
	for ordinal, claim := range claims {
		retained := false
		if (ordinal == record.Leaving || string(claim.UID) == record.Abandoned[ordinal]) && claim.DeletionTimestamp == nil {
			if retained, err = c.retained(ctx, claim); err != nil && !apierrors.IsForbidden(err) {
				return plan.Observed{}, verdict.Failed(err)
			}
		}
		seen.Claims[ordinal] = plan.Claim{UID: string(claim.UID), Terminating: claim.DeletionTimestamp != nil, Retained: retained || claim.DeletionTimestamp != nil}
	}
	if err := c.moves(ctx, &seen, record, set, pods, claims); err != nil {
		return plan.Observed{}, verdict.Failed(err)
	}
	if err := c.classes(ctx, &seen, record, claims); err != nil {
		return plan.Observed{}, verdict.Failed(err)
	}
	if err := c.observeRest(ctx, &seen, record, pods, claims); err != nil {
		return plan.Observed{}, verdict.Failed(err)
	}
	return seen, verdict.Verdict{}
}

// observeRest observes what members need of the rest of the registry and of the host
// cluster. What only a member that is to be added needs is read where there is one: this is
// part of every reconcile.
func (c *Change) observeRest(ctx context.Context, seen *plan.Observed, record plan.Record, pods []corev1.Pod, claims map[int]*corev1.PersistentVolumeClaim) (err error) {
	if err := c.lost(ctx, seen, pods, claims); err != nil {
		return err
	}
	if c.lacks(record) {
		if seen.Named, err = c.certified(ctx); err != nil {
			return err
		}
	}
	if seen.Servers, err = c.servers(ctx, len(c.spec().Replace)+len(seen.Moves) > 0); err != nil {
		return err
	}
	if c.spec().Replicas > int(c.Identity.Record.Replicas) {
		if seen.Nodes, err = c.nodes(ctx); err != nil {
			return err
		}
	}
	if len(record.IDs) > c.spec().Replicas {
		seen.Differs, seen.Uncompared = c.compared(ctx)
	}
	if o := c.Registry.Status.Operation; operation.ChangesMembers(o) && o.SnapshotTime != nil {
		seen.Snapshot = c.Now.Sub(o.SnapshotTime.Time) < fresh
	}
	return nil
}

// lacks reports whether a member that is asked for is not there.
func (c *Change) lacks(record plan.Record) bool {
	for ordinal := range c.spec().Replicas {
		if record.IDs[ordinal] == "" {
			return true
		}
	}
	return false
}

// moves observes which members are to run where their volume can't follow: those whose pods
// are not of the latest template, or can't be scheduled. Volumes and nodes are not read for
// others.
func (c *Change) moves(ctx context.Context, seen *plan.Observed, record plan.Record, set *appsv1.StatefulSet, pods []corev1.Pod, claims map[int]*corev1.PersistentVolumeClaim) error {
	for i := range pods {
		ordinal := c.ordinal(pods[i].Name)
		outdated := set.Status.UpdateRevision != "" && pods[i].Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision
		if ordinal == plan.None || !outdated && pods[i].Spec.NodeName != "" {
			continue
		}
		why, err := placement.Stays(ctx, c.Live, claims[ordinal], c.Registry.Spec.Etcd.Pods)
		if err != nil {
			return err
		}
		if why == "" && ordinal != record.Joining {
			if why, err = c.crowded(ctx, &pods[i], pods, claims[ordinal]); err != nil {
				return err
			}
		}
		switch {
		case why == "":
		case ordinal != record.Joining:
			seen.Moves[ordinal] = why
		default:
			follows, err := c.followsPod(ctx, claims[ordinal])
			if err != nil {
				return err
			}
			if follows {
				seen.Moves[ordinal] = why // the spec has changed meanwhile
			} else {
				seen.Misplaced = c.misplaced(ordinal, claims[ordinal], why)
			}
		}
	}
	return nil
}

// list returns etcd's own list of members.
func (c *Change) list() []plan.Listed {
	members, newest := c.members(), uint64(0)
	for _, m := range c.State.Members {
		newest = max(newest, m.CommittedIndex)
	}
	var out []plan.Listed
	for _, l := range c.State.List {
		listed := plan.Listed{ID: l.ID, Named: l.Name != "", Learner: l.Learner}
		listed.Ordinal = slices.IndexFunc(members, func(m render.EtcdMember) bool { return slices.Contains(l.PeerURLs, m.PeerURL()) })
		if i := slices.IndexFunc(c.State.Members, func(m etcd.Member) bool { return m.ID == l.ID }); i >= 0 {
			m := c.State.Members[i]
			listed.Serves, listed.Leads = m.Err == nil, m.Err == nil && m.Leads()
			if l.Learner {
				// It completes no linearizable read. How much it may lack is for etcd to
				// decide, too, when it is promoted.
				listed.Serves = m.Learner && m.AppliedIndex > 0 && m.AppliedIndex >= newest/10*9
			}
		}
		out = append(out, listed)
	}
	return out
}

// claims returns the claims of members' names, by ordinal: of those that were ever claimed, and
// of those that are asked for.
func (c *Change) claims(ctx context.Context, record plan.Record) (map[int]*corev1.PersistentVolumeClaim, error) {
	out, count := map[int]*corev1.PersistentVolumeClaim{}, max(record.Claimed, c.spec().Replicas, record.Joining+1, record.Leaving+1)
	for ordinal := range record.IDs {
		count = max(count, ordinal+1)
	}
	for ordinal := range min(count, Most) {
		claim := &corev1.PersistentVolumeClaim{}
		err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.Registry.Namespace, Name: contract.EtcdMemberClaim(c.member(ordinal))}, claim)
		switch {
		case err == nil:
			out[ordinal] = claim
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return out, nil
}

// startedWith returns the UID of the claim that a pod was started with. A pod refers to its
// claim by name: one that is older than the claim of that name was started with the one before,
// which is the one that leaves if any does.
func startedWith(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, leaving string) string {
	if claim == nil || pod.CreationTimestamp.Before(&claim.CreationTimestamp) {
		return leaving
	}
	return string(claim.UID)
}

// certified returns the number of members, from the first one on, whose names the
// certificates have that are issued for etcd.
func (c *Change) certified(ctx context.Context) (int, error) {
	members, count := c.members(), Most
	for _, suffix := range []string{contract.EtcdServerSuffix, contract.EtcdPeerSuffix} {
		content, err := c.SecretValue(ctx, c.Name(suffix), corev1.TLSCertKey)
		if err != nil {
			return 0, err
		}
		var certificate x509.Certificate
		if block, _ := pem.Decode(content); block != nil {
			if parsed, err := x509.ParseCertificate(block.Bytes); err == nil {
				certificate = *parsed
			}
		}
		if i := slices.IndexFunc(members, func(m render.EtcdMember) bool { return !slices.Contains(certificate.DNSNames, m.Host) }); i >= 0 {
			count = min(count, i)
		}
	}
	return count, nil
}

// servers returns how many members the servers use. While that is being changed, it is more
// than there can be: none of those that they used may go yet. Beside another operation, only one
// that is to be replaced could go while it serves.
func (c *Change) servers(ctx context.Context, replaces bool) (int, error) {
	if !replaces && !operation.ChangesMembers(c.Registry.Status.Operation) {
		return int(c.Identity.Record.Endpoints), nil
	}
	// Not from the cache, which has no arguments of containers.
	deployment := &appsv1.Deployment{}
	if err := c.Live.Get(ctx, c.Key(contract.ServerSuffix), deployment); err != nil {
		return Most + 1, client.IgnoreNotFound(err)
	}
	if replacing, err := turn.Servers(ctx, c.Objects); replacing || err != nil {
		return Most + 1, err
	}
	endpoints := strings.Join(render.EtcdEndpoints(c.Registry, c.Identity.Endpoints()), ",")
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if slices.Contains(container.Args, "--etcd-servers="+endpoints) {
			return int(c.Identity.Record.Endpoints), nil
		}
	}
	return Most + 1, nil
}
