package clusterregistry

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/auditing"
	"github.com/clusterregistry/operator/operator/available"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/keyring"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/stage/apiservice"
	"github.com/clusterregistry/operator/operator/stage/controller"
	"github.com/clusterregistry/operator/operator/stage/members"
	"github.com/clusterregistry/operator/operator/stage/server"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
	"github.com/clusterregistry/operator/operator/volumes"
)

// scope is one reconcile of one registry: what was read, what follows from it, and
// what came of each stage.
type scope struct {
	*operand.Objects
	// host is the version of the host, such as v1.37.1, and hostMinor the one that
	// servers are made for, such as 1.37.
	host, hostMinor string
	// uidRange are the users that the platform gives to pods of the namespace, empty for none.
	uidRange string
	// authorities are the CAs of the registry.
	authorities *trust.Authorities
	// addresses lead to the servers from outside, the one for clients first.
	addresses []string

	// identity is the record of the registry's own etcd, and volumes are those that it has.
	identity *identity.Store
	volumes  volumes.Volumes
	// keys are those with which the servers encrypt what they store.
	keys keyring.Found
	// audit is what the servers are to record of requests.
	audit auditing.Found
	// visibility is which clusters the servers show.
	visibility shown
	// reach is where the controller may work.
	reach reach
	// aggregation tells whether the registry may be a part of the host cluster's API.
	aggregation verdict.Verdict
	// release is what is rendered, and upgrade how far it is on its way to another.
	release version.Release
	upgrade *upgrade.Upgrade
	// operation is what an operation beside the upgrade waits for, done when there is none.
	operation verdict.Verdict
	// retraction is what it waits for that the reports of a controller which was removed
	// are taken back, done when there are none.
	retraction verdict.Verdict
	// verdicts are what was found, by condition.
	verdicts map[string]verdict.Verdict
	// members, servers, controller and available are what the stages of that name found,
	// and registration what that of the APIService did.
	members      members.Found
	servers      server.Found
	registration apiservice.Found
	controller   controller.Found
	available    available.Found
	// backups are those of the registry, and what is to be done about them.
	backups backups
	// savingFirst is true of a registry that is being deleted, and runs on until its last
	// backup is verified.
	savingFirst bool
	// restore is the backup that etcd is to begin with, and what is known of it.
	restore restoration
}

func newScope(objects *operand.Objects) *scope {
	return &scope{Objects: objects, authorities: &trust.Authorities{}, identity: identity.New(objects), verdicts: map[string]verdict.Verdict{}}
}

// frozenBy returns what a stage says that made this pass read-only, nothing when
// none did. A pause is not among them.
func (s *scope) frozenBy() string {
	for _, kind := range parts(s.Registry.Spec.Mode) {
		if v := s.verdicts[kind]; v.State == verdict.ReadOnly {
			return kind + ": " + v.Message
		}
	}
	return ""
}

// done is the verdict of a stage that has nothing to say.
var done verdict.Verdict

// halted returns why nothing is to be changed, and what ends that; an empty reason
// when changes may be made.
func (s *scope) halted() (reason, until string) {
	switch {
	case s.Registry.Spec.Paused:
		return operatorv1alpha1.ReasonPaused, "spec.paused is false"
	case !s.aggregation.Complete():
		return s.aggregation.Reason, "mode Aggregated is allowed in namespace " + s.Registry.Namespace
	}
	return "", ""
}

// deleting says that the registry is being deleted and why, nothing when it is not.
func (s *scope) deleting() string {
	switch {
	case s.Registry.DeletionTimestamp != nil:
		return "the registry is being deleted"
	case s.Terminating:
		return fmt.Sprintf("the registry is being deleted with its namespace %s, which is terminating", s.Registry.Namespace)
	}
	return ""
}

// record keeps what came of a stage and returns whether the next one follows. In
// a registry that was complete once, or that is being recovered, all stages run, since there
// each of them has something to look after.
func (s *scope) record(condition string, v verdict.Verdict) (proceed bool) {
	s.verdicts[condition] = v
	if v.State == verdict.ReadOnly {
		s.Freeze("this is resolved: " + condition + ": " + v.Message)
	}
	return v.Usable() || (s.Installed() || s.recovering() != nil) && s.Rendered != nil
}

// pausedUntil says what ends that nothing may be changed now, nothing when changes may
// be made. An upgrade is paused between its phases, never in the middle of one, and a change
// of etcd's members not while a member joins or leaves.
func (s *scope) pausedUntil() string {
	between := s.upgrade == nil || s.upgrade.PhaseCompleted || s.upgrade.Phase == operatorv1alpha1.PhasePreflight
	between = between && !membership.UnderWay(s.identity.Record)
	if reason, until := s.halted(); reason != "" && between {
		return until
	}
	return ""
}

// patchFinalizers changes nothing of a registry but its finalizers, and only if
// no one else has changed the registry since it was read.
func (r *Reconciler) patchFinalizers(ctx context.Context, s *scope, change func(client.Object, string) bool) error {
	before := &operatorv1alpha1.ClusterRegistry{}
	before.Name, before.Namespace, before.ResourceVersion = s.Registry.Name, s.Registry.Namespace, s.Registry.ResourceVersion
	before.Finalizers = s.Registry.Finalizers
	after := before.DeepCopy()
	change(after, operatorv1alpha1.Finalizer)
	return r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// running returns the release that runs or, before servers do, the one that has
// written the data, if any did.
func (s *scope) running() string {
	if s.Registry.Status.Version == "" && s.identity.Record != nil {
		return s.identity.Record.Release
	}
	return s.Registry.Status.Version
}

// membersOf returns the release that etcd's members are of, empty when none is
// recorded.
func (s *scope) membersOf() string {
	if s.identity.Record == nil {
		return ""
	}
	return s.identity.Record.EtcdRelease
}

// etcdSeen are the versions of etcd that members have run.
func (s *scope) etcdSeen() []string {
	var seen []string
	if s.Registry.Spec.Etcd.External != nil {
		return nil
	}
	if s.identity.Record != nil {
		seen = append(seen, s.identity.Record.EtcdVersion)
	}
	for _, member := range s.Before.Etcd.Members {
		seen = append(seen, member.Version)
	}
	return seen
}

// planned is the condition of the plan, which comes before the stages.
const planned = operatorv1alpha1.ConditionVersionSupported

// parts are the conditions of the plan and of the stages of a mode, in their order: what
// clients need. An upgrade goes by them.
func parts(mode operatorv1alpha1.Mode) []string {
	last := operatorv1alpha1.ConditionEndpointReady
	if mode == operatorv1alpha1.ModeAggregated {
		last = operatorv1alpha1.ConditionAPIServiceReady
	}
	return []string{planned, operatorv1alpha1.ConditionCertificatesReady, operatorv1alpha1.ConditionEtcdReady, operatorv1alpha1.ConditionServerReady, last}
}

// allParts are the conditions of parts, and of what acts on the content of the registry
// where the spec asks for that: what Ready sums up.
func (s *scope) allParts() []string {
	out := parts(s.Registry.Spec.Mode)
	if len(s.Registry.Spec.Controllers.Functions()) > 0 {
		out = append(out, operatorv1alpha1.ConditionControllerReady)
	}
	if s.Registry.Spec.Backup != nil {
		out = append(out, operatorv1alpha1.ConditionBackupReady)
	}
	return out
}
