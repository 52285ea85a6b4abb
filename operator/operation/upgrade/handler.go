package upgrade

import (
	"context"
	"fmt"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/upgrade/migration"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/snapshot"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// Handler is an upgrade as operation.Driver knows it: what one reconcile has found of
// the registry, and what an upgrade does to it.
type Handler struct {
	*Upgrade
	// Registry has its defaults filled in, and the status that this reconcile has found.
	// The upgrade writes its history.
	Registry *operatorv1alpha1.ClusterRegistry
	Now      time.Time

	// Stages are the conditions of the stages in their order, and Verdicts what was found,
	// by condition.
	Stages   []string
	Verdicts map[string]verdict.Verdict
	// EtcdState is what the registry's own etcd said, EtcdAccess how it was asked, and
	// EtcdIdentity what is recorded of it. All are empty where etcd is external.
	EtcdState    etcd.State
	EtcdAccess   etcd.Access
	EtcdIdentity etcd.Identity
	// EtcdQuota is how many bytes of data a member may hold.
	EtcdQuota int64
	// EtcdDetail is the message of etcd's verdict without what is being replaced.
	EtcdDetail string
	// Reveal decrypts what etcd holds, nil where nothing is encrypted.
	Reveal migration.Reveal
	// Servers are those that were found.
	Servers pass.Servers

	Notes   *Notes
	Actions Actions
}

// Registry is the API that clients use.
type Registry interface {
	// Verify tries what clients do with the given versions of the API.
	Verify(ctx context.Context, versions []string) error
	// Rewrite has a cluster stored again, by an update without a change.
	Rewrite(ctx context.Context, version, name string) error
}

// Actions are what an upgrade does to a registry, beside changing what is rendered.
type Actions interface {
	// Client returns a client of the registry.
	Client(ctx context.Context) (Registry, error)
	// RecordRelease records beside etcd the release whose servers write from now on.
	RecordRelease(ctx context.Context, release string) error
	// TakeSnapshot takes a snapshot of the registry's own etcd; see snapshot.Take.
	TakeSnapshot(ctx context.Context, name string) (snapshot.Saved, verdict.Verdict)
	// Event emits an event about the registry, of a type of corev1.
	Event(kind, reason, action, message string)
}

// Waiting implements operation.Handler. As long as a single etcd member is still to be
// replaced, it says that the registry will be down.
func (h Handler) Waiting(format string, args ...any) verdict.Verdict {
	u := h.Upgrade
	v := verdict.Waiting(string(u.Phase), format, args...).In(verdict.Soon)
	replaced := !u.From.Members.Same(u.To.Members)
	if h.Registry.Spec.Etcd.Replicas == 1 && replaced && !u.Reached(operatorv1alpha1.PhaseServer) && u.Phase != operatorv1alpha1.PhaseRollback {
		v.Message += "; etcd has a single member, and the registry is unavailable for some seconds while it is replaced"
	}
	return v
}

// progress notes how far the present phase is.
func (h Handler) progress(done, of int32) {
	h.Progress = fmt.Sprintf("%s %d/%d", h.Phase, done, of)
}

// enter has the next reconcile begin a phase.
func (h Handler) enter(phase operatorv1alpha1.OperationPhase) {
	operation.Enter(h.Operation, phase, h.Now)
}

// enlistTransition has the upgrade in the history as soon as it changes anything.
func (h Handler) enlistTransition() {
	if history.Last(h.Registry).State != operatorv1alpha1.TransitionProgressing {
		history.Begin(h.Registry, h.To.Version, h.Now)
	}
}

// fail rolls the servers back to the previous release, if that is possible.
func (h Handler) fail(format string, args ...any) verdict.Verdict {
	u, problem := h.Upgrade, fmt.Sprintf(format, args...)
	if version.CanReturn(u.From, u.To) {
		h.enter(operatorv1alpha1.PhaseRollback)
		u.Message = problem
		return h.Waiting("%s", problem).In(verdict.AtOnce)
	}
	data := "etcd is external: restore a backup of your own"
	if last := history.Last(h.Registry); last.Snapshot != "" {
		data = fmt.Sprintf("the snapshot %s (revision %d) in PersistentVolumeClaim %s%s has all that was written before", last.Snapshot, last.SnapshotRevision, h.Registry.Name, contract.SnapshotsSuffix)
	}
	return verdict.Waiting(operatorv1alpha1.ReasonUpgradeBlocked, "%s; %s. Fix the problem, or set spec.version to a later release; %s", problem, u.NoReturn(), data)
}
