package clusterregistry

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/auditing"
	"github.com/clusterregistry/operator/operator/available"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/permission"
	"github.com/clusterregistry/operator/operator/stage/apiservice"
	"github.com/clusterregistry/operator/operator/stage/backups"
	"github.com/clusterregistry/operator/operator/stage/controller"
	"github.com/clusterregistry/operator/operator/stage/restoring"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/visibility"
)

// scope is one reconcile of one registry: what it knows, and what came of each stage.
type scope struct {
	pass.Pass
	// found is what came of the stages, by condition, and since what else was found of their
	// parts after that.
	found pass.Found
	since since
	// hostMinor is the minor version of the host that servers are made for, such as 1.37.
	hostMinor string
	// uidRange are the users that the platform gives to pods of the namespace, empty for none.
	uidRange string
	// addresses lead to the servers from outside, the one for clients first.
	addresses []string

	// audit is what the servers are to record of requests.
	audit auditing.Found
	// visibility is which clusters the servers show.
	visibility visibility.Found
	// reach is where the controller may work.
	reach permission.Reach
	// upgrade is how far the release that is rendered is on its way to another.
	upgrade *upgrade.Upgrade
	// operation is what an operation beside the upgrade waits for, done when there is none.
	operation verdict.Verdict
	// retraction is what it waits for that the reports of a controller which was removed
	// are taken back, done when there are none.
	retraction verdict.Verdict
	// registration, controller and available are what the stages of that name found.
	registration apiservice.Found
	controller   controller.Found
	available    available.Found
	// backups are those of the registry, and what is to be done about them.
	backups backups.Found
	// savingFirst is true of a registry that is being deleted, and runs on until its last
	// backup is verified.
	savingFirst bool
	// restore is the backup that etcd is to begin with, and what is known of it.
	restore restoring.Found
}

func newScope(objects *operand.Objects) *scope {
	s := &scope{found: pass.Found{}}
	s.Pass = pass.New(objects, s.Verdict)
	return s
}

// done is the verdict of a stage that has nothing to say.
var done verdict.Verdict

// record keeps what came of a stage and returns whether the next one follows. In a registry that was
// complete once, is registered, or being recovered, each stage has something to look after.
func (s *scope) record(condition string, v verdict.Verdict) (proceed bool) {
	s.found[condition] = v
	if v.State == verdict.ReadOnly {
		s.FreezeBy(condition, "this is resolved: "+condition+": "+v.Message)
	}
	return v.Usable() || (s.Installed() || s.Recovering() != nil || apiservice.Has(s.Registry)) && s.Rendered != nil
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

// allParts are the conditions of parts, and of what acts on the content of the registry
// where the spec asks for that: what Ready sums up.
func (s *scope) allParts() []string {
	out := pass.Parts(s.Registry.Spec.Mode)
	if len(s.Registry.Spec.Controllers.Functions()) > 0 {
		out = append(out, operatorv1alpha1.ConditionControllerReady)
	}
	if s.Registry.Spec.Backup != nil {
		out = append(out, operatorv1alpha1.ConditionBackupReady)
	}
	return out
}
