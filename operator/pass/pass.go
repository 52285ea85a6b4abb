// Package pass is what one reconcile of a registry knows: what was read, what follows from
// it, and what the stages have found so far. The reconcile fills it in, and hands it to those
// who act on one subject as a copy: they read it, and return what they have found. So no one
// else decides what a condition says, and none depends on who was called before.
package pass

import (
	"cmp"
	"fmt"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/keyring"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
	"github.com/clusterregistry/operator/operator/volumes"
)

// Pass is what is known so far. It is passed by value: what is set in a copy is lost.
type Pass struct {
	*operand.Objects
	// HostVersion is the version of the host cluster, such as v1.37.1.
	HostVersion string
	// Identity is the record of the registry's own etcd, and Volumes are those that it has.
	Identity *identity.Store
	Volumes  volumes.Volumes
	// Authorities are the CAs of the registry.
	Authorities *trust.Authorities
	// Keys are those with which the servers encrypt what they store.
	Keys keyring.Found
	// Aggregation tells whether the registry may be a part of the host cluster's API.
	Aggregation verdict.Verdict
	// InTheWay is what an earlier registry of the name has left, which the backup that etcd is
	// to begin with would replace; empty when there is nothing, or nothing is to be restored.
	InTheWay string
	// Release is what is rendered.
	Release version.Release
	// Members and Servers are what the stages of that name have found.
	Members Members
	Servers Servers

	verdict func(condition string) (v verdict.Verdict, reached bool)
}

// Found are verdicts by condition, of those that were reached.
type Found map[string]verdict.Verdict

// Verdict returns the verdict on a condition, and whether it was reached.
func (f Found) Verdict(condition string) (v verdict.Verdict, reached bool) {
	v, reached = f[condition]
	return v, reached
}

// New returns a pass of which nothing is known but the objects. What is known of a condition
// it asks the caller, who alone decides that.
func New(objects *operand.Objects, known func(condition string) (verdict.Verdict, bool)) Pass {
	return Pass{Objects: objects, Identity: identity.New(objects), Authorities: &trust.Authorities{}, verdict: known}
}

// A Note is what a person should know of a part that is ready.
type Note struct{ Condition, Reason, Message string }

// Verdict returns the verdict on a condition, and whether it was reached.
func (p Pass) Verdict(condition string) (v verdict.Verdict, reached bool) {
	return p.verdict(condition)
}

// Await returns an error that says which part is not ready, nil when all are.
func (p Pass) Await(conditions ...string) error {
	for _, condition := range conditions {
		if v, reached := p.Verdict(condition); !reached || !v.Complete() {
			return fmt.Errorf("waiting until %s is True: %s", condition, v.Message)
		}
	}
	return nil
}

// Planned is the condition of the plan, which comes before the stages.
const Planned = operatorv1alpha1.ConditionVersionSupported

// Parts are the conditions of the plan and of the stages of a mode, in their order: what
// clients need. An upgrade goes by them.
func Parts(mode operatorv1alpha1.Mode) []string {
	return []string{Planned, operatorv1alpha1.ConditionCertificatesReady, operatorv1alpha1.ConditionEtcdReady, operatorv1alpha1.ConditionServerReady, Last(mode)}
}

// Last is the condition of the last stage of a mode, by which the registry is published.
func Last(mode operatorv1alpha1.Mode) string {
	if mode == operatorv1alpha1.ModeAggregated {
		return operatorv1alpha1.ConditionAPIServiceReady
	}
	return operatorv1alpha1.ConditionEndpointReady
}

// Frozen returns what a stage says that made this pass read-only, nothing when none did. A
// pause is not among them.
func (p Pass) Frozen() string {
	for _, condition := range Parts(p.Registry.Spec.Mode) {
		if v, _ := p.Verdict(condition); v.State == verdict.ReadOnly {
			return condition + ": " + v.Message
		}
	}
	return ""
}

// Halted returns why nothing is to be changed, and what ends that; an empty reason when
// changes may be made.
func (p Pass) Halted() (reason, until string) {
	switch {
	case p.Registry.Spec.Paused:
		return operatorv1alpha1.ReasonPaused, "spec.paused is false"
	case !p.Aggregation.Complete():
		return p.Aggregation.Reason, "mode Aggregated is allowed in namespace " + p.Registry.Namespace
	}
	return "", ""
}

