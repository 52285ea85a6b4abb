// Package upgrade brings a registry from one release to another: what is rendered in
// each phase, and what each phase does. It begins when a snapshot of etcd was taken; then
// come etcd's members, then the servers, which have to do what clients will ask of them,
// and at last stored clusters are written in the version that the new release stores.
// Which upgrade begins, and when it is given up, is the reconciler's plan.
package upgrade

import (
	"fmt"
	"slices"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/version"
)

// Upgrade is the upgrade that is under way. Its phase is in the status, where it
// is written before it begins: an operator that was killed resumes there.
type Upgrade struct {
	*operatorv1alpha1.Operation
	// From and To are the releases: of each, the etcd members may be another one's.
	From, To version.Release
}

// phases are the phases of an upgrade, in their order.
var phases = []operatorv1alpha1.OperationPhase{
	operatorv1alpha1.PhasePreflight, operatorv1alpha1.PhaseSnapshot, operatorv1alpha1.PhaseEtcd,
	operatorv1alpha1.PhaseServer, operatorv1alpha1.PhaseVerification, operatorv1alpha1.PhaseStorageMigration,
}

// Reached reports whether a phase has begun on the way forward.
func (u *Upgrade) Reached(phase operatorv1alpha1.OperationPhase) bool {
	return slices.Index(phases, u.Phase) >= slices.Index(phases, phase)
}

// Release composes what is rendered in the present phase. A version of the API is
// taken from the host before servers come that lack it, and given to it when all
// servers have it.
func (u *Upgrade) Release() version.Release {
	servers, etcd, serves := u.From, u.From, u.From.Serves
	if u.Reached(operatorv1alpha1.PhaseEtcd) || u.Phase == operatorv1alpha1.PhaseRollback {
		etcd = u.To
	}
	if u.Reached(operatorv1alpha1.PhaseServer) || u.Phase == operatorv1alpha1.PhaseRollback {
		serves = version.ServesBoth(u.From, u.To)
	}
	if u.Reached(operatorv1alpha1.PhaseServer) {
		servers = u.To
	}
	if u.Reached(operatorv1alpha1.PhaseVerification) {
		serves = u.To.Serves
	}
	servers.Members, servers.Serves = etcd.Members, serves
	return servers
}

// NoReturn says why the servers of before can't come back.
func (u *Upgrade) NoReturn() string {
	return fmt.Sprintf("cannot roll back to %s, since it does not read %s, in which %s stores clusters", u.From.Version, u.To.Stores, u.To.Version)
}
