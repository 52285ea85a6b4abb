package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Steps implements operation.Handler. An external etcd is neither saved nor upgraded.
func (h Handler) Steps() []operation.Step {
	own := []operation.Step{
		{Phase: operatorv1alpha1.PhaseSnapshot, Run: h.snapshot, Prepare: h.nameSnapshot},
		{Phase: operatorv1alpha1.PhaseEtcd, Run: h.etcd},
	}
	if h.Registry.Spec.Etcd.External != nil {
		own = nil
	}
	return slices.Concat([]operation.Step{{Phase: operatorv1alpha1.PhasePreflight, Run: h.preflight}}, own, []operation.Step{
		{Phase: operatorv1alpha1.PhaseServer, Run: h.servers, Prepare: h.recordTarget},
		{Phase: operatorv1alpha1.PhaseVerification, Run: h.verify},
		{Phase: operatorv1alpha1.PhaseStorageMigration, Run: h.migrate},
	})
}

// Rollback implements operation.Handler.
func (h Handler) Rollback() operation.Step {
	return operation.Step{Phase: operatorv1alpha1.PhaseRollback, Run: h.returned}
}

// Resume implements operation.Handler. As long as no server was touched, the upgrade
// begins again: its snapshot would lack what was written since.
func (h Handler) Resume(at operatorv1alpha1.OperationPhase) operatorv1alpha1.OperationPhase {
	if h.Reached(operatorv1alpha1.PhaseServer) {
		return at
	}
	return operatorv1alpha1.PhasePreflight
}

// nameSnapshot names the snapshot before it is taken.
func (h Handler) nameSnapshot(_ context.Context) verdict.Verdict {
	h.enlistTransition()
	h.Snapshot = strings.ToLower(fmt.Sprintf("%s-before-%s-%s", h.From.Version, h.To.Version, h.Now.UTC().Format("20060102T150405Z")))
	return verdict.Verdict{}
}

// recordTarget records the release whose servers come next: from here on, the data may
// be what only that one reads.
func (h Handler) recordTarget(ctx context.Context) verdict.Verdict {
	h.enlistTransition()
	if err := h.Actions.RecordRelease(ctx, h.To.Version); err != nil {
		return verdict.Failed(err)
	}
	return verdict.Verdict{}
}