// Paused says what ends that nothing may be changed now, nothing when changes may be made, and
// the condition of the part that it is about, none where a person has paused all of them. An
// upgrade is paused between its phases, never in the middle of one, and a change of etcd's
// members not while a member joins or leaves.
func (p Pass) Paused() (condition, until string) {
	o := p.Registry.Status.Operation
	between := !p.Upgrading() || o.PhaseCompleted || o.Phase == operatorv1alpha1.PhasePreflight
	between = between && !p.Identity.Record.Changing()
	reason, until := p.Halted()
	switch {
	case reason == "" || !between:
		return "", ""
	case reason == operatorv1alpha1.ReasonPaused:
		return "", until
	}
	return operatorv1alpha1.ConditionAPIServiceReady, until
}

// PausedUntil says what ends that nothing may be changed now, nothing when changes may be made.
func (p Pass) PausedUntil() string {
	_, until := p.Paused()
	return until
}

// Deleting says that the registry is being deleted and why, nothing when it is not.
func (p Pass) Deleting() string {
	switch {
	case p.Registry.DeletionTimestamp != nil:
		return "the registry is being deleted"
	case p.Terminating:
		return fmt.Sprintf("the registry is being deleted with its namespace %s, which is terminating", p.Registry.Namespace)
	}
	return ""
}

// OnlyClaimDeleted reports whether etcd serves with one member, of which someone has deleted the
// claim. What leads out of that is to have more members: it waits for no operation, since all may
// wait for it.
func (p Pass) OnlyClaimDeleted() bool {
	v, _ := p.Verdict(operatorv1alpha1.ConditionEtcdReady)
	return v.State == verdict.Degraded && v.Reason == operatorv1alpha1.ReasonClaimTerminating && p.Identity.Record != nil && len(p.Identity.Record.Members) == 1
}

// Unsteady says what keeps the registry from being steady, nothing when it is: it was complete
// once, all its parts are ready and nothing that serves clients is being replaced. Which release
// it should run does not matter.
func (p Pass) Unsteady() string {
	for _, condition := range Parts(p.Registry.Spec.Mode) {
		switch v, reached := p.Verdict(condition); {
		case condition == Planned:
		case !reached:
			return condition + " is not known yet"
		case !v.Complete():
			return condition + ": " + v.Message
		}
	}
	if !p.Installed() {
		return "the registry is being installed"
	}
	return cmp.Or(p.Servers.Rolling, p.ReplacingMembers())
}

// ReplacingMembers says that etcd members are being replaced, or are about to be.
func (p Pass) ReplacingMembers() string {
	if p.Members.Rolling == "" && p.Members.Replacing {
		return "etcd members are being replaced"
	}
	return p.Members.Rolling
}

// Upgrading reports whether an upgrade is under way.
func (p Pass) Upgrading() bool {
	o := p.Registry.Status.Operation
	return o != nil && o.Type == operatorv1alpha1.OperationUpgrade
}

// Recovering returns the recovery from a lost quorum that is under way, nil when none is.
func (p Pass) Recovering() *etcd.Recovered {
	if record := p.Identity.Record; record != nil && record.Recovered.Pending() {
		return record.Recovered
	}
	return nil
}

// Running returns the release that runs or, before servers do, the one that has written the
// data, if any did.
func (p Pass) Running() string {
	if p.Registry.Status.Version == "" && p.Identity.Record != nil {
		return p.Identity.Record.Release
	}
	return p.Registry.Status.Version
}

// Lineage is the ID of the data, empty where none is recorded.
func (p Pass) Lineage() string {
	if p.Identity.Record == nil {
		return ""
	}
	return p.Identity.Record.Lineage
}

// KeyIDs are the names of the keys that servers have, as far as is known.
func (p Pass) KeyIDs() []string {
	if known := p.Registry.Status.Encryption; p.Keys.InUse == nil && known != nil {
		return known.Reads
	}
	return p.Keys.InUse.IDs()
}
